"""verdict/driver_check.py: schedule delay, waits for a core, and a recorder that stood still."""

import numpy as np
import pytest

from streamgauge.results.codes import Cause, Detail
from streamgauge.results.latency import Latencies
from streamgauge.results.run import SinkResult
from streamgauge.verdict.verdict import judge
from tests.unit.verdict.helpers_evidence import LATENCY, RATE, SECONDS, check_of, evidence


@pytest.mark.parametrize(("lag_s", "value"), [(10.0, "sustained"), (1.0, "invalid")])
def test_schedule_delay_is_measured_against_the_lag_without_a_latency(lag_s: float, value: str) -> None:
    """A trial that ended early has none, and its results were no sooner than its commits; latencies say it better."""
    assert judge(evidence(schedule_delay_us_p99=150_000, latencies=Latencies(), output_delay_s=lag_s)).value == value
    assert judge(evidence(schedule_delay_us_p99=150_000, output_delay_s=lag_s)).value == "invalid"


def test_an_unknown_wait_for_a_core_is_named() -> None:
    """It passes no check in silence, and condemns nothing either; a known one is not named."""
    driver, known = (check_of(judge(evidence(core_wait_us=wait)), "driver") for wait in (np.nan, 200.0))
    assert (driver.ok, driver.remarks[-1].code, len(known.remarks)) == (True, Detail.CORE_WAIT_UNKNOWN, 1)
    assert check_of(judge(evidence(core_wait_us=np.nan, schedule_delay_us_p99=150_000)), "driver").state == "invalid"


def of_p50(p50: float | None) -> Latencies:
    return Latencies(event_time_us=LATENCY.model_copy(update={"p50": p50}))


@pytest.mark.parametrize(
    ("p50s", "delay_s", "state"),
    [
        ((10e6, 12e6), 1.0, "ok"),
        ((10e6, 1e6), 10.0, "invalid"),
        ((10e6, None), 1.0, "invalid"),
        ((1e6, None), 10.0, "ok"),
    ],
)
def test_schedule_delay_is_measured_against_the_soonest_sink(
    p50s: tuple[float | None, ...], delay_s: float, state: str
) -> None:
    """A late driver disturbs that one most; where the latency of one is not known, the lag of the commits stands in."""
    sinks = tuple(SinkResult(name=f"sink {n}", rows=10, latency=of_p50(p50)) for n, p50 in enumerate(p50s))
    assert (
        check_of(judge(evidence(schedule_delay_us_p99=150_000, sinks=sinks, output_delay_s=delay_s)), "driver").state
        == state
    )


def test_seconds_without_a_plan_are_not_judged() -> None:
    """A burst leaves seconds between; events of the second before may come in them. Without any plan there is none."""
    planned = np.where(SECONDS % 2 == 0, RATE, 0.0)
    for offered in (planned, np.full(60, RATE)):
        assert check_of(judge(evidence(planned_per_s=planned, offered_per_s=offered)), "driver").state == "ok"
    driver = check_of(judge(evidence(planned_per_s=np.zeros(60))), "driver")
    assert (driver.state, driver.code) == ("undecided", Cause.NO_EVENT_DUE)
