"""The check `queue_bound`: the backlog stayed below its bound, and memory left the bound 10 s or more."""

from __future__ import annotations

from streamgauge.config.limits import BOUND_S_MIN
from streamgauge.results.causes import Cause
from streamgauge.results.verdict import Check
from streamgauge.verdict.criteria.check_spec import CheckSpec, make_check
from streamgauge.verdict.criteria.trend import TREND_POINTS_MIN
from streamgauge.verdict.evidence import Evidence


def _queue_bound(evidence: Evidence) -> Check:
    reached, bound = evidence.backlog_max_s, evidence.bound_s
    if evidence.bound_cut_by_memory:
        sentence = f"memory cut the queue to {bound:.3g} s of the rate (minimum {BOUND_S_MIN:.0f} s)"
        return make_check("queue_bound", "invalid", Cause.QUEUE_CUT_BY_MEMORY, bound, BOUND_S_MIN, "s", sentence)
    if evidence.out_of_memory:
        least, waited = min(bound, BOUND_S_MIN), evidence.memory_full_s
        sentence = (
            f"the driver's memory was full while {waited:.3g} s of event time waited (minimum {least:.3g} s), because "
            "events in flight or retained for redelivery filled the rest"
        )
        return make_check("queue_bound", "invalid", Cause.DRIVER_MEMORY_FULL, waited, least, "s", sentence)
    if not evidence.span_began and evidence.batches_ever < TREND_POINTS_MIN:
        sentence = (
            f"the queue of {bound:.3g} s was full before the measured span, when the engine had hardly begun to read"
        )
        return make_check("queue_bound", "undecided", Cause.QUEUE_FULL_AT_START, None, bound, "s", sentence)
    if evidence.overflowed:
        sentence = f"the queue was full: it holds {bound:.3g} s of event time"
        return make_check("queue_bound", "failed", Cause.QUEUE_FULL, max(reached, bound), bound, "s", sentence)
    sentence = f"the backlog reached {reached:.3g} s of the rate (limit {bound:.3g} s)"
    if reached < bound:
        return make_check("queue_bound", "ok", Cause.OK, reached, bound, "s", sentence)
    return make_check("queue_bound", "failed", Cause.QUEUE_FULL, reached, bound, "s", sentence)


CHECK = CheckSpec(
    "queue_bound",
    _queue_bound,
    "lower the rate, or raise the bound (--bound) if this was one short stall",
    "give the queue more memory (--memory), or lower the rate or the payload",
)
