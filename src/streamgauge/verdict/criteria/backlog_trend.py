"""The check `backlog_trend`: the backlog does not grow by more than 1 % of the rate."""

from __future__ import annotations

from streamgauge.results.causes import Cause
from streamgauge.results.verdict import Check
from streamgauge.verdict.criteria.check_spec import CheckSpec, make_check, worst
from streamgauge.verdict.criteria.driver import driver_bottleneck
from streamgauge.verdict.criteria.spare_time import decide_by_spare_time
from streamgauge.verdict.criteria.trend import SlopeWording, check_trend
from streamgauge.verdict.evidence import Evidence

BACKLOG_SLOPE_SHARE_MAX = 0.01
INGESTED_SHARE_MIN = 0.2
"""Least share of the offered events. Neither a small queue nor a late generator explains less."""
_BACKLOG = SlopeWording(Cause.BACKLOG_GROWS, "the backlog grows", "the backlog shrinks")


def _backlog_trend(evidence: Evidence) -> Check:
    # A second of waiting event time is a second of the rate, whatever the rate is at that moment.
    return worst(
        [
            decide_by_spare_time(
                check_trend("backlog_trend", backlog, BACKLOG_SLOPE_SHARE_MAX, evidence, _BACKLOG, "of the rate"),
                backlog.about,
                evidence,
            )
            for backlog in evidence.backlog
        ]
    )


def far_behind(ingested_share: float, background_share: float) -> bool:
    """Whether the SUT read so little of the load that the whole machine would not have been enough."""
    return ingested_share < INGESTED_SHARE_MIN * (1 - background_share)


def far_behind_check(evidence: Evidence) -> Check | None:
    """The check `backlog_trend` of a SUT that read almost nothing although the driver worked; else None."""
    failed = evidence.driver_reason or evidence.negative_latencies or not evidence.sut_alive
    if failed or driver_bottleneck(evidence) or not far_behind(evidence.ingested_share, evidence.background_share):
        return None
    sentence = f"the system read only {evidence.ingested_share:.2%} of the offered events"
    backlog_share, limit = 1 - evidence.ingested_share, BACKLOG_SLOPE_SHARE_MAX
    return make_check("backlog_trend", "failed", Cause.BACKLOG_GROWS, backlog_share, limit, "s/s", sentence)


CHECK = CheckSpec(
    "backlog_trend", _backlog_trend, "lower the rate; `streamgauge sustain` finds the highest sustained rate"
)
