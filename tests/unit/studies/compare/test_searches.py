"""studies/compare: two searches, by the rates that bound them."""

import shutil
from typing import Any

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
    result: Any = folder.read_result()
    searched = result.search.model_copy(update={"trials": tuple(trials)})
    assert _confirming(folder, searched).path.name == "04"


LOW = 9e5 / 1.05e6 - 1


@pytest.mark.parametrize(
    ("of_a", "of_b", "ends", "says"),
    [
        # B may be as much faster as it likes where nothing was shown to fail on its side; and A, on the other one.
        ({}, {"high_verdict": "undecided"}, (LOW, None), "no_difference"),
        ({"high_verdict": "undecided"}, {}, (None, 9e5 * 1.05 / 1e6 - 1), "worse"),
        # Not faster than what failed above its undecided upper end.
        ({}, {"high_verdict": "undecided", "refused": 1.2e6}, (LOW, 1.2e6 / 1e6 - 1), "no_difference"),
        # Two lower bounds prove nothing of each other: unknown, which is not "no difference shown".
        ({"high_verdict": "undecided"}, {"high_verdict": "undecided"}, (None, None), "unknown"),
    ],
)
def test_an_upper_end_that_was_undecided_bounds_nothing(
    make_run: Make, of_a: Any, of_b: Any, ends: tuple[float | None, float | None], says: str
) -> None:
    a, b = search(make_run, "a", 1, 1e6, **of_a), search(make_run, "b", 2, 9e5, **of_b)
    rate = figure(compare(str(a), str(b)), "sustained")
    assert [rate.low, rate.high] == [end if end is None else pytest.approx(end) for end in ends]
    assert rate.says == says


def test_a_gate_on_searches_reads_the_sustained_rate(make_run: Make) -> None:
    """`rate` is the sustained one, and equal searches are no surer than their brackets."""
    a = ",".join(str(search(make_run, f"a{n}", n, 1e6)) for n in range(3))
    b = ",".join(str(search(make_run, f"b{n}", 10 + n, 8e5)) for n in range(3))
    comparison = compare(a, b, ["rate -5%"])
    assert (comparison.gates[0].figure, comparison.gates[0].state) == ("sustained", "failed")
    one = figure(comparison, "sustained")
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
    comparison = compare(a, b, ["rate -15%"])
    one = figure(comparison, "sustained")
    assert (one.low is not None, one.high is not None) == ends
    assert (comparison.gates[0].state, one.says) == (state, "no_difference")
    assert "undecided" in one.reason
    assert "more runs" not in comparison.gates[0].sentence
