"""What several sinks of a flow begin with, computed once for the verification of all of them.

Each sink is verified alone; to parse twenty million lines anew for each of four took longer than the trial. The rows of
the last operator that several sinks have in common, and that looks at one row at a time, are kept in a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamgauge.engines.oracle.lower import kept_name, lower
from streamgauge.flow import graph
from streamgauge.flow.nodes import Flow, Node, Select, Source, Where
from streamgauge.run.comparison import database
from streamgauge.run.conduct import Conducted
from streamgauge.run.ingest import IngestTimes
from streamgauge.run.ready import Ready
from streamgauge.run.replay import Input, Watch
from streamgauge.system.scratch import Scratch


@contextmanager
def rows_of_several(ready: Ready, done: Conducted, watch: Watch) -> Iterator[dict[str, str]]:
    """A relation with the rows of such an operator, under the name by which the reference looks for it; nothing where
    there is none. `watch` is shown the input.
    """
    node = last_of_several(_compared_whole(ready))
    if node is None:
        yield {}
        return
    source = Input(done.journal.plan, IngestTimes(done.journal), ready.columns, watch)
    with Scratch("verify") as folder:
        path = Path(folder) / "rows.parquet"
        with database() as connection:
            relations = source.registered(connection, done.spans.start_us, done.offered_until())
            connection.execute(f"COPY ({lower(node, relations)}) TO '{path}' (FORMAT parquet, COMPRESSION lz4_raw)")
        yield {kept_name(node): f"read_parquet('{path}')"}


def _compared_whole(ready: Ready) -> Flow:
    """The sinks that read all of their input at once; others are compared slice by slice."""
    alone = zip(ready.lineage_flow.sinks, ready.of_each_sink(), strict=True)
    return Flow(tuple(sink for sink, each in alone if each.reach_us))


def last_of_several(flow: Flow) -> Node | None:
    """The operator furthest from its source that two sinks have in common, with nothing but row by row before it."""
    ways = [set(graph.walk(sink.input)) for sink in flow.sinks]
    candidates = [
        node
        for node in graph.operators(flow)
        if isinstance(node, Select | Where) and sum(node in way for way in ways) > 1 and _is_row_wise(node)
    ]
    return max(candidates, key=lambda node: len(list(graph.walk(node))), default=None)


def _is_row_wise(node: Node) -> bool:
    return all(isinstance(each, Source | Select | Where) for each in graph.walk(node))
