"""The tables a run folder keeps beside its result: one row per second, and one row per engine batch.

series.parquet, one row per second of planned time, ascending:

    time_us                     start of the second, microseconds since the epoch (planned time); never null
    phase                       name of the phase the second lies in, as in `result.phases`; never null
    planned                     events that the plan has in that second
    offered                     events that the generators made available in that second; a chunk of them whole, when
                                its last one was due or later, so the first second has a chunk less than its plan
    handed_out, committed       events first handed to the SUT, events it committed, in that second
    backlog_events              due and not handed out, at the end of the second
    lag_events                  due and not committed, at the end of the second
    event_time_us_p50, _p99     emission - event time of the results whose event time lies in that second [K §IV]
    processing_time_us_p50, _p99  emission - ingest time of the same results
    results                     results whose event time lies in that second
    slip_us_max                 greatest lateness of the driver against its own plan
    sut_cpu_percent, driver_cpu_percent   100 is one core kept busy for the second
    others_cpu_percent          the same of all processes that are neither driver nor SUT
    reference_work_us           CPU time of the same small piece of work: how fast the machine itself was
    sut_memory_bytes, driver_memory_bytes   resident, all processes of that side
    loopback_bytes_per_s        over the loopback: between driver and SUT, and within the SUT (JVM and Python workers)
    frontier_lag_us             planned time - output frontier, at the end of the second [method 3.4]

engine/batches.parquet, one row per micro-batch, as the SUT reports it (never decides anything); a job of several sinks
may be several queries, whose batches then stand one query after the other.

engine/operators.parquet, one row per micro-batch, query and operator: the rows it took in and gave, as the SUT counts
them; what a source gives is the driver's count.
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
    """`table` with exactly the columns of `schema`, in its order and types; absent nullable columns become null.

    Raises `DriverError` for unknown columns, nulls or absence where a value is required, wrong types, or rows whose
    first column does not ascend (of one query, where there is such a column).
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
