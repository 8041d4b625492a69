"""When a machine is another one, and what other processes used."""

import pytest

from streamgauge.verdict.evidence import machine_speed_differs


@pytest.mark.parametrize(("other_us", "differs"), [(1149.0, False), (1151.0, True), (871.0, False), (868.0, True)])
def test_a_machine_that_takes_much_longer_for_the_same_work_is_another_one(other_us: float, differs: bool) -> None:
    """By more than 15 %, whichever of the two was slower."""
    assert machine_speed_differs(1000.0, other_us) is differs
    assert machine_speed_differs(other_us, 1000.0) is differs
