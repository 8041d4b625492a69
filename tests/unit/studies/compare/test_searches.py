"""studies/compare: two searches, by the rates that bound them."""

from __future__ import annotations

import shutil

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.results.search import TrialSummary
from streamgauge.studies.compare.compare import compare
from streamgauge.studies.compare.groups import _confirming
from tests.unit.studies.compare.helpers_compare import Make, figure, search


def test_two_searches_have_their_brackets(make_run: Make) -> None:
    """The rate that was confirmed; the interval is what both brackets allow."""
    a, b = search(make_run, "a", 1, 1e6), search(make_run, "b", 2, 9e5)
    shutil.copytree(make_run("trial", 3), a / "trials" / "02")
    rate = figure(compare(str(a), str(b)), "sustained")
    assert (rate.difference, rate.method, rate.says) == (pytest.approx(-0.1), "brackets", "worse")
    assert (rate.low, rate.high) == pytest.approx((9e5 / 1.05e6 - 1, 9e5 * 1.05 / 1e6 - 1))


def test_the_latency_of_a_search_is_that_of_the_trial_that_held(make_run: Make) -> None:
    """The last one at its rate, whatever it was for, found by its folder."""
    a = search(make_run, "a", 1, 1e5)
    for number in (2, 4, 5):
        shutil.copytree(make_run(f"trial-{number}", number), a / "trials" / f"{number:02}")
    folder = RunFolder.open(a)
    trials = [
        TrialSummary(number=place, purpose=purpose, offered_per_s=rate, verdict=verdict, folder=f"elsewhere/{name}")
        for place, purpose, rate, verdict, name in (
            (1, "bracket", 1e5, "sustained", "02"),
            (2, "bracket", 1e5, "sustained", "04"),
            (3, "bracket", 1.05e5, "undecided", "05"),
        )
    ]  # fmt: skip
    result = folder.read_result()
    assert result.search is not None
    found = result.model_copy(update={"search": result.search.model_copy(update={"trials": tuple(trials)})})
    assert _confirming(folder, found).path.name == "04"


def test_an_upper_end_that_was_undecided_bounds_nothing(make_run: Make) -> None:
    """B may be as much faster as it likes where nothing was shown to fail on its side; and A, on the other one."""
    a, b = search(make_run, "a", 1, 1e6), search(make_run, "b", 2, 9e5, high_verdict="undecided")
    rate, turned = (figure(compare(str(one), str(other)), "sustained") for one, other in ((a, b), (b, a)))
    assert (rate.low, rate.high, rate.says) == (pytest.approx(9e5 / 1.05e6 - 1), None, "no_difference")
    assert (turned.low, turned.high) == (None, pytest.approx(1.05e6 / 9e5 - 1))


def test_a_refused_rate_above_an_undecided_one_bounds_a_search(make_run: Make) -> None:
    """B may be faster than its undecided upper end, but not than what failed there."""
    a, b = search(make_run, "a", 1, 1e6), search(make_run, "b", 2, 9e5, high_verdict="undecided", refused=1.2e6)
    rate = figure(compare(str(a), str(b)), "sustained")
    assert (rate.low, rate.high) == pytest.approx((9e5 / 1.05e6 - 1, 1.2e6 / 1e6 - 1))


def test_a_gate_on_searches_reads_the_sustained_rate(make_run: Make) -> None:
    """`rate` is the sustained one, and equal searches are no surer than their brackets."""
    a = ",".join(str(search(make_run, f"a{n}", n, 1e6)) for n in range(3))
    b = ",".join(str(search(make_run, f"b{n}", 10 + n, 8e5)) for n in range(3))
    found = compare(a, b, ["rate -5%"])
    assert (found.gates[0].figure, found.gates[0].state) == ("sustained", "failed")
    one = figure(found, "sustained")
    assert one.low is not None
    assert one.high is not None
    assert one.low < -0.2 < one.high


@pytest.mark.parametrize(
    ("undecided", "ends", "state"), [("b", (True, False), "passed"), ("a", (False, True), "unknown")]
)
def test_over_searches_an_upper_end_that_was_undecided_bounds_nothing(
    make_run: Make, undecided: str, ends: tuple[bool, bool], state: str
) -> None:
    """What A holds is a lower bound alone, so B may be far below what A sustains: that is no pass."""
    verdicts = {
        side: ["undecided" if side == undecided and n == 1 else "not_sustained" for n in range(3)] for side in "ab"
    }
    a, b = (
        ",".join(
            str(search(make_run, f"{side}{n}", 10 * n + (side == "b"), 1e6, high_verdict=one))
            for n, one in enumerate(verdicts[side])
        )
        for side in "ab"
    )
    found = compare(a, b, ["rate -15%"])
    one = figure(found, "sustained")
    assert (one.low is not None, one.high is not None) == ends
    assert (found.gates[0].state, one.says) == (state, "no_difference")
    assert "undecided" in one.reason
    assert "more runs" not in found.gates[0].sentence


def test_two_sides_without_a_refused_rate_cannot_be_told_apart(make_run: Make) -> None:
    """Two lower bounds say nothing about each other: unknown, which is not "no difference shown"."""
    a, b = (search(make_run, name, n, 1e6, high_verdict="undecided") for n, name in enumerate("ab"))
    rate = figure(compare(str(a), str(b)), "sustained")
    assert (rate.low, rate.high, rate.says) == (None, None, "unknown")
