"""Computes the input and output of each operator with the reference and stores them, one table per node.

Each operator is computed by itself, from the tables of its inputs: an engine is timed on the same cut. No table has
lineage, which belongs to the instrument. Windows that are open at the end of the input give their rows so far.

Updates: a running aggregate has one row for each key and slice, with the value at the slice's end. An engine of
micro-batches gives the same if a slice is a batch. By the thesis's rule, an update for each input, it would be one row
for each input row.

A user job is one operator, whose rows the caller computes (`UserJobRows`). Its input carries lineage, which the
function may read. An event reaches the job at its own time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from streamgauge.core.schema import EVENT_TIME, INGEST_TIME, LINEAGE, Field, Schema, quote, quoted
from streamgauge.dataflow import graph, schema
from streamgauge.dataflow.expressions.types import element_type
from streamgauge.dataflow.lineage import needed_columns
from streamgauge.dataflow.nodes import Flow, Mode, Node, Process, RunningAggregate, Sink, Source, TopN, UserJobNode
from streamgauge.engines.duckdb_oracle import lowering as lower
from streamgauge.engines.duckdb_oracle.process_operator import computed
from streamgauge.engines.registry import entry
from streamgauge.engines.spi import BatchRequest
from streamgauge.loadgen.plan import Plan
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.user_workloads.user_workload import user_workload
from streamgauge.verification.regenerated_input import RegeneratedInput

FIXED_BYTES = {"int": 4.0, "bigint": 8.0, "double": 8.0, "timestamp": 8.0, "boolean": 1 / 8}
OFFSET_BYTES = 4.0
"""Arrow's overhead of a text, binary or array value, in bytes."""
SLICE = "__slice"
"""Parts of an operator's input lie in folders of that name; no column of a flow begins with an underscore."""

Rule = Literal["rows", "updates"]
UserJobRows = Callable[[Any, UserJobNode, dict[str, str]], Any]
"""(connection, user job, table of each of its streams) -> its rows, as a relation of the connection."""


@dataclass(frozen=True)
class Span:
    """The input: all events with start <= event time < end, in slices of event time, microseconds."""

    start_us: int
    end_us: int
    slice_us: int

    @property
    def ends(self) -> list[int]:
        """Where each slice ends."""
        return [*range(self.start_us + self.slice_us, self.end_us, self.slice_us), self.end_us]


@dataclass(frozen=True)
class OperatorIO:
    """An operator with its input and output counts.

    `isolated` is the node with the tables of its inputs as sources, named after them. `rows_in`: rows of each input.
    `tuple_bytes`: bytes of an output row's own columns in Arrow; None without rows.
    """

    node: Node
    isolated: Node
    rows_in: tuple[int, ...]
    rows_out: int
    tuple_bytes: float | None

    @property
    def selectivity(self) -> float | None:
        """Output rows per input row; None for a source, and without input."""
        received = sum(self.rows_in)
        return self.rows_out / received if received else None

    @property
    def rule(self) -> Rule:
        """How rows out are counted."""
        return "updates" if isinstance(self.node, RunningAggregate) else "rows"


def materialise(
    connection: Any, flow: Flow, plan: Plan, span: Span, user_job_rows: UserJobRows | None = None
) -> Iterator[OperatorIO]:
    """Yields every node of a flow, inputs first, once its table is in `connection`, a DuckDB of its own.

    A user job needs `user_job_rows`.
    """
    connection.execute("SET TimeZone = 'UTC'")
    done: dict[Node, OperatorIO] = {}
    for node in graph.operators(flow):
        isolated = _isolated(node)
        if isinstance(node, Source):
            _create_source_table(connection, node, plan, span)
        elif isinstance(node, UserJobNode):
            assert user_job_rows is not None
            tables = {source.name: _table(source) for source in node.inputs}
            user_job_rows(connection, node, tables).create(quote(_table(node)))
        else:
            _compute(connection, isolated, _table(node), span)
        before = tuple(done[input_].rows_out for input_ in graph.inputs(node))
        done[node] = OperatorIO(node, isolated, before, *_rows_and_bytes(connection, node))
        yield done[node]


def _table(node: Node) -> str:
    """The table of a node's rows: its columns, and `event_time`."""
    return f"rows_of_{node.name}"


def _isolated(node: Node) -> Node:
    """The node with the tables of its inputs as sources. Nodes that make arrays go with it: sources have none."""
    if isinstance(node, Source):
        return node
    return graph.with_inputs(node, tuple(_stand_in(input_) for input_ in graph.inputs(node)))


def _stand_in(node: Node) -> Node:
    if isinstance(node, Source) and node.lineage:
        return replace(node, name=_table(node))
    columns = schema.columns(node)
    if any(map(element_type, columns.values())):
        return _isolated(node)
    return Source(_table(node), Schema(tuple(Field(name, type_, nullable=True) for name, type_ in columns.items())))


def _isolated_flow(node: Node) -> Flow:
    mode: Mode = "update" if isinstance(node, RunningAggregate) else "append"
    return Flow((Sink(node, "alone", mode),))


def _create_source_table(connection: Any, source: Source, plan: Plan, span: Span) -> None:
    """A source's table: the planned events themselves."""
    columns = schema.columns(source)
    handed = f", {EVENT_TIME} AS {INGEST_TIME}" if INGEST_TIME in columns else ""
    planned = RegeneratedInput(plan, None, {source.name: tuple(name for name in columns if name != INGEST_TIME)})
    connection.register("__events", planned.readers(span.start_us, span.end_us)[source.name])
    connection.execute(f"CREATE TABLE {quote(_table(source))} AS SELECT *{handed} FROM __events")
    connection.unregister("__events")


