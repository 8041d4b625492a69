"""When a machine is another one, and what other processes used."""

from __future__ import annotations

import pytest

from streamgauge.run.facts import beside_others, machine_differs, others_beside


@pytest.mark.parametrize(("other_us", "differs"), [(1149.0, False), (1151.0, True), (871.0, False), (868.0, True)])
def test_a_machine_that_takes_much_longer_for_the_same_work_is_another_one(other_us: float, differs: bool) -> None:
    """By more than 15 %, whichever of the two was slower."""
    assert machine_differs(1000.0, other_us) is differs
    assert machine_differs(other_us, 1000.0) is differs


def test_what_others_used_is_read_out_of_a_results_warnings() -> None:
    """As it was written there, in the share of the span or of a burst; a trial of a search has another sentence."""
    used = "60% of the machine for 5 s"
    assert others_beside(("extended once", beside_others(used))) == f"other processes used {used}"
    assert others_beside(("extended once", "trial 3: other processes used 20% of the machine")) == ""
