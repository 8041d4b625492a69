"""verdict/verdict.py: when a growing backlog ends a trial early."""

from __future__ import annotations

import numpy as np
import pytest

from streamgauge.verdict.evidence import Samples
from streamgauge.verdict.verdict import cannot_recover
from tests.unit.verdict.helpers_evidence import SECONDS, ramp

pytestmark = pytest.mark.usefixtures("quick_draws")


def test_steady_growth_is_hopeless() -> None:
    """Half a minute of +20 % with ten seconds left cannot end as sustained."""
    assert "can no longer drain" in (cannot_recover(ramp(0.2), 30.0, 10.0) or "")


@pytest.mark.parametrize(("points", "ends"), [(17, False), (25, True)])
def test_what_is_hopeless_was_so_five_seconds_before(points: int, ends: bool) -> None:
    """17 s of steady growth tell enough now, and five seconds before 12 did not."""
    growth = Samples(SECONDS[:points], 0.4 * SECONDS[:points])
    assert (cannot_recover(growth, 30.0, 1.0) is not None) is ends


def test_the_bound_reached_is_hopeless_at_once() -> None:
    """No statistics are needed where the queue is full."""
    assert "bound" in (cannot_recover(Samples.from_values([1.0], [31.0]), 30.0, 100.0) or "")


def test_a_stall_that_can_be_caught_up_goes_on() -> None:
    """Twelve seconds without a delivery, half a minute left: the engine has shown no pace yet."""
    time_s = np.arange(30.0)
    stall = Samples(time_s, 1 + np.maximum(0, time_s - 17))
    assert cannot_recover(stall, 60.0, 30.0) is None


def test_growth_that_has_ended_goes_on() -> None:
    """A backlog that grew and now drains may still come back."""
    time_s = np.arange(40.0)
    hump = Samples(time_s, np.where(time_s < 25, 0.3 * time_s, 7.5 - 0.3 * (time_s - 25)))
    assert cannot_recover(hump, 60.0, 30.0) is None


def test_little_evidence_is_never_hopeless() -> None:
    """Ten samples of growth are a start, not a verdict."""
    assert cannot_recover(Samples.from_values(range(10), [float(t) for t in range(10)]), 60.0, 1.0) is None
