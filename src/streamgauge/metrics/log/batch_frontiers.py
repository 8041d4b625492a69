"""Up to which event times batches read, over all partitions and streams of their query: asked once, after a trial.

With a common frontier a batch ends at one event time wherever it reads. Without one each partition goes at a pace of
its own, and one that a batch passes over stands where the batches before it have left it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from streamgauge.loadgen.plan import Plan
from streamgauge.metrics.log.trial_log import TrialLog
from streamgauge.transports.spi import Delivery


class Cuts(NamedTuple):
    """Event times at which all readers of a committed batch ended, ascending, and how many batches have no such time,
    as without a common frontier. What such a batch gave is owed, as far as it is the last, at the next of these times.
    """

    times: list[int]
    uneven: int


def cuts(trial_log: TrialLog) -> Cuts:
    """Where the committed batches of a log of one sink end."""
    reached = [trial_log.running.ends_of((commit.query, commit.batch)) for commit in trial_log.commits]
    common = sorted(end for each in reached if len(each) == 1 for end in each)
    return Cuts(common, sum(len(each) > 1 for each in reached))


def read_skew_us(trial_log: TrialLog, from_us: int, to_us: int) -> int:
    """How far behind an event that was read the first of its stream was that was not, after a batch of the span at
    most, in event time: partitions may be read at no common one. 0 where none was.
    """
    logs: dict[tuple[str, str], dict[int, list[Delivery]]] = defaultdict(lambda: defaultdict(list))
    for partition, log in enumerate(trial_log.deliveries):
        for part in log:
            logs[part.query, part.stream][partition].append(part)
    several = ((stream, of) for (_, stream), of in logs.items() if len(of) > 1)
    return max((_skew_us(trial_log.plan, stream, of, from_us, to_us) for stream, of in several), default=0)


def _skew_us(plan: Plan, stream: str, logs: Mapping[int, list[Delivery]], from_us: int, to_us: int) -> int:
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
