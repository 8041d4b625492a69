"""verdict/verdict.py: when a growing backlog ends a trial early."""

import numpy as np
import pytest

from streamgauge.results.text.sentences import Detail
from streamgauge.verdict.evidence import Samples
from streamgauge.verdict.verdict import cannot_recover
from tests.unit.verdict.helpers_evidence import SECONDS, ramp

MINUTE, HALF = np.arange(40.0), np.arange(30.0)
HUMP = Samples(MINUTE, np.where(MINUTE < 25, 0.3 * MINUTE, 7.5 - 0.3 * (MINUTE - 25)))
STALL = Samples(HALF, 1 + np.maximum(0, HALF - 17))


@pytest.mark.parametrize(("waiting", "bound_s", "left_s", "code"), [
    (ramp(0.2), 30.0, 10.0, Detail.CANNOT_DRAIN),  # half a minute of +20 % with ten seconds left
    (Samples.from_values([1.0], [31.0]), 30.0, 100.0, Detail.BOUND_REACHED),  # no statistics are needed there
    (Samples(SECONDS[:25], 0.4 * SECONDS[:25]), 30.0, 1.0, Detail.CANNOT_DRAIN),
    (Samples(SECONDS[:17], 0.4 * SECONDS[:17]), 30.0, 1.0, None),  # five seconds before, 12 s said too little
    (STALL, 60.0, 30.0, None),  # twelve seconds without a delivery: the engine has shown no pace yet
    (HUMP, 60.0, 30.0, None),  # a backlog that grew and now drains may still come back
    (Samples.from_values(range(10), [float(t) for t in range(10)]), 60.0, 1.0, None),  # too little evidence
])  # fmt: skip
def test_growth_that_can_no_longer_drain_ends_a_trial(
    waiting: Samples, bound_s: float, left_s: float, code: Detail | None
) -> None:
    reason = cannot_recover(waiting, bound_s, left_s)
    assert (reason.code if reason else None) == code
