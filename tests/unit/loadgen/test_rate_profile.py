"""Rate profiles: the integral, its inverse, the texts they are made from."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from streamgauge.loadgen.rate_profile import RateProfile, parse_profile
from tests.unit.helpers_refusals import assert_refused, problem_of
from tests.unit.loadgen.test_plan import TEXTS

RATE = st.floats(0.5, 5e6)
PROFILES = st.builds(parse_profile, TEXTS, RATE, st.just(60.0))


@given(PROFILES, st.one_of(st.just(0.0), st.floats(1e-3, 90)))
def test_events_by_is_the_integral_of_the_rate(profile: RateProfile, t_s: float) -> None:
    """The count in [0, t] equals the integral of `rate_at` within one event."""
    edges = [0.0, *[piece.start_s for piece in profile.pieces if 0 < piece.start_s < t_s], t_s]
    integral = sum(quad(profile.rate_at, low, np.nextafter(high, 0))[0] for low, high in pairwise(edges))
    assert profile.events_by(t_s) == pytest.approx(integral, rel=1e-9, abs=1.0)


@given(PROFILES, st.lists(st.floats(0, 1.2), min_size=1, max_size=50))
def test_time_of_is_the_inverse_of_events_by(profile: RateProfile, shares: list[float]) -> None:
    """Going from an event's number to its time and back gives the number within a hundredth."""
    n = np.floor(np.array(shares) * profile.events_by(60.0))
    assert np.allclose([profile.events_by(float(t)) for t in profile.time_of(n)], n, rtol=1e-12, atol=0.01)


@given(PROFILES, st.floats(0, 1.2))
def test_times_never_fall(profile: RateProfile, share: float) -> None:
    """The n-th time is monotone in n, across the borders of pieces too."""
    for low in (int(share * profile.events_by(60.0)), *[int(events) for events in profile._events]):
        times = profile.time_of(np.arange(max(low - 500, 0), low + 500))
        assert (np.diff(times) > 0).all()


@given(PROFILES, st.lists(st.floats(0, 1.2), min_size=2, max_size=50))
def test_a_time_does_not_depend_on_its_neighbours(profile: RateProfile, shares: list[float]) -> None:
    """Asked alone, each n gives the very bits that it gives among others."""
    n = np.floor(np.array(shares) * profile.events_by(60.0))
    assert (profile.time_of(n) == np.concatenate([profile.time_of(n[i : i + 1]) for i in range(len(n))])).all()


@pytest.mark.parametrize(
    ("text", "t_s", "rate"),
    [
        ("constant", 70.0, 100.0),
        ("step:200@30s,50@45s", 29.9, 100.0),
        ("step:200@30s,50@45s", 30.0, 200.0),
        ("step:200@30s,50@45s", 99.0, 50.0),
        ("ramp:400", 30.0, 250.0),
        ("ramp:400", 80.0, 400.0),
        ("burst:1.5@50s+10s", 55.0, 150.0),
        ("burst:1.5@50s+10s", 61.0, 100.0),
    ],
)
def test_rates_at_times(text: str, t_s: float, rate: float) -> None:
    """Each kind has the rate that its text says, and goes on at its last rate."""
    assert parse_profile(text, 100.0, 60.0).rate_at(t_s) == pytest.approx(rate)


@pytest.mark.parametrize(
    "text",
    ["", "flat", "constant:5", "step:", "step:200", "step:0@30s", "step:200@0s", "step:200@60s", "step:2@30s,3@20s",
     "ramp:", "ramp:0", "ramp:-5", "burst:", "burst:2@30s", "burst:0@30s+1s", "burst:x@30s+1s", "burst:inf@30s+1s",
     "burst:2@0s+1s", "burst:2@55s+6s", "burst:2@30s+0s"],
)  # fmt: skip
@pytest.mark.parametrize("duration_s", [1.0, 30.0, 60.0])
def test_wrong_texts_are_refused(text: str, duration_s: float) -> None:
    """A profile that cannot be is refused by name, with the text that was given and a text that works."""
    problem = problem_of(parse_profile, text, 100.0, duration_s)
    assert (problem.setting, problem.got) == ("load.profile", text)
    parse_profile(problem.way_out.removeprefix("--load-shape "), 100.0, duration_s)


@pytest.mark.parametrize(
    ("rate", "duration", "setting"), [(0, 60, "rate"), (float("nan"), 60, "rate"), (5, 0, "duration")]
)
def test_wrong_numbers_are_refused(rate: float, duration: float, setting: str) -> None:
    """Rate and duration must be above zero."""
    assert_refused(setting, parse_profile, "constant", rate, duration)


def test_a_delayed_profile_may_rise_first() -> None:
    """From a tenth to seven tenths, evenly, and then it is as if it had not."""
    profile = parse_profile("burst:2@10s+5s", 100.0, 20.0).delayed(6.0, 4.0)
    assert [profile.rate_at(t) for t in (0.0, 2.0, 4.0, 6.0, 16.0, 21.0)] == pytest.approx([10, 40, 100, 100, 200, 100])
    assert profile.events_by(6.0) == pytest.approx(160.0 + 200.0)


@pytest.mark.parametrize("text", ["constant", "step:200@3,50@5", "ramp:500", "burst:2@2+1"])
def test_a_delayed_profile_begins_with_its_first_rate_and_then_is_the_same(text: str) -> None:
    """A trial's warm-up runs at the first rate; what follows it is the profile as it was."""
    profile = parse_profile(text, 100.0, 10.0)

    delayed = profile.delayed(4.0)

    assert delayed.events_by(4.0) == pytest.approx(400.0)
    for t_s in (0.5, 2.5, 3.5, 9.0):
        assert delayed.events_by(4.0 + t_s) - delayed.events_by(4.0) == pytest.approx(profile.events_by(t_s))


@pytest.mark.parametrize(("shape", "changes", "rates"), [
    ("constant", False, [100.0, 100.0, 100.0]), ("step:50@10s", True, [100.0, 100.0, 50.0]),
    ("ramp:200", True, [100.0, 150.0, 200.0]),
])  # fmt: skip
def test_the_rise_of_a_warm_up_is_no_part_of_the_shape(shape: str, changes: bool, rates: list[float]) -> None:
    """Rates in the rise, in the middle of the shape and behind its end; and without a warm-up."""
    profile = parse_profile(shape, 100.0, 20.0)
    for lead_s, whole in ((5.0, profile.delayed(5.0, 4.0)), (0.0, profile)):
        assert whole.changes is changes
        middle_s = 10.0 if shape != "step:50@10s" else 9.0
        assert whole.shape_at(np.array([0.5 * (lead_s > 0), lead_s + middle_s, lead_s + 30.0])).tolist() == rates
