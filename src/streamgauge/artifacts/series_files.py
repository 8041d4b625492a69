"""The series files of a run folder: one row per second, per engine batch, and per batch and operator.

- series.parquet has one row per second of planned time, ascending.
- engine/batches.parquet has one row per micro-batch, as the SUT reports it. No verdict depends on it. A job of several
  sinks may have several queries, whose batches follow each other in the table.
- engine/operators.parquet has one row per micro-batch, query and operator: input and output rows as the SUT counts
  them.
- engine/series.parquet has one row per sample of a series that the SUT reports about itself.

A null means "not known", never zero. `MEANINGS` explains every column.
"""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.core.engine_reports import WHOLE_BATCH
from streamgauge.core.errors import InputError, Problem, require

_COUNTS = ("planned", "offered", "handed_out", "committed", "backlog_events", "lag_events")
LATENCIES = ("event_time_us_p50", "event_time_us_p99", "processing_time_us_p50", "processing_time_us_p99")

SCHEMA: pa.Schema = pa.schema(
    [pa.field("time_us", pa.int64(), nullable=False), pa.field("phase", pa.string(), nullable=False)]
    + [pa.field(name, pa.int64()) for name in _COUNTS]
    + [pa.field(name, pa.float64()) for name in LATENCIES]
    + [
        pa.field("results", pa.int64()),
        pa.field("slip_us_max", pa.float64()),
        pa.field("sut_cpu_percent", pa.float64()),
        pa.field("driver_cpu_percent", pa.float64()),
        pa.field("others_cpu_percent", pa.float64()),
        pa.field("reference_work_us", pa.float64()),
        pa.field("sut_memory_bytes", pa.int64()),
        pa.field("driver_memory_bytes", pa.int64()),
        pa.field("loopback_bytes_per_s", pa.float64()),
        pa.field("frontier_lag_us", pa.float64()),
        pa.field("lag_events_mean", pa.float64()),
        pa.field("lag_by_partition", pa.list_(pa.int64())),
        pa.field("lag_at_commit_mean", pa.float64()),
        pa.field("broker_cpu_percent", pa.float64()),
        pa.field("broker_memory_bytes", pa.int64()),
    ]
)

_WHOLE, _LABEL = f"{WHOLE_BATCH}_ms", b"label"

BATCHES: pa.Schema = pa.schema(
    [
        pa.field("batch_id", pa.int64(), nullable=False),
        pa.field("start_us", pa.int64(), nullable=False),
        pa.field("end_us", pa.int64()),
        pa.field("rows", pa.int64()),
        pa.field(_WHOLE, pa.float64()),
        pa.field("query", pa.string()),
        pa.field("scheduling_delay_us", pa.int64()),
    ]
)
"""Without the columns of steps, which are the engine's."""

OPERATORS: pa.Schema = pa.schema(
    [
        pa.field("batch_id", pa.int64(), nullable=False),
        pa.field("query", pa.string(), nullable=False),
        pa.field("operator", pa.string(), nullable=False),
        pa.field("rows_in", pa.int64()),
        pa.field("rows_out", pa.int64()),
    ]
)

