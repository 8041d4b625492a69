"""The check `latency_trend`: nothing shows that results get later by more than 0.01 s per second.

The latency of the results, from the delivery of their last event, shows an engine that holds results back inside
committed batches. Only proven growth counts.
"""

from __future__ import annotations

import numpy as np

from streamgauge.results.causes import Cause
from streamgauge.results.verdict import Check
from streamgauge.verdict.criteria.check_spec import CheckSpec, make_check, worst
from streamgauge.verdict.criteria.output_trend import OUTPUT_SLOPE_MAX
from streamgauge.verdict.criteria.trend import SlopeWording, check_trend
from streamgauge.verdict.evidence import Evidence, Samples

_LATENCY = SlopeWording(Cause.LATENCY_GROWS, "the latency grows", "the latency falls")


def _latency_trend(evidence: Evidence) -> Check:
    if not any(latency.value.size for latency in evidence.latency):
        code, why = Cause.NO_LATENCY, "no latencies were counted"
        if not evidence.steady:
            code, why = Cause.RATE_VARIES, "the rate varies, and latencies with it"
        sentence = f"not judged, because {why}"
        return make_check("latency_trend", "not_judged", code, None, OUTPUT_SLOPE_MAX, "s/s", sentence)
    return worst([_latency_check(latency, evidence) for latency in evidence.latency])


def _latency_check(latency: Samples, evidence: Evidence) -> Check:
    """Fails only on proven growth beyond the drift: the trends before have already shown that nothing waits."""
    trend = check_trend("latency_trend", latency, OUTPUT_SLOPE_MAX, evidence, _LATENCY, "of the time")
    if trend.state == "ok":
        return trend
    growth_s = (trend.low or 0.0) * float(np.ptp(latency.time_s)) if latency.time_s.size else 0.0
    if trend.state == "failed" and growth_s > evidence.latency_drift_s:
        return trend
    why = "not shown to fail"
    if trend.state == "failed":
        why = f"within the {evidence.latency_drift_s:.2g} s that windows and batches may drift against each other"
    ok = {"state": "ok", "code": Cause.OK, "ok": True}
    return trend.model_copy(update={**ok, "sentence": f"{trend.sentence}: {why}"})


CHECK = CheckSpec(
    "latency_trend",
    _latency_trend,
    "lower the rate, or check what grows in the job's state: its results come later and later",
    may_be_unjudged=True,
)
