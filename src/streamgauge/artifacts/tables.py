"""The tables of a run folder beside its result: one row per second, per engine batch, and per batch and operator.

- series.parquet has one row per second of planned time, ascending.
- engine/batches.parquet has one row per micro-batch, as the SUT reports it. No verdict depends on it. A job of several
  sinks may have several queries, whose batches follow each other in the table.
- engine/operators.parquet has one row per micro-batch, query and operator: input and output rows as the SUT counts
  them.

A null means "not known", never zero. `MEANINGS` explains every column.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core import engine_reports
from streamgauge.core.errors import DriverError

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

STEPS = tuple(f"{step}_ms" for step in engine_reports.STEPS)
"""The steps of a micro-batch in order; they need not add up to `trigger_ms`."""

BATCHES: pa.Schema = pa.schema(
    [
        pa.field("batch_id", pa.int64(), nullable=False),
        pa.field("start_us", pa.int64(), nullable=False),
        pa.field("end_us", pa.int64()),
        pa.field("rows", pa.int64()),
        *[pa.field(name, pa.float64()) for name in STEPS],
        pa.field("trigger_ms", pa.float64()),
        pa.field("query", pa.string()),
    ]
)

OPERATORS: pa.Schema = pa.schema(
    [
        pa.field("batch_id", pa.int64(), nullable=False),
        pa.field("query", pa.string(), nullable=False),
        pa.field("operator", pa.string(), nullable=False),
        pa.field("rows_in", pa.int64()),
        pa.field("rows_out", pa.int64()),
    ]
)

MEANINGS: dict[str, dict[str, str]] = {
    "series.parquet": {
        "time_us": "Start of the second, microseconds since the epoch (planned time).",
        "phase": "Its phase, as in `phases` of result.json.",
        "planned": "Events that the plan has in the second.",
        "offered": (
            "Events made available in the second, whenever they were due. A chunk counts whole when its last event is "
            "due or later."
        ),
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
        "loopback_bytes_per_s": "Over the loopback: between driver and SUT, and within the SUT (its Python workers).",
        "frontier_lag_us": "Planned time - output frontier, at the second's end.",
        "lag_events_mean": "Consumer lag, mean over all partitions of all streams.",
        "lag_by_partition": "Consumer lag of each partition, stream by stream.",
        "lag_at_commit_mean": (
            "Consumer lag right after the last commit in the second, mean over all partitions; null without a commit. "
            "With several queries, the commits are those of the query that has the fewest."
        ),
        "broker_cpu_percent": "CPU of the broker that streamgauge started; null without one.",
        "broker_memory_bytes": "Resident memory of that broker.",
    },
    "engine/batches.parquet": {
        "batch_id": "The engine's number.",
        "start_us": "Start, microseconds since the epoch, by the engine's clock.",
        "end_us": "End, by the same clock.",
        "rows": "Events delivered to it, by the driver's count.",
        **dict.fromkeys(STEPS, "A step of the batch; steps stand in order and need not add up."),
        "trigger_ms": "The whole batch.",
        "query": "The engine's query, as in `sinks[].query`.",
    },
    "engine/operators.parquet": {
        "batch_id": "The engine's number of the batch.",
        "query": "The engine's query.",
        "operator": "The operator's name in the flow.",
        "rows_in": "Rows that it read, as `operators[].rows_in`.",
        "rows_out": "Rows that it gave, as `operators[].rows_out`; of a source, the driver's count.",
    },
}
"""Table to column to what it holds, for docs/reference/result-files.md."""


def conform(table: pa.Table, schema: pa.Schema = SCHEMA) -> pa.Table:
    """`table` with exactly the columns of `schema`, in its order and types. Missing nullable columns become null.

    Raises `DriverError` for unknown columns, missing required values, wrong types, or a first column that does not
    ascend (for each query, if there is a column `query`).
    """
    unknown = sorted(set(table.column_names) - set(schema.names))
    if unknown:
        raise DriverError(f"series: columns {', '.join(unknown)} are not in the schema ({', '.join(schema.names)})")
    conformed = pa.table([_column(table, field) for field in schema], schema=schema)
    for part in _by_query(conformed):
        _check_ascending(part, schema.names[0])
    return conformed


def _by_query(table: pa.Table) -> list[pa.Table]:
    if "query" not in table.column_names:
        return [table]
    named = pc.fill_null(table["query"], "")
    return [table.filter(pc.equal(named, query)) for query in pc.unique(named)]


def _column(table: pa.Table, field: pa.Field) -> pa.ChunkedArray | pa.Array:
    if field.name not in table.column_names:
        if not field.nullable:
            raise DriverError(f"series: column {field.name} is required and absent")
        return pa.nulls(table.num_rows, field.type)
    column = table.column(field.name)
    if column.null_count and not field.nullable:
        raise DriverError(f"series: column {field.name} must have no nulls; it has {column.null_count}")
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DriverError(f"series: column {field.name} must be {field.type}; got {column.type} ({error})") from None


def _check_ascending(table: pa.Table, name: str) -> None:
    column = table.column(name)
    if len(column) > 1 and not pc.all(pc.greater(column[1:], column[:-1])).as_py():
        raise DriverError(f"series: column {name} must ascend from row to row")
