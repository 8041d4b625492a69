"""What several sinks of a flow begin with, computed once for the verification of all of them.

Each sink is verified alone; to parse twenty million lines anew for each of four took longer than the trial. The rows of
an operator that several sinks have in common, and before which nothing looks at more than one row, are kept in a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamgauge.engines.oracle.lower import kept_name, lower
from streamgauge.flow import graph
from streamgauge.flow.nodes import Flow, Node, Select, Source, Where
from streamgauge.load.file_rows import quoted_path
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
    node = shared_by_several(_compared_whole(ready))
    if node is None:
        yield {}
        return
    source = Input(done.journal.plan, IngestTimes(done.journal), ready.columns, watch)
    with Scratch("verify") as folder:
        path = Path(folder) / "rows.parquet"
        with database() as connection:
            relations = source.registered(connection, done.spans.start_us, done.offered_until())
            connection.sql(lower(node, relations)).write_parquet(str(path), compression="lz4_raw")
        yield {kept_name(node): f"read_parquet({quoted_path(path)})"}


def _compared_whole(ready: Ready) -> Flow:
    """The sinks that read all of their input at once; what looks at one row at a time is compared slice by slice."""
    alone = zip(ready.lineage_flow.sinks, ready.of_each_sink(), strict=True)
    return Flow(tuple(sink for sink, each in alone if each.reach_us != 0))


def shared_by_several(flow: Flow) -> Node | None:
    """The operator that saves most: with nothing but row by row before it, and as many steps as often as can be."""
    ways = [set(graph.walk(sink.input)) for sink in flow.sinks]

    def saved(node: Node) -> int:
        return (sum(node in way for way in ways) - 1) * len(list(graph.walk(node)))

    candidates = [node for node in graph.operators(flow) if isinstance(node, Select | Where) and _is_by_the_row(node)]
    found = max(candidates, key=saved, default=None)
    return found if found is not None and saved(found) else None


def _is_by_the_row(node: Node) -> bool:
    return all(isinstance(each, Source | Select | Where) for each in graph.walk(node))