ENGINE_SERIES: pa.Schema = pa.schema(
    [
        pa.field("time_us", pa.int64(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("unit", pa.string(), nullable=False),
        pa.field("operator", pa.string(), nullable=False),
        pa.field("value", pa.float64(), nullable=False),
    ]
)

SERIES = "series.parquet"
TABLES = {
    SERIES: SCHEMA,
    "engine/batches.parquet": BATCHES,
    "engine/operators.parquet": OPERATORS,
    "engine/series.parquet": ENGINE_SERIES,
}
"""The tables by their files in a run folder."""

MEANINGS: dict[str, dict[str, str]] = {
    "series.parquet": {
        "time_us": "Start of the second, microseconds since the epoch (planned time).",
        "phase": "Its phase, as in `phases` of result.json.",
        "planned": "Events that the plan has in the second.",
        "offered": "Events made available in the second, whenever they were due.",
        "handed_out": "Deliveries in that second.",
        "committed": "Events of batches committed in that second.",
        "backlog_events": "Events due and not delivered at the second's end.",
        "lag_events": "Consumer lag: events due and not committed at the second's end.",
        "event_time_us_p50": "Median event-time latency of the results whose event time lies in the second.",
        "event_time_us_p99": "99th percentile of it.",
        "processing_time_us_p50": "Median processing-time latency of the same results.",
        "processing_time_us_p99": "99th percentile of it.",
        "results": "How many results these are.",
        "slip_us_max": "The greatest schedule delay.",
        "sut_cpu_percent": "CPU of the SUT; 100 is one core for the whole second.",
        "driver_cpu_percent": "CPU of the driver.",
        "others_cpu_percent": "CPU of all other processes.",
        "reference_work_us": "CPU time of the fixed piece of work, which shows the machine's speed.",
        "sut_memory_bytes": "Resident memory of all processes of the SUT.",
        "driver_memory_bytes": "Resident memory of all processes of the driver.",
        "loopback_bytes_per_s": "Traffic over the loopback, of driver and SUT.",
        "frontier_lag_us": "Planned time - output frontier, at the second's end.",
        "lag_events_mean": "Consumer lag, mean over all partitions of all streams.",
        "lag_by_partition": "Consumer lag of each partition, stream by stream.",
        "lag_at_commit_mean": (
            "Consumer lag after the last commit in the second, mean over all partitions; null without a commit."
        ),
        "broker_cpu_percent": "CPU of the broker that streamgauge started; null without one.",
        "broker_memory_bytes": "Resident memory of that broker.",
    },
    "engine/batches.parquet": {
        "batch_id": "The engine's number.",
        "start_us": "Start, microseconds since the epoch, by the engine's clock.",
        "end_us": "End, by the same clock.",
        "rows": "Events delivered to it, by the driver's count.",
        "STEP_ms": "A step of the batch, by the engine's name; steps are in order and need not add up.",
        _WHOLE: "The whole batch.",
        "query": "The engine's query, as in `sinks[].query`.",
        "scheduling_delay_us": "From when the batch was due to its start; null if unknown.",
    },
    "engine/operators.parquet": {
        "batch_id": "The engine's number of the batch.",
        "query": "The engine's query.",
        "operator": "The operator's name in the flow.",
        "rows_in": "Rows that it read, as `operators[].rows_in`.",
        "rows_out": "Rows that it gave, as `operators[].rows_out`; of a source, the driver's count.",
    },
    "engine/series.parquet": {
        "time_us": "Time of the sample, microseconds since the epoch, by the engine's clock.",
        "name": "Name of the series.",
        "unit": "Its unit.",
        "operator": "The operator's name in the flow; empty if the value is the whole job's.",
        "value": "The value.",
    },
}
"""Table to column to what it holds, for docs/reference/series-files.md."""


def batches_schema(steps: Mapping[str, str]) -> pa.Schema:
    """BATCHES with a column STEP_ms for each step of the engine; the column's metadata has the label."""
    columns = [pa.field(f"{step}_ms", pa.float64(), metadata={_LABEL: label}) for step, label in steps.items()]
    at = BATCHES.get_field_index(_WHOLE)
    return pa.schema([*list(BATCHES)[:at], *columns, *list(BATCHES)[at:]])


def batch_steps(batches: pa.Table) -> dict[str, str]:
    """The column of each step of a table of batches to its label, in order. Without a label, its name is one."""
    steps = [field for field in batches.schema if field.name.endswith("_ms") and field.name != _WHOLE]
    return {
        step.name: (step.metadata or {}).get(_LABEL, b"").decode() or step.name.removesuffix("_ms").replace("_", " ")
        for step in steps
    }


def conform(table: pa.Table) -> pa.Table:
    """A per-second series with exactly the columns of SCHEMA, in its order and types; absent ones become null."""
    return pa.concat_tables([SCHEMA.empty_table(), table], promote_options="permissive").cast(SCHEMA)


def read_table(folder: Path, name: str) -> pa.Table:
    """A table of `TABLES`, with a null column for each that an older version did not write; no rows without the file.

    Raises InputError if it is no Parquet file, or lacks a column that is never null.
    """
    path, schema = folder / name, TABLES[name]
    if not path.exists():
        return schema.empty_table()
    try:
        table = pq.ParquetFile(path).read()
        whole = pa.concat_tables([table, schema.empty_table()], promote_options="default")
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            Problem(
                "RUN",
                f"{name} must be whole, and this one is damaged or cut off ({error})",
                str(path),
                "a copy of the file, or run it again",
            )
        ) from None
    absent = [field.name for field in schema if not field.nullable and field.name not in table.column_names]
    rule = f"{name} must have the columns {', '.join(absent)}, which are never null"
    require(not absent, "RUN", rule, str(path), "the version that wrote it, or run it again")
    return whole
