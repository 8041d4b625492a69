"""The tables of a run folder beside its result: one row per second, and one row per engine batch.

series.parquet, one row per second of planned time, ascending:

    time_us                     start of the second, microseconds since the epoch (planned time); never null
    phase                       phase of the second, as in `result.phases`; never null
    planned                     planned events in that second
    offered                     events that the generators made available in that second, in whole chunks. A chunk is
                                available at its end, so the first second has a chunk less than its plan
    handed_out, committed       first deliveries to the SUT, and events it committed, in that second
    backlog_events              events due and not delivered, at the end of the second
    lag_events                  events due and not committed, at the end of the second
    event_time_us_p50, _p99     emission - event time of the results with an event time in that second
    processing_time_us_p50, _p99  emission - ingest time of the same results
    results                     results with an event time in that second
    slip_us_max                 the greatest schedule delay of the driver
    sut_cpu_percent, driver_cpu_percent   100 is one core for the whole second
    others_cpu_percent          the same of all processes except driver and SUT
    reference_work_us           CPU time of the reference work, which shows the machine's speed
    sut_memory_bytes, driver_memory_bytes   resident memory of all processes of that side
    loopback_bytes_per_s        over the loopback: between driver and SUT, and within the SUT (JVM and Python workers)
    frontier_lag_us             planned time - output frontier, at the end of the second

engine/batches.parquet has one row per micro-batch, as the SUT reports it. No verdict depends on it. A job of several
sinks may have several queries, whose batches follow each other in the table.

engine/operators.parquet has one row per micro-batch, query and operator: input and output rows as the SUT counts them.
The output of a source is the driver's count.
A null means "not known", never zero.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core import batch_progress
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
    ]
)

STEPS = tuple(f"{step}_ms" for step in batch_progress.STEPS)
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
