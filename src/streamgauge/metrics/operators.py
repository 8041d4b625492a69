"""Rows in and out of each operator, by the engine, and by the driver at sources and sinks (Bordin 2017, section 3.4).

The input of an operator is the output of its inputs. The driver counts what it delivered to sources and what the
recorder received from sinks. So an engine that loses rows at its edges is found, whatever it reports itself. Rows that
the engine dropped behind its watermark are its own count.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamgauge.artifacts.series_files import OPERATORS
from streamgauge.core.arrays import Floats
from streamgauge.core.clock import US
from streamgauge.core.engine_reports import LATE_ROWS, BatchProgress, OperatorRows, SeriesSample
from streamgauge.core.trial import TrialSpans
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Flow, Node, Select, Source
from streamgauge.metrics.delivery_times import read_skew_us
from streamgauge.metrics.trial_log import Batch, TrialLog
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.results.codes import WarningCode
from streamgauge.results.run import Operator
from streamgauge.results.verdict import Remark
from streamgauge.stats.samples import carries

LOW = 0.05
"""The percentile of the throughput that stands beside its mean (Bordin 2017, section 3.1.1)."""
Rows = dict[str, int]
"""Operator, or stream, or sink, to a number of rows."""
Span = tuple[int, int]
"""From when to when, microseconds of the run's clock."""


@dataclass(frozen=True)
class OperatorRowCounts:
    """Known rows of each batch of a flow: by the engine, by the driver at sources, and by the driver at sinks.

    `ends`: the batches of this trial in order, each with the event time up to which it read.
    """

    flow: Flow
    ends: dict[Batch, int]
    engine: dict[Batch, Rows]
    delivered: dict[Batch, Rows]
    recorded: dict[Batch, Rows]

    def nodes(self, query: str) -> list[Node]:
        """The operators of a query: all before the sinks that it commits to."""
        sinks = {sink for (committer, _), rows in self.recorded.items() if committer == query for sink in rows}
        return list(graph.walk(*(sink.input for sink in self.flow.sinks if sink.name in sinks)))

    def sinks_of(self, node: Node) -> list[str]:
        """The sinks that take a node's output."""
        return [sink.name for sink in self.flow.sinks if sink.input.name == node.name]

    def rows_in(self, node: Node, batch: Batch) -> int | None:
        """The input rows of a node in a batch; None for a source, or if those of an input are unknown."""
        fed = [self.rows_out(input_, batch) for input_ in graph.inputs(node)]
        numbers = [rows for rows in fed if rows is not None]
        return sum(numbers) if fed and len(numbers) == len(fed) else None

    def rows_out(self, node: Node, batch: Batch, at_sinks: bool = True) -> int | None:
        """The output rows of a node in a batch; the driver's count if there is one (`at_sinks`: that of sinks too)."""
        if isinstance(node, Source):
            return self.delivered[batch].get(node.name, 0) if batch in self.delivered else None
        for sink in self.sinks_of(node) if at_sinks else ():
            if sink in self.recorded.get(batch, {}):
                return self.recorded[batch][sink]
        operator_row_counts = self.engine.get(batch, {}).get(node.name)
        if operator_row_counts is None and batch in self.engine and isinstance(node, Select):
            # If several sinks share a query, no counter is behind a select on the way to one of them.
            return self.rows_out(node.input, batch, at_sinks=False)
        return operator_row_counts


def operator_row_counts(flow: Flow, rows: Sequence[OperatorRows], trial_log: TrialLog) -> OperatorRowCounts:
    """The engine's counts beside the driver's. Only batches of the log are read: the engine of a warm test bed may
    still report earlier trials.
    """
    engine: dict[Batch, Rows] = defaultdict(dict)
    for one in rows:
        engine[one.query, one.batch][one.operator] = one.rows
    recorded: dict[Batch, Rows] = defaultdict(dict)
    for commit in trial_log.commits:
        recorded[commit.query, commit.batch][commit.sink] = commit.rows
    delivered: dict[Batch, Rows] = defaultdict(Counter)
    for part in trial_log.all_deliveries():
        # Without redeliveries; of several places of one query, those of one place.
        if part.reader == 0 and not part.again:
            delivered[part.query, part.batch][part.stream] += part.events
    return OperatorRowCounts(flow, dict(sorted(trial_log.batch_ends().items())), engine, delivered, recorded)


def table(counts: OperatorRowCounts) -> pa.Table:
    """A row for each batch and operator with a known count, in the form of engine/operators.parquet."""
    nodes = {query: counts.nodes(query) for query, _ in counts.ends}
    rows = [
        {
            "batch_id": batch[1], "query": batch[0], "operator": node.name,
            "rows_in": counts.rows_in(node, batch), "rows_out": counts.rows_out(node, batch),
        }
        for batch in counts.ends
        for node in nodes[batch[0]]
    ]  # fmt: skip
    known = [row for row in rows if (row["rows_in"], row["rows_out"]) != (None, None)]
    return pa.Table.from_pylist(known, schema=OPERATORS)


def summaries(counts: OperatorRowCounts, trial_log: TrialLog, spans: TrialSpans) -> tuple[Operator, ...]:
    """Each operator over the batches that read events of the measured span.

    If several queries run an operator, the first one's figures count: the others repeat its work.
    """
    begin, end = spans.measured_from_us, spans.measured_to_us
    inside = [batch for batch, end_us in counts.ends.items() if begin < end_us <= end]
    worked = _worked(trial_log, inside)
    found: dict[str, Operator] = {}
    for query in dict.fromkeys(query for query, _ in inside):
        batches = [batch for batch in inside if batch[0] == query]
        for node in counts.nodes(query):
            if node.name not in found:
                found[node.name] = _summary(node, counts, batches, worked)
    return tuple(found[node.name] for node in graph.operators(counts.flow) if node.name in found)


