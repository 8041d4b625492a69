"""Trials made by rule, for the tests of what is said of them."""

from typing import Any

from streamgauge.core.clock import US
from streamgauge.core.trial import TrialSpans
from streamgauge.metrics.histogram import read_log
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.results.latency import Latencies, Latency
from streamgauge.results.run import Verification
from streamgauge.transports.spi import Delivery

START = 1_700_000_000 * US
RATE = 1000.0
SECONDS = 40
RIGHT = Verification(judged=True, independent=True, reference="here", expected=9, matched=9)
LATENCIES = Latencies(event_time_us=Latency(p50=500_000.0, count=9, effective_count=9))


def done_of(make: Any, profile: str = "constant", **story: Any) -> TrialRecord:
    """40 s: 5 of warm-up, 30 measured, 5 of tail."""
    spans = TrialSpans(START, START + 5 * US, START + 35 * US, START + 40 * US)
    made = make.story(plan=make.plan(seconds=120, profile=profile), seconds=SECONDS, **story)
    return TrialRecord(made.trial_log(), spans, drained=True, deadline_us=START + 41 * US)


def part(stream: str, low: float, high: float, events: int, at: float, batch: int, again: bool = False) -> Delivery:
    """A delivery, its times in seconds after START."""
    return Delivery(
        stream, START + round(low * US), START + round(high * US), events, START + round(at * US), batch, again
    )


def journal_of(make: Any, *logs: list[Delivery], streams: int = 1, commits: tuple[Any, ...] = ()) -> TrialLog:
    trial_log = TrialLog(make.plan(partitions=len(logs), streams=streams))
    trial_log.add(make.tick([[] for _ in logs], list(logs), list(commits)))
    return trial_log


def cut_short(record: TrialRecord, after_us: int) -> TrialRecord:
    """The same trial, had it ended then: nothing later was offered, read or committed."""
    trial_log, until = record.trial_log, START + after_us
    trial_log.chunks = [[chunk for chunk in log if chunk.published_us <= until] for log in trial_log.chunks]
    trial_log.deliveries = [[part for part in log if part.ingest_us <= until] for log in trial_log.deliveries]
    trial_log.commits = [commit for commit in trial_log.commits if commit.committed_us <= until]
    record.drained, record.deadline_us = False, until
    return record


def kinds_in(log: str) -> dict[str, list[tuple[int, int]]]:
    """Of a log of latencies: tag to the (second, number of values) of its intervals."""
    found: dict[str, list[tuple[int, int]]] = {}
    for tag, second, histogram in read_log(log):
        found.setdefault(tag, []).append((second, histogram.count))
    return found
