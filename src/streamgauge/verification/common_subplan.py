"""The common part of several sinks, computed once for their verification.

Sinks are verified separately, and parsing twenty million lines for each of four sinks took longer than the trial. So
the rows of an operator that several sinks share, and that has only row-by-row operators upstream, are stored in a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from streamgauge.core.schema import LINEAGE
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Flow, Node, Select, Source, Where
from streamgauge.engines.duckdb_oracle.lowering import lower, retained_name
from streamgauge.loadgen.replay.text import quoted_path
from streamgauge.metrics.log.ingest_times import IngestTimes
from streamgauge.metrics.log.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.system.disk import Scratch
from streamgauge.verification.regenerated_input import RegeneratedInput, Watch
from streamgauge.verification.sink_comparison import database


@contextmanager
def shared_plans(resolved: ResolvedExperiment, record: TrialRecord, watch: Watch) -> Iterator[dict[str, str]]:
    """Name to relation of the shared operator's rows; empty without one. `watch` gets each input batch."""
    node = shared_operator(_compared_whole(resolved))
    if node is None:
        yield {}
        return
    source = RegeneratedInput(record.trial_log.plan, IngestTimes(record.trial_log), resolved.columns, watch)
    with Scratch("verify") as folder:
        path = Path(folder) / "rows.parquet"
        with database() as connection:
            relations = source.registered(connection, record.spans.start_us, record.offered_until())
            connection.sql(lower(node, relations)).write_parquet(str(path), compression="lz4_raw")
        yield {retained_name(node): f"read_parquet({quoted_path(path)})"}


def _compared_whole(resolved: ResolvedExperiment) -> Flow:
    """The sinks that are compared in one piece; row-by-row sinks are compared in slices."""
    pairs = zip(resolved.lineage_flow.sinks, resolved.by_sink(), strict=True)
    return Flow(tuple(sink for sink, each in pairs if each.reach_us != 0))


def shared_operator(flow: Flow) -> Node | None:
    """The shared row-by-row operator that saves most steps, or None."""
    paths = [_row_wise_operators(sink.input) for sink in flow.sinks]
    name = max((name for path in paths for name in path), key=lambda name: _saved_steps(name, paths), default=None)
    if name is None or not _saved_steps(name, paths):
        return None
    return _with_all_columns([node for path in paths for node in path.get(name, ())])


def _row_wise_operators(end: Node) -> dict[str, list[Node]]:
    """The operators up to `end` with only row-by-row operators upstream, by name.

    A sink may have the same operator twice with different lineage.
    """
    operators: dict[str, list[Node]] = {}
    for node in graph.walk(end):
        if isinstance(node, Select | Where) and all(isinstance(e, Source | Select | Where) for e in graph.walk(node)):
            operators.setdefault(node.name, []).append(node)
    return operators


def _saved_steps(name: str, paths: list[dict[str, list[Node]]]) -> int:
    """The number of operator runs that sharing saves."""
    nodes = [path[name][0] for path in paths if name in path]
    return (len(nodes) - 1) * len(list(graph.walk(nodes[0])))


def _with_all_columns(nodes: list[Node]) -> Node:
    """One operator with all columns that any sink reads."""
    first = nodes[0]
    if isinstance(first, Source):
        lineage = {name for each in nodes if isinstance(each, Source) for name in each.lineage}
        return replace(first, lineage=tuple(name for name in LINEAGE if name in lineage))
    whole = graph.with_inputs(first, (_with_all_columns([graph.inputs(each)[0] for each in nodes]),))
    if isinstance(whole, Select):
        columns = dict(pair for each in nodes if isinstance(each, Select) for pair in each.columns)
        whole = replace(whole, columns=tuple(columns.items()))
    return whole
