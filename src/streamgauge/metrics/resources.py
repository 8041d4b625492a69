"""What the processes of a trial used, and what delayed the driver.

CPU and memory of every process; schedule delay, counts, waits for a core and standstills of the driver.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from streamgauge.core.arrays import Floats
from streamgauge.core.clock import US
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.metrics.delivery_times import read_skew_us
from streamgauge.metrics.records import RUNNER, STILL_US_MIN, Usage
from streamgauge.metrics.trial_record import TrialRecord, is_measured
from streamgauge.results.run import DelayPercentiles, DriverResult, ProcessUse
from streamgauge.transports.spi import BusyInterval


def processes(record: TrialRecord) -> tuple[ProcessUse, ...]:
    """Use of every process over the measured span; the SUT's Python workers come and go, so they are summed.

    If the SUT has processes of several kinds, each kind also has a row, which is part of the SUT's sum.
    """
    groups: dict[tuple[str, Any], list[Usage]] = defaultdict(list)
    for usage in record.trial_log.usages:
        if is_measured(record, usage.time_us):
            groups["sut" if usage.role == "sut" else usage.name, usage.role].append(usage)
    uses = [_process_use(name, role, usages) for (name, role), usages in sorted(groups.items())]
    of_sut = groups.get(("sut", "sut"), [])
    kinds = sorted({usage.kind for usage in of_sut})
    for kind in kinds if len(kinds) > 1 else ():
        # 0 in a second without a process of that kind.
        of_kind = [usage if usage.kind == kind else replace(usage, cpu_percent=0.0, memory_bytes=0) for usage in of_sut]
        uses.append(_process_use(f"sut: {kind}", "sut", of_kind).model_copy(update={"role": "sut_part"}))
    return tuple(uses)


def _process_use(name: str, role: Any, usages: list[Usage]) -> ProcessUse:
    totals = usage_by_second(usages, role)
    cpu = [one for one, _ in totals.values()]
    return ProcessUse(
        name=name, role=role, cpu_percent_mean=float(np.mean(cpu)), cpu_percent_max=float(np.max(cpu)),
        memory_bytes_max=max(memory for _, memory in totals.values()),
    )  # fmt: skip


def usage_by_second(usages: Iterable[Usage], role: str) -> dict[int, tuple[float, int]]:
    """Second to (CPU percent, resident bytes), summed over the processes of one role."""
    sums: dict[int, tuple[float, int]] = {}
    for usage in usages:
        if usage.role == role:
            cpu, memory = sums.get(usage.time_us // US, (0.0, 0))
            sums[usage.time_us // US] = (cpu + usage.cpu_percent, memory + usage.memory_bytes)
    return sums


def loopback_bytes_per_s(record: TrialRecord) -> float | None:
    """Mean traffic over the loopback in the measured span; None with fewer than two readings of its counter."""
    inside = [reading for reading in record.trial_log.loopback if is_measured(record, reading[0])]
    if len(inside) < 2:
        return None
    (from_us, before), (to_us, after) = inside[0], inside[-1]
    return (after - before) * US / (to_us - from_us)


def driver_result(record: TrialRecord) -> DriverResult:
    trial_log = record.trial_log
    inside = usage_by_second((one for one in trial_log.usages if is_measured(record, one.time_us)), "driver")
    return DriverResult(
        slip_us=schedule_delay(record),
        events_planned=trial_log.plan.planned_events(record.spans.start_us, record.spans.end_us),
        events_offered=trial_log.running.offered_events,
        events_handed_out=int(trial_log.running.delivered_by(FAR_FUTURE_US)),
        events_reread=trial_log.running.reread_events,
        events_shared=trial_log.running.shared_events.total(),
        events_committed=trial_log.committed_events(),
        cpu_percent=float(np.mean([cpu for cpu, _ in inside.values()])) if inside else None,
        memory_bytes_max=max(
            (memory for _, memory in usage_by_second(trial_log.usages, "driver").values()), default=None
        ),
        recorder_stood_still_us=stood_still_us(record),
        read_skew_us_max=read_skew_us(trial_log, record.spans.measured_from_us, record.spans.measured_to_us),
        hand_out_share=share_of_span(record, trial_log.delivering),
        receive_share=share_of_span(record, trial_log.receiving),
        disk_share=share_of_span(record, trial_log.writing),
    )


def schedule_delay(record: TrialRecord) -> DelayPercentiles:
    delays_us = record.trial_log.schedule_delays(record.spans.measured_from_us, record.spans.measured_to_us)
    return delay_percentiles(delays_us) or DelayPercentiles(p50=0.0, p99=0.0, max=0.0)


def delay_percentiles(delays_us: Sequence[int] | Floats) -> DelayPercentiles | None:
    """None without samples."""
    if not len(delays_us):
        return None
    p50, p99, most = np.percentile(delays_us, [50, 99, 100])
    return DelayPercentiles(p50=float(p50), p99=float(p99), max=float(most))


def core_wait_us(record: TrialRecord) -> float:
    """The mean wait for a core of the driver process that waited longest, over the measured span; NaN if unknown.

    The runner does not count, because it stamps nothing.
    """
    waits: dict[str, list[float]] = defaultdict(list)
    for usage in record.trial_log.usages:
        if (
            usage.role == "driver"
            and usage.name != RUNNER
            and is_measured(record, usage.time_us)
            and not math.isnan(usage.core_wait_us)
        ):
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
    # While the trial runs, there is no deadline yet.
    low, high = record.spans.measured_from_us, record.deadline_us or FAR_FUTURE_US
    beyond = ((when - late + STILL_US_MIN, when) for when, late in record.trial_log.stood_still)
    return sum(max(0, min(until, high) - max(since, low)) for since, until in beyond)