def _worked(trial_log: TrialLog, inside: Sequence[Batch]) -> dict[Batch, Span]:
    """When each was worked on: from the commit of the batch before it to its own."""
    latest_first = sorted(trial_log.commits, key=lambda commit: commit.committed_us, reverse=True)
    committed = {(commit.query, commit.batch): commit.committed_us for commit in latest_first}
    before = {(query, batch): committed.get((query, batch - 1)) for query, batch in inside}
    return {
        batch: (earlier, committed[batch])
        for batch, earlier in before.items()
        if batch in committed and earlier is not None and committed[batch] > earlier
    }


def _summary(
    node: Node,
    counts: OperatorRowCounts,
    batches: Sequence[Batch],
    worked: dict[Batch, Span],
) -> Operator:
    out_by_batch = _known((batch, counts.rows_out(node, batch)) for batch in batches)
    in_by_batch = _known((batch, counts.rows_in(node, batch)) for batch in batches)
    both = out_by_batch.keys() & in_by_batch.keys()
    rows_in = sum(in_by_batch[batch] for batch in both)
    mean, low = _throughput(out_by_batch if isinstance(node, Source) else in_by_batch, batches, worked)
    return Operator(
        name=node.name,
        batches=len(batches),
        batches_unknown=len(batches) - len(out_by_batch if isinstance(node, Source) else both),
        rows_in=sum(in_by_batch.values()) if in_by_batch else None,
        rows_out=sum(out_by_batch.values()) if out_by_batch else None,
        selectivity=sum(out_by_batch[batch] for batch in both) / rows_in if rows_in else None,
        throughput_per_s=mean,
        throughput_per_s_p5=low,
        lost=_lost(node, counts, batches),
    )


def _known(rows: Iterable[tuple[Batch, int | None]]) -> dict[Batch, int]:
    return {batch: number for batch, number in rows if number is not None}


def _throughput(
    rows: dict[Batch, int], batches: Sequence[Batch], worked: dict[Batch, Span]
) -> tuple[float | None, float | None]:
    """(mean, 5th percentile) of the rows per second: the mean over all time with known counts, the other over seconds.

    The percentile is None if there are too few seconds.
    """
    timed = [batch for batch in batches if batch in rows and batch in worked]
    if not timed:
        return None, None
    seconds = sum(end - begin for begin, end in (worked[batch] for batch in timed)) / US
    start_us = min(worked[batch][0] for batch in batches if batch in worked)
    slots = _by_second([(worked[batch], rows[batch]) for batch in timed], start_us)
    low = float(np.quantile(slots, LOW)) if carries(1 - LOW, len(slots)) else None
    return sum(rows[batch] for batch in timed) / seconds, low


def _by_second(timed: Sequence[tuple[Span, int]], start_us: int) -> Floats:
    """Rows in each whole second from the start on, those of a batch spread evenly over the time in which it was worked
    on. Seconds in which nothing came count; those that a batch without a count reaches into do not.
    """
    moments = np.array([moment - start_us for span, _ in timed for moment in span], np.int64)
    reached, covered = (
        np.cumsum([part for step in steps for part in (0, step)])
        for steps in ([rows for _, rows in timed], [end - begin for (begin, end), _ in timed])
    )
    borders = np.arange(0, moments[-1] + 1, US)
    whole = np.diff(np.interp(borders, moments, covered)) == US
    return np.asarray(np.diff(np.interp(borders, moments, reached))[whole], np.float64)


def _lost(node: Node, counts: OperatorRowCounts, batches: Sequence[Batch]) -> int | None:
    """What the driver delivered and the engine did not count, or the engine counted and the driver never got."""
    pairs = []
    for batch in batches:
        by_engine, by_driver = counts.engine.get(batch, {}).get(node.name), counts.rows_out(node, batch)
        if by_engine is None or by_driver is None or not (isinstance(node, Source) or counts.sinks_of(node)):
            return None
        pairs.append(by_driver - by_engine if isinstance(node, Source) else by_engine - by_driver)
    return sum(pairs) if pairs else None


STEP_US = US // 10
"""Delays are rounded up to a tenth of a second."""


def late_rows(progress: Iterable[BatchProgress], series: Iterable[SeriesSample], since_us: int) -> int | None:
    """The engine's own count since then, by its batches or its series; None if it reports none.

    A batch's last report counts.
    """
    latest = {(one.query, one.batch): one.late_rows for one in progress if one.start_us >= since_us}
    known = [rows for rows in latest.values() if rows is not None]
    if known:
        return sum(known)
    totals = [(each.time_us, each.value) for each in series if each.name == LATE_ROWS]
    if not totals:
        return None
    return round(totals[-1][1] - max((value for time_us, value in totals if time_us < since_us), default=0.0))


def late_rows_warning(rows: int, record: TrialRecord, is_user_job: bool, delay_us: int = 0) -> Remark:
    """A warning about late rows with the skew that was read, and the least delay that keeps rows of such a skew.

    `delay_us`: the delay that they exceeded, so that the skew was at least that.
    """
    read_us = read_skew_us(record.trial_log, record.spans.start_us, record.spans.end_us, across_streams=True)
    skew_us = max(read_us, delay_us)
    return Remark(WarningCode.ROWS_DROPPED_AS_LATE, {
        "rows": rows, "skew_s": skew_us / US, "delay_s": (skew_us // STEP_US + 1) / 10,
        "is_user_job": is_user_job,
    })  # fmt: skip
