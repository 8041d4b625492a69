"""What each operator of a flow took in and gave: the engine's counts, with the driver's at both ends [B §3.4].

An operator takes in what its inputs gave. What a source gave is what the driver handed out, and what comes before a
sink is what the recorder took, so an engine that loses rows at its edges is seen here too, whatever it says itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamgauge.engines.seam import OperatorRows
from streamgauge.events import US
from streamgauge.flow import graph
from streamgauge.flow.nodes import Flow, Node, Source
from streamgauge.report.series import OPERATORS
from streamgauge.result import Operator
from streamgauge.run.conduct import Spans
from streamgauge.run.journal import Batch, Journal
from streamgauge.stats.percentile import carries

LOW = 0.05
"""The percentile of the throughput that stands beside its mean [B §3.1.1]."""
Rows = dict[str, int]
"""Operator, or stream, or sink, to a number of rows."""


@dataclass(frozen=True)
class Counted:
    """What is known of the rows of each batch: by the engine, by the driver at sources, and by the driver at sinks."""

    engine: dict[Batch, Rows]
    handed_out: dict[Batch, Rows]
    taken: dict[Batch, Rows]

    def nodes(self, flow: Flow, query: str) -> list[Node]:
        """The operators of a query: all before the sinks that it commits to."""
        sinks = {sink for (committer, _), rows in self.taken.items() if committer == query for sink in rows}
        return list(graph.walk(*(sink.input for sink in flow.sinks if sink.name in sinks)))

    def gave(self, node: Node, batch: Batch, sinks: Sequence[str]) -> int | None:
        """What left a node in a batch; the driver's count where it has one."""
        if isinstance(node, Source):
            return self.handed_out.get(batch, {}).get(node.name)
        for sink in sinks:
            if sink in self.taken.get(batch, {}):
                return self.taken[batch][sink]
        return self.engine.get(batch, {}).get(node.name)

    @property
    def batches(self) -> list[Batch]:
        return sorted(self.engine.keys() | self.handed_out.keys())


def counted(rows: Sequence[OperatorRows], journal: Journal) -> Counted:
    """The engine's counts beside the driver's of the same batches."""
    engine: dict[Batch, Rows] = defaultdict(dict)
    for one in rows:
        engine[one.query, one.batch][one.operator] = one.rows
    taken: dict[Batch, Rows] = defaultdict(dict)
    for commit in journal.commits:
        taken[commit.query, commit.batch][commit.sink] = commit.rows
    return Counted(engine, _handed_out(journal), taken)


def _handed_out(journal: Journal) -> dict[Batch, Rows]:
    """Events of each stream; where a query reads it at several places, those of one, and never those of a re-read."""
    found: dict[Batch, Rows] = defaultdict(lambda: defaultdict(int))
    for part in journal.all_hand_outs():
        if part.reader == 0 and not part.again:
            found[part.query, part.batch][part.stream] += part.events
    return {batch: dict(streams) for batch, streams in found.items()}


def table(flow: Flow, known: Counted) -> pa.Table:
    """A row for each batch and operator of which anything is known, in the form of engine/operators.parquet."""
    return pa.Table.from_pylist(list(_rows(flow, known)), schema=OPERATORS)


def _rows(flow: Flow, known: Counted) -> Iterator[dict[str, object]]:
    sinks = _sinks(flow)
    nodes = {query: known.nodes(flow, query) for query, _ in known.batches}
    for query, batch in known.batches:
        for node in nodes[query]:
            taken_in = _taken_in(node, known, (query, batch), sinks)
            gave = known.gave(node, (query, batch), sinks[node.name])
            if taken_in is not None or gave is not None:
                yield {"batch_id": batch, "query": query, "operator": node.name, "rows_in": taken_in, "rows_out": gave}


def _sinks(flow: Flow) -> dict[str, list[str]]:
    """Operator to the sinks that take what it gives."""
    found: dict[str, list[str]] = defaultdict(list)
    for sink in flow.sinks:
        found[sink.input.name].append(sink.name)
    return found


