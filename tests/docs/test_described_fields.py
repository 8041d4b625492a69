"""Every field, column and setting is described in the reference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel

from streamgauge.artifacts import tables
from streamgauge.artifacts.run_folder import ANATOMY, CHARACTERIZATION
from streamgauge.config.options_and_settings import Experiment
from streamgauge.results.breakdown import LatencyBreakdown
from streamgauge.results.comparison import Comparison
from streamgauge.results.latency import Latency
from streamgauge.results.profile import OperatorProfile
from streamgauge.results.run import Result
from streamgauge.studies.compare.metrics import comparables
from tests.docs.helpers_pages import ROOT, spans


def fields(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every field of a result as a dotted path, `[]` for lists; kinds of latency and what repeats are walked once."""
    for name, field in model.model_fields.items():
        path = f"{prefix}{name}"
        inner, many = _model_in(field.annotation)
        if inner is None:
            yield path
        elif not _told_elsewhere(path):
            yield path
            yield from fields(inner, path + ("[]." if many else "."))


TOLD_ONCE = ("ways.one_each", "ways.source_only", "trials[].first_of_batch")
"""Parts of a study's result that have the fields of another part."""


def _told_elsewhere(path: str) -> bool:
    """A sink's `latency` and `verification` are those of the whole again, and kinds of latency have one's fields."""
    kinds = ("until_counted_us", "processing_time_us", "closing_delay_us", "match_time_us", "uncorrected_us")
    of_sinks = ("sinks[].latency", "sinks[].verification")
    return path in (*TOLD_ONCE, "search.at_90_percent", *of_sinks, *(f"latency.{kind}" for kind in kinds))


def _model_in(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """(the model that a field holds, whether it holds many of them)."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, False
    inner = [found for part in get_args(annotation) if (found := _model_in(part))[0] is not None]
    return (inner[0][0], inner[0][1] or get_origin(annotation) is tuple) if inner else (None, False)


def told_fields(text: str) -> set[str]:
    """The paths in the first column of the tables; `.mean` after a path stands for its sibling."""
    told: set[str] = set()
    for line in text.splitlines():
        parent = ""
        for name in spans(line.split("|")[1]) if line.startswith("| `") else []:
            told.add(parent + name if name.startswith(".") else name)
            parent = parent if name.startswith(".") else name.rpartition(".")[0]
    return told


def test_every_field_of_a_result_is_told() -> None:
    """docs/reference/result-files.md explains every field of result.json and names none that is not there."""
    text = (ROOT / "docs" / "reference" / "result-files.md").read_text()
    part = text[text.index("## result.json") : text.index("## series.parquet")]
    there = set(fields(Result)) | {f"latency.{kind}" for kind in Result.model_fields["latency"].annotation.model_fields}  # type: ignore[union-attr]
    there |= {"search.at_90_percent", "sinks[].latency", "sinks[].verification"}
    assert told_fields(part) == there


@pytest.mark.parametrize(("file", "model"), [(CHARACTERIZATION, OperatorProfile), (ANATOMY, LatencyBreakdown)])
def test_every_field_of_a_study_is_told(file: str, model: type[BaseModel]) -> None:
    """docs/reference/result-files.md explains every field of a study's file and names none that is not there."""
    text = (ROOT / "docs" / "reference" / "result-files.md").read_text()
    part = text.split(f"\n## {file}\n")[1].split("\n## ")[0]
    assert told_fields(part) == set(fields(model)) | {path for path in TOLD_ONCE if path in part}


def test_every_key_of_an_experiment_is_told() -> None:
    """docs/reference/experiment-file.md explains every key of an experiment file and names none that is not there."""
    text = (ROOT / "docs" / "reference" / "experiment-file.md").read_text()
    assert told_fields(text) == set(fields(Experiment))


def test_every_field_of_a_comparison_is_told() -> None:
    """docs/how-to/compare-and-gate.md explains every field of `compare --json`; side b has those of side a."""
    text = (ROOT / "docs" / "how-to" / "compare-and-gate.md").read_text()
    part = text[text.index("## The answer as JSON") :]
    assert told_fields(part) == {field for field in fields(Comparison) if not field.startswith("b.runs[].")}


def test_every_figure_to_compare_by_is_told() -> None:
    """docs/how-to/compare-and-gate.md names each, the kinds of latency by one of their statistics."""
    part = (ROOT / "docs" / "how-to" / "compare-and-gate.md").read_text().split("## Figures")[1].split("## In CI")[0]
    told = {name.removesuffix("_p99") for name in told_fields(part)}
    there = {re.sub("_(mean|p[0-9_]+)$", "", name) for name in comparables()} - {"event_time"}
    assert there <= told
    assert told - there == {"rate", "p50", "p90", "p95", "p99", "p99.9", "mean"}


def test_latency_fields_are_walked() -> None:
    """The walk over a result reaches the statistics of a latency and the lists of a search."""
    there = set(fields(Result))
    assert {f"latency.event_time_us.{name}" for name in Latency.model_fields} <= there
    assert "search.trials[].offered_per_s" in there


@pytest.mark.parametrize(
    ("heading", "schema"), [("series.parquet", tables.SCHEMA), ("engine/batches.parquet", tables.BATCHES)]
)
def test_every_column_is_told(heading: str, schema: Any) -> None:
    """docs/reference/result-files.md explains every column of the two tables, in their order."""
    text = (ROOT / "docs" / "reference" / "result-files.md").read_text()
    part = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    told = [name for line in part.splitlines() if line.startswith("| `") for name in spans(line.split("|")[1])]
    assert told == schema.names
