"""What several sinks of a flow begin with, computed once for the verification of all of them.

Each sink is verified alone; to parse twenty million lines anew for each of four took longer than the trial. The rows of
an operator that several sinks have in common, and before which nothing looks at more than one row, are kept in a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from streamgauge.core.lineage_columns import LINEAGE
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Flow, Node, Select, Source, Where
from streamgauge.engines.duckdb_oracle.lower import lower, retained_name
from streamgauge.loadgen.replay.text import quoted_path
from streamgauge.metrics.log.ingest_times import IngestTimes
from streamgauge.metrics.log.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.system.scratch import Scratch
from streamgauge.verification.regenerated_input import RegeneratedInput, Watch
from streamgauge.verification.sink_comparison import database


@contextmanager
def shared_plans(resolved: ResolvedExperiment, record: TrialRecord, watch: Watch) -> Iterator[dict[str, str]]:
    """A relation with the rows of such an operator, under the name by which the reference looks for it; nothing where
    there is none. `watch` is shown the input.
    """
    node = is_shared(_compared_whole(resolved))
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
    """The sinks that read all of their input at once; what looks at one row at a time is compared slice by slice."""
    alone = zip(resolved.lineage_flow.sinks, resolved.of_each_sink(), strict=True)
    return Flow(tuple(sink for sink, each in alone if each.reach_us != 0))


def is_shared(flow: Flow) -> Node | None:
    """The operator that saves most: with nothing but row by row before it, and as many steps as often as can be."""
    ways = [_by_the_row(sink.input) for sink in flow.sinks]
    found = max((name for way in ways for name in way), key=lambda name: _saved(name, ways), default=None)
    if found is None or not _saved(found, ways):
        return None
    return _with_all_columns([node for way in ways for node in way.get(found, ())])


def _by_the_row(end: Node) -> dict[str, list[Node]]:
    """The operators on the way to `end` before which nothing looks at more than one row, by name.

    A sink may have one of them twice, with different lineage: some of what follows is identified by events, some not.
    """
    found: dict[str, list[Node]] = {}
    for node in graph.walk(end):
        if isinstance(node, Select | Where) and all(isinstance(e, Source | Select | Where) for e in graph.walk(node)):
            found.setdefault(node.name, []).append(node)
    return found


def _saved(name: str, ways: list[dict[str, list[Node]]]) -> int:
    """How many steps need not be done again."""
    there = [way[name][0] for way in ways if name in way]
    return (len(there) - 1) * len(list(graph.walk(there[0])))


def _with_all_columns(same: list[Node]) -> Node:
    """One operator, with each column that any sink reads of it."""
    first = same[0]
    if isinstance(first, Source):
        given = {name for each in same if isinstance(each, Source) for name in each.lineage}
        return replace(first, lineage=tuple(name for name in LINEAGE if name in given))
    whole = graph.with_inputs(first, (_with_all_columns([graph.inputs(each)[0] for each in same]),))
    if isinstance(whole, Select):
        columns = dict(pair for each in same if isinstance(each, Select) for pair in each.columns)
        whole = replace(whole, columns=tuple(columns.items()))
    return whole
