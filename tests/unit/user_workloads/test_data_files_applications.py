"""Every workload on a user's own file with malformed cells: what is counted, and that there is one right answer."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.config.experiment import build
from streamgauge.core.schema import EVENT_ID, EVENT_TIME, INGEST_TIME
from streamgauge.dataflow.lineage import needed_columns
from streamgauge.engines.duckdb_oracle.engine import Oracle
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.settings_checks import check
from streamgauge.results.run import ReplayedData
from streamgauge.user_workloads.data_files import notes_of, replayed_data
from streamgauge.verification.regenerated_input import malformed_records
from streamgauge.workloads.registry import names
from tests.unit.helpers_duckdb import duckdb_session
from tests.unit.workloads.helpers_cuts import without_truth

ROWS, RATE, SECONDS = 600, 150.0, 12.0
EVERY = 13
"""So often a cell of a column is spoilt, the first one at the column's own place."""
Cells = dict[str, dict[str, list[Any]]]


def ready_for(workload: str, files: dict[str, Path] | None = None, **parameters: str) -> ResolvedExperiment:
    data = {f"data.{name}": str(path) for name, path in (files or {}).items()}
    load = {"rate": RATE, "generators": 1, "duration": "60s"}
    return check(build({"workload": workload, "parameters": {**parameters, **data}, "load": load}))


def plan_of(resolved: ResolvedExperiment) -> Plan:
    return Plan(resolved.streams(RATE), parse_profile("constant", RATE, SECONDS), 0, SECONDS, 1, 1)


def made_cells(resolved: ResolvedExperiment) -> Cells:
    """Rows of each stream as its generator makes them, of the columns that the flow reads."""
    plan, needed = plan_of(resolved), needed_columns(resolved.flow)
    cells = {}
    for number, stream in enumerate(plan.streams):
        columns = [name for name in stream.schema.names if name in needed[stream.name]]
        batch = plan.batch(number, 0, 0, ROWS, columns)
        cells[stream.name] = {name: [_cell(value) for value in batch.column(name).to_pylist()] for name in columns}
    return cells


def _cell(value: Any) -> Any:
    """As a CSV has it."""
    return value.hex() if isinstance(value, bytes) else repr(value) if isinstance(value, float) else value


def written(folder: Path, cells: Cells) -> dict[str, Path]:
    """Stream to its file; what is None is not there, and an empty text stands in quotes."""
    files = {}
    for stream, columns in cells.items():
        files[stream] = folder / f"{stream}.csv"
        lines = [",".join(columns), *(",".join(map(_quoted, row)) for row in zip(*columns.values(), strict=True))]
        files[stream].write_text("\n".join(lines) + "\n")
    return files


def _quoted(cell: Any) -> str:
    text = str(cell).replace('"', '""')
    return "" if cell is None else f'"{text}"'


def answers(resolved: ResolvedExperiment, plan: Plan, by_classes: bool) -> list[list[tuple[str, ...]]]:
    """The right answer of each sink, with its lineage, in an order of its own."""
    flow, found = resolved.lineage_flow, []
    for each in flow.each():
        with duckdb_session() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            inputs = {name: _input(plan, name, columns) for name, columns in needed_columns(each).items()}
            rows = Oracle().answer(without_truth(each) if by_classes else each, inputs, connection).fetchall()
            found.append(sorted(tuple(map(_value_in_words, row)) for row in rows))
    return found


def _value_in_words(value: Any) -> str:
    """A value in words, doubles without their last bits: sums of them hang on the order."""
    return f"{value:.9g}" if isinstance(value, float) else repr(value)


def _input(plan: Plan, name: str, columns: tuple[str, ...]) -> pa.Table:
    (number,) = [number for number, stream in enumerate(plan.streams) if stream.name == name]
    events = plan.count_before(number, 0, plan.end_us)
    fields = [column for column in columns if column not in (EVENT_TIME, INGEST_TIME, EVENT_ID)]
    table = pa.Table.from_batches([plan.batch(number, 0, 0, events, [*fields, EVENT_TIME, EVENT_ID])])
    return table.append_column(INGEST_TIME, table.column(EVENT_TIME))


def about(found: tuple[ReplayedData, ...]) -> dict[tuple[str, str], tuple[int, int]]:
    """Of each column that has some: unreadable values, and empty ones."""
    every = {(one.stream, column.name): (column.unreadable, column.empty) for one in found for column in one.columns}
    return {name: counts for name, counts in every.items() if any(counts)}


@pytest.mark.parametrize("workload", names())
def test_malformed_cells_stop_nothing(tmp_path: Path, workload: str) -> None:
    """In every column that is read, some cells are no value and some are empty: each is counted, and there is one right
    answer, which the flow's classes and their truths agree on; records that a rule calls malformed are counted. What
    the flow does not read is not in the file at all.
    """
    cells = made_cells(ready_for(workload))
    spoilt: dict[tuple[str, str], tuple[int, int]] = {}
    kinds = {stream.name: stream.schema.types() for stream in ready_for(workload).streams(RATE)}
    for stream, columns in cells.items():
        for place, (name, column) in enumerate(columns.items()):
            readable = kinds[stream][name] in ("string", "binary")
            for row in range(place, ROWS, EVERY):
                column[row] = None if readable or row % 2 else "?!"
            spoilt[stream, name] = (column.count("?!"), column.count(None))
    resolved = ready_for(workload, written(tmp_path, cells))
    plan = plan_of(resolved)
    found = replayed_data(plan, plan.end_us)
    assert about(found) == spoilt
    notes = [note for one in found for note in notes_of(one)]
    assert all(any(f"{name} is null in" in note for note in notes) for _, name in spoilt)
    assert answers(resolved, plan, by_classes=False) == answers(resolved, plan, by_classes=True)
    malformed = malformed_records(plan, resolved.malformed, plan.end_us).values()
    assert all(one.malformed * EVERY >= one.records / 2 for one in malformed)