def _taken_in(node: Node, known: Counted, batch: Batch, sinks: dict[str, list[str]]) -> int | None:
    fed = [known.gave(input_, batch, sinks[input_.name]) for input_ in graph.inputs(node)]
    numbers = [rows for rows in fed if rows is not None]
    return sum(numbers) if fed and len(numbers) == len(fed) else None


def summaries(flow: Flow, known: Counted, journal: Journal, spans: Spans) -> tuple[Operator, ...]:
    """Each operator over the batches that read events of the measured span. Where several queries have an operator,
    the first one's: the others do the same work again.
    """
    ends = journal.batch_ends()
    inside = [batch for batch in known.batches if spans.measured_from_us < ends.get(batch, 0) <= spans.measured_to_us]
    seconds = _seconds(journal, inside)
    sinks = _sinks(flow)
    found: dict[str, Operator] = {}
    for query in dict.fromkeys(query for query, _ in inside):
        mine = [batch for batch in inside if batch[0] == query]
        for node in known.nodes(flow, query):
            if node.name not in found:
                found[node.name] = _summary(node, known, mine, seconds, sinks)
    return tuple(found[node.name] for node in graph.operators(flow) if node.name in found)


def _seconds(journal: Journal, inside: Sequence[Batch]) -> dict[Batch, float]:
    """How long after the batch before it each was committed."""
    committed: dict[Batch, int] = {}
    for commit in journal.commits:
        batch = (commit.query, commit.batch)
        committed[batch] = min(committed.get(batch, commit.committed_us), commit.committed_us)
    before = {(query, batch): committed.get((query, batch - 1)) for query, batch in inside}
    return {
        batch: (committed[batch] - earlier) / US
        for batch, earlier in before.items()
        if batch in committed and earlier is not None and committed[batch] > earlier
    }


def _summary(
    node: Node, known: Counted, mine: Sequence[Batch], seconds: dict[Batch, float], sinks: dict[str, list[str]]
) -> Operator:
    own = sinks[node.name]
    taken_in = {batch: _taken_in(node, known, batch, sinks) for batch in mine}
    gave = {batch: known.gave(node, batch, own) for batch in mine}
    rows_in, rows_out = _sum(taken_in, mine), _sum(gave, mine)
    busy = {batch: rows for batch in mine if (rows := gave[batch] if isinstance(node, Source) else taken_in[batch])}
    mean, low = _throughput(busy, seconds)
    return Operator(
        name=node.name,
        rows_in=rows_in,
        rows_out=rows_out,
        selectivity=rows_out / rows_in if rows_in and rows_out is not None else None,
        throughput_per_s=mean,
        throughput_per_s_p5=low,
        lost=_lost(node, known, mine, own),
    )


def _sum(rows: dict[Batch, int | None], batches: Sequence[Batch]) -> int | None:
    """Null where it is not known of every batch."""
    numbers = [number for batch in batches if (number := rows[batch]) is not None]
    return sum(numbers) if len(numbers) == len(batches) else None


def _throughput(rows: dict[Batch, int], seconds: dict[Batch, float]) -> tuple[float | None, float | None]:
    """(mean, 5th percentile) of the rows a second of each batch; null where batches are too few for it."""
    timed = [(rows[batch], seconds[batch]) for batch in rows if batch in seconds]
    if not timed:
        return None, None
    counts, lengths = (np.array(each, np.float64) for each in zip(*timed, strict=True))
    low = float(np.quantile(counts / lengths, LOW)) if carries(1 - LOW, len(timed)) else None
    return float(counts.sum() / lengths.sum()), low


def _lost(node: Node, known: Counted, batches: Sequence[Batch], sinks: Sequence[str]) -> int | None:
    """What the driver handed out and the engine did not count, or the engine counted and the driver never got."""
    pairs = []
    for batch in batches:
        own, there = known.engine.get(batch, {}).get(node.name), known.gave(node, batch, sinks)
        if own is None or there is None or not (isinstance(node, Source) or sinks):
            return None
        pairs.append(there - own if isinstance(node, Source) else own - there)
    return sum(pairs) if pairs else None