def _compute(connection: Any, isolated: Node, table: str, span: Span) -> None:
    flow = _isolated_flow(isolated)
    relations = computed(connection, flow, {source.name: quote(source.name) for source in graph.sources(flow)})
    own = quoted(schema.columns(isolated))
    if isinstance(isolated, RunningAggregate):
        # The value of each key at the end of each slice that has rows of the key.
        query = f"SELECT {own} FROM ({lower.by_spans(flow, relations, lower.span_number(span.ends))})"
    else:
        query = f"SELECT {own}, {lower.TIME} AS {quote(EVENT_TIME)} FROM ({lower.lower(isolated, relations)})"
    connection.execute(f"CREATE TABLE {quote(table)} AS {query}")


def _rows_and_bytes(connection: Any, node: Node) -> tuple[int, float | None]:
    """(rows, bytes of a row in Arrow: values and offsets, without validity bits)."""
    table = quote(_table(node))
    if isinstance(node, UserJobNode):  # of its columns nothing is declared
        rows = connection.table(_table(node)).to_arrow_table()
        own = rows.select([name for name in rows.column_names if name not in LINEAGE])
        return rows.num_rows, own.nbytes / rows.num_rows if rows.num_rows else None
    columns = node.schema.types() if isinstance(node, Source) else schema.columns(node)
    sizes = " + ".join(_bytes(quote(name), type_, table) for name, type_ in columns.items())
    ((rows, size),) = connection.execute(f"SELECT count(*), {sizes} FROM {table}").fetchall()
    return int(rows), float(size) / rows if rows else None


def _bytes(column: str, type_: str, table: str) -> str:
    """DuckDB SQL for the bytes of a column over all rows."""
    if type_ in FIXED_BYTES:
        return f"count(*) * {FIXED_BYTES[type_]}::DOUBLE"
    element = element_type(type_)
    if element is not None:
        inner = _bytes("__element", element, "__elements")
        held = f"(SELECT {inner} FROM (SELECT unnest({column}) AS __element FROM {table}) AS __elements)"
        return f"count(*) * {OFFSET_BYTES}::DOUBLE + {held}"
    length = "strlen" if type_ == "string" else "octet_length"
    return f"count(*) * {OFFSET_BYTES}::DOUBLE + coalesce(sum({length}({column})), 0)"


def write_slices(connection: Any, measured: OperatorIO, folder: Path, parts: int) -> dict[str, Path]:
    """Writes the input of an operator as Parquet, in `parts` of equal numbers of rows in order of time.

    `folder` exists and is empty. The result has a folder for each source that `measured.isolated` reads, with a folder
    per part (`__slice=0` and so on) and the columns that the operator reads; a part without rows has none.

    Parts are of rows, not of time, so that an operator whose input comes only at window ends has as many. Rows of one
    time must reach a keyed process together, so its parts are cut between different times and may be fewer.
    """
    flow = _isolated_flow(measured.isolated)
    tables = [source.name for source in graph.sources(flow)]
    together = isinstance(measured.node, Process) and bool(measured.node.keys)
    _assign_slices(connection, tables, parts, together)
    wanted = needed_columns(flow)
    folders = {}
    for number, table in enumerate(tables):
        # A ranking goes by the time at which its windows end, which no column of its input has.
        timed = (EVENT_TIME,) if isinstance(measured.node, TopN) or not wanted[table] else ()
        columns = ", ".join(f"__rows.{quote(name)}" for name in dict.fromkeys((*wanted[table], *timed)))
        folders[table] = folder / str(number)
        query = (
            f"SELECT {columns}, __placed.slice AS {SLICE} FROM {quote(table)} AS __rows JOIN __placed"
            f" ON __placed.side = {number} AND __placed.id = __rows.rowid ORDER BY __rows.{quote(EVENT_TIME)}"
        )
        connection.sql(query).write_parquet(str(folders[table]), partition_by=[SLICE])
    connection.execute("DROP TABLE __placed")
    return folders


def _assign_slices(connection: Any, tables: Sequence[str], parts: int, together: bool) -> None:
    """Makes the table `__placed` with the part of each row of all tables.

    `together`: all rows of one time are in the same part.
    """
    sides = " UNION ALL ".join(
        f"SELECT {number} AS side, rowid AS id, {quote(EVENT_TIME)} AS time FROM {quote(table)}"
        for number, table in enumerate(tables)
    )
    place = "rank() OVER (ORDER BY time)" if together else "row_number() OVER (ORDER BY time, side, id)"
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE __placed AS WITH sides AS ({sides})"
        f" SELECT side, id, (({place} - 1) * {parts}) // (SELECT count(*) FROM sides) AS slice FROM sides"
    )


def user_job_rows(resolved: ResolvedExperiment, private: Path) -> UserJobRows:
    """A function that computes the rows of this job; `private` is a folder for temporary files."""
    workload, sink = user_workload(resolved.workload), resolved.flow.sink.name
    if workload.described[sink].reference is not None:
        return lambda connection, _, tables: workload.answer(
            connection, sink, {name: f"SELECT * FROM {quote(table)}" for name, table in tables.items()}
        )
    return lambda connection, job, tables: _in_batch(connection, job, tables, resolved, private)


def _in_batch(
    connection: Any, job: UserJobNode, tables: dict[str, str], resolved: ResolvedExperiment, private: Path
) -> Any:
    inputs = {name: private / f"{name}.parquet" for name in tables}
    for name, table in tables.items():
        connection.table(quote(table)).write_parquet(str(inputs[name]))
    plugin, options = entry(resolved.engine.name), resolved.experiment.options
    with plugin.batch_answer(BatchRequest(job, inputs, options, private, private / "batch.log")) as answer:
        return connection.read_parquet(str(answer(private / "answer") / "*.parquet"))
