"""verdict/criteria/output_trend.py and latency_trend.py: growth that fails a trial, and growth that does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamgauge.results.causes import Cause
from streamgauge.verdict.evidence import Samples
from streamgauge.verdict.verdict import judge
from tests.unit.verdict.helpers_evidence import check_of, evidence

pytestmark = pytest.mark.usefixtures("quick_draws")


def noisy(slope: float) -> Samples:
    """A second that grows by `slope` a second for a minute, with noise of 0.2 s."""
    time_s = np.arange(60.0)
    return Samples(time_s, 1 + slope * time_s + np.random.default_rng(1).normal(0, 0.2, time_s.size))


@pytest.mark.parametrize(("share", "state"), [(0.98, "failed"), (1.02, "ok")])
def test_latency_that_surely_grew_by_more_than_it_may_drift_fails(share: float, state: str) -> None:
    """What is sure is the lower end of the interval, and not its middle."""
    growing = noisy(0.03)
    sure = check_of(judge(evidence(latency=growing)), "latency_trend")
    assert sure.low is not None
    assert sure.value is not None
    assert 1.1 * sure.low < sure.value
    drift_s = share * sure.low * float(np.ptp(growing.time_s))
    assert check_of(judge(evidence(latency=growing, latency_drift_s=drift_s)), "latency_trend").state == state


@pytest.mark.parametrize(("interval_s", "state"), [(1.2, "ok"), (1.5, "undecided"), (2.2, "undecided"), (3.0, "ok")])
def test_batches_that_seem_to_grow_matter_where_they_end_in_time_and_soon_would_not(
    interval_s: float, state: str
) -> None:
    """Most take 1.4 s, the last 1.7, and after another such minute 2.4; of what most exceed the other trends tell."""
    found = evidence(output_lag_at_commits=noisy(0.012), interval_s=interval_s)
    assert check_of(judge(found), "output_trend").state == state


def test_latency_whose_growth_is_not_sure_is_not_shown_to_fail() -> None:
    """Its number may be above the limit: the sentence says why it holds all the same."""
    found = check_of(judge(evidence(latency=noisy(0.0105))), "latency_trend")
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.01 < found.high
    assert (found.state, found.sentence.endswith("limit 1%: not shown to fail")) == ("ok", True)


@pytest.mark.parametrize(
    ("changes", "code", "why"),
    [
        ({"latency": (), "steady": False}, Cause.RATE_VARIES, "the rate varies"),
        ({"latency": ()}, Cause.NO_LATENCY, "no latencies were counted"),
        ({"latency": (Samples.from_values([], []),)}, Cause.NO_LATENCY, "no latencies were counted"),
    ],
)
def test_a_latency_trend_without_latencies_is_not_judged(changes: dict[str, Any], code: Cause, why: str) -> None:
    """It is not called ok, and decides nothing, because only proven growth would count."""
    found = judge(evidence(**changes))
    check = check_of(found, "latency_trend")
    assert (check.state, check.ok, check.code, check.value) == ("not_judged", None, code, None)
    assert check.sentence.startswith("not judged, because ")
    assert why in check.sentence
    assert (found.value, found.cause) == ("sustained", Cause.ALL_CHECKS_HOLD)
    assert "(not judged: latency_trend)" in found.sentence
