"""The check `output_trend`: results do not fall behind by more than 0.01 s per second.

An output frontier that moves by windows is a staircase, so only the moments at which it moved are observations (with
Spark, one per batch). If an engine commits everything before it reads on, the output is sampled at the start of a
batch, like the backlog: at commits, the lag contains the length of each batch, which varies even if nothing waits.

Growing batches are not a backlog while they end within their interval. So at commits the output fails only on proven
growth, and is undecided if batches seem to grow and would soon fill their interval.
"""

from __future__ import annotations

import numpy as np

from streamgauge.results.causes import Cause
from streamgauge.results.verdict import Check
from streamgauge.verdict.criteria.check_spec import CheckSpec, worst
from streamgauge.verdict.criteria.spare_time import decide_by_spare_time
from streamgauge.verdict.criteria.trend import TREND_POINTS_MIN, SlopeWording, check_trend, steps
from streamgauge.verdict.evidence import Evidence, Samples

OUTPUT_SLOPE_MAX = 0.01
_OUTPUT = SlopeWording(Cause.RESULTS_FALL_BEHIND, "results fall behind", "results catch up")
_OUTPUT_AT_COMMITS = SlopeWording(
    Cause.RESULTS_FALL_BEHIND, "at commits, results fall behind", "at commits, results catch up"
)


def _output_trend(evidence: Evidence) -> Check:
    checks = [
        decide_by_spare_time(_output_check(steps(lag), evidence, _OUTPUT), lag.about, evidence)
        for lag in evidence.output_lag
    ]
    at_commits = [_commit_check(steps(lag), evidence, _OUTPUT_AT_COMMITS) for lag in evidence.output_lag_at_commits]
    return worst([*checks, *(check for check in at_commits if check is not None)])


def _output_check(lag: Samples, evidence: Evidence, wording: SlopeWording) -> Check:
    return check_trend("output_trend", lag, OUTPUT_SLOPE_MAX, evidence, wording, "of the time")


def _commit_check(lag: Samples, evidence: Evidence, wording: SlopeWording) -> Check | None:
    """The check of the lag at commits; None if it says nothing against the engine.

    It fails on proven growth. It is undecided if batches seem to get longer and would fill their interval after one
    more such span. Batches within their interval cause no waiting, so the trends at deliveries cannot see them.
    """
    check = _output_check(lag, evidence, wording)
    if check.state == "failed":
        return check
    if check.state != "undecided" or not _would_fill_interval(evidence.interval_s, lag, check.value):
        return None
    fills = f"one more span like this would fill the batches' interval of {evidence.interval_s:.2g} s"
    changes = {"code": Cause.BATCHES_FILL_INTERVAL, "sentence": f"{check.sentence}; {fills}"}
    return check.model_copy(update=changes)


def _would_fill_interval(interval_s: float, lag: Samples, slope: float | None) -> bool:
    """Whether batches that end within their interval would exceed it after one more span of the same growth."""
    if slope is None or slope <= OUTPUT_SLOPE_MAX:
        return False
    median_s, recent_s = float(np.median(lag.value)), float(np.median(lag.value[-TREND_POINTS_MIN:]))
    return median_s <= interval_s < recent_s + slope * float(np.ptp(lag.time_s))


CHECK = CheckSpec("output_trend", _output_trend, "lower the rate: the engine reads in time but its results fall behind")
