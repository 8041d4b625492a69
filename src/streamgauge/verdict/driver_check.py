"""The check `driver`: the driver kept the plan in time, clocks agree, the SUT did not wait. Else invalid."""

from __future__ import annotations

import math

import numpy as np

from streamgauge.core.clock import US
from streamgauge.core.formatting import format_us, share_beside
from streamgauge.results.codes import Cause
from streamgauge.results.verdict import Check
from streamgauge.verdict.check_spec import CheckSpec, Condition, combine, make_check
from streamgauge.verdict.evidence import Evidence

PLAN_SHARE_MIN = 0.99
"""Share of the plan that the driver must offer in every second of the span."""
SCHEDULE_DELAY_US_MAX = 100_000
DELAY_SHARE_OF_LATENCY = 0.02
CORE_WAIT_US_MAX = 10_000.0
BUSY_SHARE_MAX = 0.5
"""Share of the span in which one end of the transport may be busy. Above it, the trial measures the driver. A driver
that keeps up is busy for a few percent: a delivery takes 3 ns per event."""
BUSY_SHARE_MAX_IF_SLOW = 0.25
"""The same for a slow SUT, which might have kept up without waiting for the driver."""
STALL_SHARE_MAX = 0.01
"""Share of the span in which the recorder may stand still without moving a percentile up to the 99th."""


def _driver(evidence: Evidence) -> Check:
    if evidence.limit_reached:
        return make_check("driver", "invalid", Cause.LIMIT_REACHED, 1, 0, "failures", evidence.driver_reason)
    if evidence.driver_reason:
        sentence = f"a process of the driver failed: {evidence.driver_reason}"
        code = Cause.DISK_FULL if evidence.driver_disk_full else Cause.DRIVER_FAILED
        return make_check("driver", "invalid", code, 1, 0, "failures", sentence)
    busy = _busy_parts(evidence, BUSY_SHARE_MAX)
    parts = [_clock(evidence), _plan(evidence), _schedule_delay(evidence), *busy, _standstill(evidence)]
    if not math.isnan(evidence.core_wait_us):
        return combine("driver", [*parts, _starvation(evidence)], "invalid", shown=2)
    check = combine("driver", parts, "invalid", shown=2)
    return check.model_copy(update={"sentence": f"{check.sentence}; its wait for a core is unknown"})


def _plan(evidence: Evidence) -> Condition:
    planned, offered = np.asarray(evidence.planned_per_s, float), np.asarray(evidence.offered_per_s, float)
    loaded = planned > 0
    if not loaded.any():
        raise ValueError("no second of the plan was recorded")
    share = float((offered[loaded] / planned[loaded]).min())
    offered_share = share_beside(share, PLAN_SHARE_MIN, 1)
    sentence = f"in the worst second the driver offered {offered_share} of the plan (minimum {PLAN_SHARE_MIN:.0%})"
    return Condition(share >= PLAN_SHARE_MIN, Cause.PLAN_NOT_KEPT, share, PLAN_SHARE_MIN, "share of plan", sentence)


def _schedule_delay(evidence: Evidence) -> Condition:
    limit = max(SCHEDULE_DELAY_US_MAX, DELAY_SHARE_OF_LATENCY * _least_p50(evidence))
    delay = evidence.schedule_delay_us_p99
    sentence = f"events became available {format_us(delay)} late (p99, limit {format_us(limit)})"
    return Condition(delay <= limit, Cause.SCHEDULE_DELAY, delay, limit, "us", sentence)


def _least_p50(evidence: Evidence) -> float:
    """The event-time p50 of the fastest sink in microseconds, which a late driver disturbs most.

    A trial that ended early, or still runs, has no latencies yet. The output lag at commits then stands for them: no
    result of a batch came sooner. 0 if nothing was committed.
    """
    latencies = [sink.latency for sink in evidence.sinks] or [evidence.latencies]
    p50s = [one.event_time_us.p50 for one in latencies if one.event_time_us is not None]
    values = [p50 for p50 in p50s if p50 is not None]
    if values and len(values) == len(p50s):
        return min(values)
    return evidence.output_delay_s * US


