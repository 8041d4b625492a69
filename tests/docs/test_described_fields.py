"""Every field, column and setting is described in the reference."""

import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from streamgauge.artifacts import series_files
from streamgauge.config.experiment import Experiment
from streamgauge.studies.compare.metrics import comparables
from tests.docs.helpers_pages import spans
from tests.helpers_modules import ROOT, load

FIELDS = load(ROOT / "tools" / "tables" / "fields.py")


def fields(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every key of an experiment as a dotted path."""
    for name, field in model.model_fields.items():
        inner = _model_in(field.annotation)
        yield f"{prefix}{name}"
        if inner is not None:
            yield from fields(inner, f"{prefix}{name}.")


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_in(part)) is not None), None)


def described(text: str) -> set[str]:
    """The paths in the first column of tables, and of generated lists; `.mean` after a path stands for its sibling."""
    paths: set[str] = set()
    for line in text.splitlines():
        parent = ""
        first = (
            line.split("|")[1] if line.startswith("| `") else "".join(re.findall(r"^- (`[^`]+`)(?: \(.*?\))?: ", line))
        )
        for name in spans(first):
            paths.add(parent + name if name.startswith(".") else name)
            parent = parent if name.startswith(".") else name.rpartition(".")[0]
    return paths


@pytest.mark.parametrize("file", FIELDS.FILES)
def test_every_field_of_a_file_has_a_row(file: str) -> None:
    """Lists together hold each field once; parts that occur again are named with the path of their fields."""
    model, _ = FIELDS.FILES[file]
    listed = [row[0].strip("`?") for name, rows in FIELDS.blocks().items() if name.startswith(f"fields of {file}")
              for row in rows]  # fmt: skip
    homes = FIELDS.homes(model)
    assert len(listed) == len(set(listed))
    for holder, home in homes.items():
        for name in holder.model_fields:
            assert FIELDS.is_elsewhere(model, holder, name) or any(
                path.removeprefix(home).strip("[].*") == name for path in listed if path.startswith(home)
            ), f"{home}: {name}"
    own = {name for name in model.model_fields if not FIELDS.is_elsewhere(model, model, name)}
    assert own <= set(listed)


class Planted(BaseModel):
    described: int
    """What it is."""
    undescribed: int
    other: int
    """Described again."""


def test_a_field_without_a_docstring_is_refused() -> None:
    """The tables cannot be made, and the error names the field."""
    assert FIELDS.meaning(Planted, "described") == "What it is."
    with pytest.raises(LookupError, match=r"Planted\.undescribed has no docstring below it"):
        FIELDS.meaning(Planted, "undescribed")


def test_every_key_of_an_experiment_is_described() -> None:
    """docs/reference/experiment-file.md explains every key of an experiment file and names none that is not there."""
    assert described((ROOT / "docs" / "reference" / "experiment-file.md").read_text()) == set(fields(Experiment))


def test_every_figure_to_compare_by_is_described() -> None:
    """docs/how-to/compare-and-gate.md names each, the kinds of latency by one of their statistics."""
    part = (ROOT / "docs" / "how-to" / "compare-and-gate.md").read_text().split("## Figures")[1].split("## In CI")[0]
    named = {name.removesuffix("_p99") for name in described(part)}
    figures = {re.sub("_(mean|p[0-9_]+)$", "", name) for name in comparables()} - {"event_time"}
    assert named == figures | {"rate", "p50", "p90", "p95", "p99", "p99.9", "mean"}


@pytest.mark.parametrize(
    ("file", "schema"),
    [
        ("series.parquet", series_files.SCHEMA),
        ("engine/batches.parquet", series_files.batches_schema({"STEP": ""})),
        ("engine/operators.parquet", series_files.OPERATORS),
        ("engine/series.parquet", series_files.ENGINE_SERIES),
    ],
)
def test_every_column_is_described(file: str, schema: Any) -> None:
    """`MEANINGS` explains every column of the tables, in their order."""
    assert list(series_files.MEANINGS[file]) == schema.names
