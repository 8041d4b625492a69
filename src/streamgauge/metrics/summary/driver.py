"""What the driver did and what delayed it: schedule delay, counts, waits for a core, stalls of the recorder."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from streamgauge.core.arrays import Floats
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.metrics.log.batch_frontiers import read_skew_us
from streamgauge.metrics.log.trial_record import TrialRecord
from streamgauge.metrics.records import RUNNER, STILL_US_MIN
from streamgauge.metrics.summary.resources import usage_by_second
from streamgauge.metrics.summary.spans import is_measured
from streamgauge.results.run import DelayPercentiles, DriverResult
from streamgauge.transports.spi import BusyInterval


def driver_result(record: TrialRecord) -> DriverResult:
    trial_log = record.trial_log
    totals = usage_by_second(trial_log.usages, "driver")
    inside = usage_by_second((one for one in trial_log.usages if is_measured(record, one.time_us)), "driver")
    return DriverResult(
        slip_us=schedule_delay(record),
        events_planned=trial_log.plan.planned_events(record.spans.start_us, record.spans.end_us),
        events_offered=trial_log.offered_events(),
        events_handed_out=int(trial_log.running.delivered_by(FAR_FUTURE_US)),
        events_reread=trial_log.running.reread_events,
        events_shared=trial_log.running.shared_events.total(),
        events_committed=trial_log.committed_events(),
        cpu_percent=float(np.mean([cpu for cpu, _ in inside.values()])) if inside else None,
        memory_bytes_max=max((memory for _, memory in totals.values()), default=None),
        recorder_stood_still_us=stood_still_us(record),
        read_skew_us_max=read_skew_us(trial_log, record.spans.measured_from_us, record.spans.measured_to_us),
        hand_out_share=share_of_span(record, trial_log.delivering),
        receive_share=share_of_span(record, trial_log.receiving),
        disk_share=share_of_span(record, trial_log.writing),
    )


def schedule_delay(record: TrialRecord) -> DelayPercentiles:
    delays_us = record.trial_log.schedule_delays(record.spans.measured_from_us, record.spans.measured_to_us)
    return _percentiles_of(delays_us) if len(delays_us) else DelayPercentiles(p50=0.0, p99=0.0, max=0.0)


def append_latency(latencies_us: Sequence[int]) -> DelayPercentiles | None:
    """Percentiles of the broker's append latencies; None without samples."""
    return _percentiles_of(latencies_us) if latencies_us else None


def _percentiles_of(values_us: Sequence[int] | Floats) -> DelayPercentiles:
    p50, p99, most = np.percentile(values_us, [50, 99, 100])
    return DelayPercentiles(p50=float(p50), p99=float(p99), max=float(most))


def core_wait_us(record: TrialRecord) -> float:
    """The mean wait for a core of the driver process that waited longest, over the measured span; NaN if unknown.

    The runner does not count, because it stamps nothing.
    """
    waits: dict[str, list[float]] = defaultdict(list)
    for usage in record.trial_log.usages:
        stamps = usage.role == "driver" and usage.name != RUNNER
        if stamps and is_measured(record, usage.time_us) and not math.isnan(usage.core_wait_us):
            waits[usage.name].append(usage.core_wait_us)
    return max((float(np.mean(waited)) for waited in waits.values()), default=math.nan)


def share_of_span(record: TrialRecord, spent: Iterable[BusyInterval]) -> float:
    """The share of the measured span that the intervals cover; for a trial that ended earlier, of its warm-up.

    Overlapping intervals count once, because engines may read partitions at the same time or one after the other.
    """
    low, high = record.spans.measured_from_us, record.measured_until
    if high <= low:
        low, high = record.spans.start_us, record.offered_until()
    covered, reached = 0, low
    for since, until in sorted(spent):
        begin, end = max(since, reached), min(until, high)
        covered, reached = covered + max(0, end - begin), max(reached, end)
    return covered / (high - low) if high > low else 0.0


def stood_still_us(record: TrialRecord) -> int:
    """The recorder's standstills beyond the allowed length, while results of the measured span may have arrived.

    From the span's start to the deadline, which follows soon after the last of those results.
    """
    low, high = (
        record.spans.measured_from_us,
        record.deadline_us or FAR_FUTURE_US,
    )  # there is no deadline yet while it runs
    beyond = ((when - late + STILL_US_MIN, when) for when, late in record.trial_log.stood_still)
    return sum(max(0, min(until, high) - max(since, low)) for since, until in beyond)
