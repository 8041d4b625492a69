"""A program is taken as a built-in workload's question only if its inputs and its answers are the same."""

from pathlib import Path

import pytest

from bench.engines.marginal_cpu import PROGRAM
from tests.helpers_modules import ROOT
from tests.unit.helpers_requests import checked, refused

FILTER = (ROOT / "examples/external/python_consumer/program.toml").read_text()
WINDOWS = PROGRAM.format(start=__file__, engine="flink")


def request(folder: Path, text: str, *changes: tuple[str, str]) -> dict[str, object]:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file = folder / "program.toml"
    file.write_text(text)
    (folder / "consumer.py").touch()
    return {"workload": str(file), "transport": "kafka", "load": {"rate": "1k", "duration": "60s"}}


ALL = ("[inputs.purchases.fields]", '[inputs.purchases.fields]\nuser_id = { kind = "key", domain = 1_000_000 }')


@pytest.mark.parametrize(("text", "changes"), [(FILTER, []), (WINDOWS, []), (WINDOWS, [ALL])])
def test_the_same_query_over_the_same_inputs(tmp_path: Path, text: str, changes: list[tuple[str, str]]) -> None:
    """With the fields that the workload reads, or with all that it declares."""
    resolved = checked(request(tmp_path, text, *changes), new_folder=False)
    assert resolved.workload.question in ("filter", "windowed_aggregation")


@pytest.mark.parametrize(
    ("text", "change", "rule"),
    [
        (FILTER, ('"filter"', '"filtr"'), "must be a built-in workload"),
        (FILTER, ("high = 100", "high = 99"), "the file must declare the inputs of filter"),
        (FILTER, ("price > 90", "price >= 90"), "its reference must give the results of filter"),
        (WINDOWS, ("sum(price)", "max(price)"), "its reference must give the results of windowed_aggregation"),
        (WINDOWS, ("revenue", "total"), "its reference must give the results of windowed_aggregation"),
        (WINDOWS, ("+ 8000000", "+ 12000000"), "its reference must give the results of windowed_aggregation"),
    ],
)
def test_another_question_is_refused(tmp_path: Path, text: str, change: tuple[str, str], rule: str) -> None:
    """An unknown name, other values in the inputs, other results, columns or windows."""
    (problem,) = refused(request(tmp_path, text, change))
    assert (problem.setting, problem.rule.startswith(rule)) == ("program.toml: answers", True), problem