def _starvation(evidence: Evidence) -> Condition:
    wait, limit = evidence.core_wait_us, CORE_WAIT_US_MAX
    sentence = f"a driver process waited {format_us(wait)} for a core at each wake-up (limit {format_us(limit)})"
    return Condition(wait <= limit, Cause.DRIVER_STARVED, wait, limit, "us", sentence)


def _clock(evidence: Evidence) -> Condition:
    negative = evidence.negative_latencies
    sentence = f"{negative:,} right results came before their event, so a clock is wrong"
    return Condition(negative == 0, Cause.NEGATIVE_LATENCY, negative, 0, "results", sentence)


_BUSY = (
    (Cause.DELIVERY_BUSY, "the generators delivered events for {share} of the time"),
    (Cause.RECORDER_BUSY, "the recorder processed results for {share} of the time"),
    (Cause.RECORDER_DISK_BUSY, "the recorder waited for its disk for {share} of the time"),
)


def _busy_parts(evidence: Evidence, limit: float, condition: str = "") -> list[Condition]:
    """What the SUT may have waited for: the driver's deliveries, its recorder, and the recorder's disk."""
    shares = (evidence.delivery_share, evidence.receive_share, evidence.disk_share)
    return [
        Condition(
            share <= limit, code, share, limit, "share of time",
            f"{sentence.format(share=share_beside(share, limit))} (limit {limit:.0%}{condition})",
        )
        for share, (code, sentence) in zip(shares, _BUSY, strict=True)
    ]  # fmt: skip


def driver_bottleneck(evidence: Evidence) -> Check | None:
    """The check `driver` if a slow SUT may have waited for the driver; else None."""
    parts = _busy_parts(evidence, BUSY_SHARE_MAX_IF_SLOW, " if the system did not keep up")
    return None if all(part.holds for part in parts) else combine("driver", parts, "invalid", shown=0)


def _standstill(evidence: Evidence) -> Condition:
    stall_s, limit = evidence.recorder_stall_s, STALL_SHARE_MAX
    share = stall_s / evidence.span_s if evidence.span_s else 0.0
    sentence = (
        f"the recorder stood still for {stall_s:.1f} s of {evidence.span_s:.0f} s (limit {limit:.0%}), so results "
        "that arrived meanwhile have late timestamps"
    )
    return Condition(share <= limit, Cause.RECORDER_STALLED, share, limit, "share of time", sentence)


_FASTER_DRIVER = "close other processes, use more generators (--generators), separate the driver's cores (--isolation \
pinned), use longer chunks if rows have many columns (--chunk), or lower the rate"

DRIVER = CheckSpec(
    "driver",
    _driver,
    advice_invalid="close other processes, separate the driver's cores (--isolation pinned), or lower the rate",
    advice_by_code={
        Cause.NEGATIVE_LATENCY: "check the time synchronisation of every machine (and of the broker): a clock moved or "
        "differs, for instance after a suspend; then run it again",
        Cause.LIMIT_REACHED: "raise the limit, or lower what needs it: the heap (--option driver_memory), the queue "
        "(--memory), the generators (--generators)",
        Cause.DRIVER_FAILED: "remove the reason named above (logs: engine/ of the run folder), then run it again",
        Cause.RECORDER_DISK_BUSY: "put scratch files on a faster disk (TMPDIR), or lower the rate",
        Cause.PLAN_NOT_KEPT: _FASTER_DRIVER,
        Cause.SCHEDULE_DELAY: _FASTER_DRIVER,
        Cause.DELIVERY_BUSY: "use more generators (--generators), fewer bytes per event, or a lower rate",
        Cause.RECORDER_STALLED: "let nothing pause the driver (a debugger, a suspended container or virtual machine), "
        "then run it again",
    },
)
