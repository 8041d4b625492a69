"""The event times at which batches end, over all partitions and streams of their query. Computed after a trial.

With a common frontier a batch ends at the same event time everywhere. Otherwise each partition has its own pace, and
one that a batch does not read stays where earlier batches left it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from streamgauge.loadgen.plan import Plan
from streamgauge.metrics.log.trial_log import TrialLog
from streamgauge.transports.spi import Delivery, StreamPartition


class Cuts(NamedTuple):
    """The ascending event times at which all readers of a committed batch ended, and the number of batches without one.

    The results of a batch without a common end are due at the next of these times.
    """

    times: list[int]
    uneven: int


def cuts(trial_log: TrialLog) -> Cuts:
    """The ends of the committed batches of one sink's log."""
    reached = [trial_log.running.ends_of((commit.query, commit.batch)) for commit in trial_log.commits]
    common = sorted(end for each in reached if len(each) == 1 for end in each)
    return Cuts(common, sum(len(each) > 1 for each in reached))


def read_skew_us(trial_log: TrialLog, from_us: int, to_us: int, across_streams: bool = False) -> int:
    """The largest event-time distance between a read event and an earlier unread one of its stream.

    Compared after each batch of the span, because partitions without a common frontier differ. 0 if there was none.
    `across_streams`: the earlier one may be of another stream, which a union puts under the same watermark.
    """
    logs: dict[tuple[str, str], dict[StreamPartition, list[Delivery]]] = defaultdict(lambda: defaultdict(list))
    for partition, log in enumerate(trial_log.deliveries):
        for part in log:
            logs[part.query, "" if across_streams else part.stream][part.stream, partition].append(part)
    several = (of for of in logs.values() if len(of) > 1)
    return max((_skew_us(trial_log.plan, of, from_us, to_us) for of in several), default=0)


def _skew_us(plan: Plan, logs: Mapping[StreamPartition, list[Delivery]], from_us: int, to_us: int) -> int:
    ends = {
        place: {part.batch: part.to_us for part in sorted(log, key=lambda part: (part.batch, part.to_us))}
        for place, log in logs.items()
    }
    when_us = {part.batch: part.when_us for log in logs.values() for part in log}
    so_far, most_us = dict.fromkeys(logs, 0), 0
    for batch in sorted(when_us):
        so_far = {place: max(end, ends[place].get(batch, 0)) for place, end in so_far.items()}
        if from_us <= when_us[batch] < to_us and min(so_far.values()):
            latest_us = max(
                plan.last_before(plan.number_of(stream), partition, end) or 0
                for (stream, partition), end in so_far.items()
            )
            most_us = max(most_us, latest_us - min(so_far.values()))
    return most_us
