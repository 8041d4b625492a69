"""Workloads on a user's own data: which stream a file is of, what stands in the result, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamgauge.errors import InputError
from streamgauge.experiment import build
from streamgauge.run.check import check
from streamgauge.run.own_job import changed


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "bought.csv"
    path.write_text("user_id,gem_pack_id,price\n1,2,30\n4,5,60\n")
    return path


def asked(workload: str, **parameters: Any) -> dict[str, Any]:
    return {"workload": workload, "parameters": parameters, "load": {"rate": 1000}}


def test_a_workload_runs_on_the_rows_of_a_file(data: Path) -> None:
    """With its own parameters beside; the file's digest is of what the run was."""
    ready = check(build(asked("filter", data=str(data), above="50")))
    plan = ready.plan(0, 1000.0, 1.0)
    rows = [plan.batch(0, partition, 0, 2, ["price"]).column("price").to_pylist() for partition in range(2)]
    assert rows == [[30, 30], [60, 60]]
    assert list(ready.workload.files) == [str(data)]
    kept = dict(ready.workload.files)
    assert not list(changed(ready.workload, kept, "-"))
    data.write_text(data.read_text() + "7,8,90\n")
    again = check(build(asked("filter", data=str(data))))
    assert [problem.setting for problem in changed(again.workload, kept, "-")] == [str(data)]


def test_one_stream_of_several_is_named(data: Path) -> None:
    """The others are made as ever."""
    ready = check(build(asked("windowed_join", **{"data.purchases": str(data)})))
    plan = ready.plan(0, 1000.0, 1.0)
    numbers = {stream.name: number for number, stream in enumerate(plan.streams)}
    assert plan.batch(numbers["purchases"], 0, 0, 1, ["price"]).column("price").to_pylist() == [30]
    ads = plan.batch(numbers["ads"], 0, 0, 50, ["user_id"]).column("user_id").to_pylist()
    assert len(set(ads)) > 2


@pytest.mark.parametrize(("workload", "name", "rule"), [
    ("windowed_join", "data", "must say of which stream: purchases, ads"),
    ("filter", "data.purchase", "must name a stream of the workload: purchases"),
    ("word_count", "data", "must have a column text"),
])  # fmt: skip
def test_data_that_fit_no_stream_are_refused(data: Path, workload: str, name: str, rule: str) -> None:
    """Before anything is started."""
    with pytest.raises(InputError) as refused:
        check(build(asked(workload, **{name: str(data)})))
    assert any(rule in problem.rule for problem in refused.value.problems)


def test_an_own_job_says_itself_what_it_reads(data: Path) -> None:
    """Its sample is in its file."""
    job = Path(__file__).parents[2] / "examples" / "enrich.py"
    with pytest.raises(InputError) as refused:
        check(build(asked(str(job), data=str(data))))
    assert "is for built-in workloads" in refused.value.problems[0].rule
