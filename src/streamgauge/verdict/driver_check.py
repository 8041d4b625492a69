"""The check `driver`: the driver kept the plan in time, clocks agree, the SUT did not wait. Else invalid."""

import math
from dataclasses import replace

from streamgauge.core.clock import US
from streamgauge.results.codes import Cause, Detail
from streamgauge.results.verdict import Finding, Remark
from streamgauge.verdict.check_spec import Condition, combine
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


def check_driver(evidence: Evidence) -> Finding:
    if evidence.driver_reason:
        failure = Cause.DRIVER_SILENT if evidence.driver_silent else Cause.DRIVER_FAILED
        says = Cause.LIMIT_REACHED if evidence.limit_reached else failure
        code = Cause.DISK_FULL if evidence.driver_disk_full and not evidence.limit_reached else says
        failed = Condition(False, code, 1, 0, "failures", {"reason": evidence.driver_reason}, says)
        return failed.finding("driver", "invalid")
    loaded = evidence.planned_per_s > 0
    if not loaded.any():
        return Condition(False, Cause.NO_EVENT_DUE, None, PLAN_SHARE_MIN, "share of plan").finding(
            "driver", "undecided"
        )
    plan = float((evidence.offered_per_s[loaded] / evidence.planned_per_s[loaded]).min())
    negative, delay = evidence.negative_latencies, evidence.schedule_delay_us_p99
    delay_max = max(SCHEDULE_DELAY_US_MAX, DELAY_SHARE_OF_LATENCY * _least_p50(evidence))
    stalled = evidence.recorder_stall_s / evidence.span_s if evidence.span_s else 0.0
    parts = [
        Condition(negative == 0, Cause.NEGATIVE_LATENCY, negative, 0, "results"),
        Condition(plan >= PLAN_SHARE_MIN, Cause.PLAN_NOT_KEPT, plan, PLAN_SHARE_MIN, "share of plan"),
        Condition(delay <= delay_max, Cause.SCHEDULE_DELAY, delay, delay_max, "us"),
        *_busy_parts(evidence, BUSY_SHARE_MAX),
        Condition(
            stalled <= STALL_SHARE_MAX, Cause.RECORDER_STALLED, stalled, STALL_SHARE_MAX, "share of time",
            {"stall_s": evidence.recorder_stall_s, "span_s": evidence.span_s},
        ),
    ]  # fmt: skip
    wait_us = evidence.core_wait_us
    if not math.isnan(wait_us):
        parts.append(Condition(wait_us <= CORE_WAIT_US_MAX, Cause.DRIVER_STARVED, wait_us, CORE_WAIT_US_MAX, "us"))
    check = combine("driver", parts, "invalid", shown=2)
    unknown = (Remark(Detail.CORE_WAIT_UNKNOWN),) * math.isnan(wait_us)
    return replace(check, remarks=(*check.remarks, *unknown))


def _least_p50(evidence: Evidence) -> float:
    """The event-time p50 of the fastest sink in microseconds, which a late driver disturbs most.

    A trial that ended early, or still runs, has no latencies yet. The output lag at commits then stands for them: no
    result of a batch came sooner. 0 if nothing was committed.
    """
    latencies = [sink.latency for sink in evidence.sinks] or [evidence.latencies]
    p50s = [one.event_time_us.p50 for one in latencies if one.event_time_us is not None]
    values = [p50 for p50 in p50s if p50 is not None]
    return min(values) if values and len(values) == len(p50s) else evidence.output_delay_s * US


def _busy_parts(evidence: Evidence, limit: float, if_slow: bool = False) -> list[Condition]:
    """What the SUT may have waited for: the driver's deliveries, its recorder, and the recorder's disk."""
    shares = {
        Cause.DELIVERY_BUSY: evidence.delivery_share, Cause.RECORDER_BUSY: evidence.receive_share,
        Cause.RECORDER_DISK_BUSY: evidence.disk_share,
    }  # fmt: skip
    return [
        Condition(share <= limit, code, share, limit, "share of time", {"if_slow": if_slow})
        for code, share in shares.items()
    ]


def driver_bottleneck(evidence: Evidence) -> Finding | None:
    """The check `driver` if a slow SUT may have waited for the driver; else None."""
    parts = _busy_parts(evidence, BUSY_SHARE_MAX_IF_SLOW, if_slow=True)
    return None if all(part.holds for part in parts) else combine("driver", parts, "invalid", shown=0)
