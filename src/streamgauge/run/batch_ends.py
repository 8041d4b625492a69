"""Up to which event times batches read, over all partitions and streams of their query: asked once, after a trial.

With a common frontier a batch ends at one event time wherever it reads. Without one each partition goes at a pace of
its own, and one that a batch passes over stands where the batches before it have left it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from streamgauge.load.plan import Plan
from streamgauge.run.journal import Journal
from streamgauge.run.running import Batch
from streamgauge.transports.seam import HandOut

Reader = tuple[int, str, int]
"""Of a query, what has an end of its own: (partition, stream, which of the query's readers of it)."""


class Cuts(NamedTuple):
    """Event times at which all readers of a committed batch ended, ascending, and how many batches have no such time,
    as without a common frontier. What such a batch gave is owed, as far as it is the last, at the next of these times.
    """

    times: list[int]
    uneven: int


def cuts(journal: Journal) -> Cuts:
    """Where the committed batches of a journal of one sink end."""
    ends = _ends(journal)
    batches = [(commit.query, commit.batch) for commit in journal.commits]
    reached = [{of[batch] for of in ends[query].values() if batch in of} for query, batch in batches if query in ends]
    common = sorted(end for each in reached if len(each) == 1 for end in each)
    return Cuts(common, sum(len(each) > 1 for each in reached))


def committed_ends(journal: Journal) -> dict[str, list[int]]:
    """Sink to the event times up to which its committed batches, with those before them, had read every partition and
    stream that their query has read at all, ascending.
    """
    ends = _reached_by_batch(journal)
    found: dict[str, list[int]] = {sink: [] for sink in journal.sinks}
    for commit in journal.commits:
        if commit.sink in found and (commit.query, commit.batch) in ends:
            found[commit.sink].append(ends[commit.query, commit.batch])
    return {sink: sorted(reached) for sink, reached in found.items()}


def read_skew_us(journal: Journal, from_us: int, to_us: int) -> int:
    """How far behind an event that was read the first of its stream was that was not, after a batch of the span at
    most, in event time: partitions may be read at no common one. 0 where none was.
    """
    logs: dict[tuple[str, str], dict[int, list[HandOut]]] = defaultdict(lambda: defaultdict(list))
    for partition, log in enumerate(journal.hand_outs):
        for part in log:
            logs[part.query, part.stream][partition].append(part)
    several = ((stream, of) for (_, stream), of in logs.items() if len(of) > 1)
    return max((_skew_us(journal.plan, stream, of, from_us, to_us) for stream, of in several), default=0)


def _ends(journal: Journal) -> Mapping[str, Mapping[Reader, Mapping[int, int]]]:
    """Query to its readers to each batch's end there.

    One read may be noted in parts, at borders of other queries' reads: its last part is where it ends.
    """
    found: dict[str, dict[Reader, dict[int, int]]] = defaultdict(lambda: defaultdict(dict))
    for partition, log in enumerate(journal.hand_outs):
        for part in log:
            of_reader = found[part.query][partition, part.stream, part.reader]
            of_reader[part.batch] = max(of_reader.get(part.batch, 0), part.to_us)
    return found


def _reached_by_batch(journal: Journal) -> dict[Batch, int]:
    found: dict[Batch, int] = {}
    for query, readers in _ends(journal).items():
        so_far = dict.fromkeys(readers, 0)
        for batch in sorted({batch for ends in readers.values() for batch in ends}):
            so_far |= {reader: max(so_far[reader], ends.get(batch, 0)) for reader, ends in readers.items()}
            found[query, batch] = min(so_far.values())
    return found


def _skew_us(plan: Plan, stream: str, logs: Mapping[int, list[HandOut]], from_us: int, to_us: int) -> int:
    ends = {
        partition: {part.batch: part.to_us for part in sorted(log, key=lambda part: (part.batch, part.to_us))}
        for partition, log in logs.items()
    }
    when_us = {part.batch: part.when_us for log in logs.values() for part in log}
    number, so_far, most_us = plan.number_of(stream), dict.fromkeys(logs, 0), 0
    for batch in sorted(when_us):
        so_far = {partition: max(end, ends[partition].get(batch, 0)) for partition, end in so_far.items()}
        if from_us <= when_us[batch] < to_us and min(so_far.values()):
            latest_us = max(plan.last_before(number, partition, end) or 0 for partition, end in so_far.items())
            most_us = max(most_us, latest_us - min(so_far.values()))
    return most_us
