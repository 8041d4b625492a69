"""A bracket of loads takes verdicts."""

from streamgauge.studies.capacity.bracket import Bracket


def test_a_second_verdict_on_the_upper_end_counts() -> None:
    """A trial that decided nothing is repeated, and then shows that the load does not hold."""
    bracket = Bracket()
    bracket.narrow(50, "sustained")
    bracket.narrow(100, "undecided")
    assert not bracket.high_is_proven
    bracket.narrow(100, "not_sustained")
    assert (bracket.low, bracket.high, bracket.high_is_proven) == (50, 100, True)
    bracket.narrow(150, "undecided")
    assert (bracket.high, bracket.high_is_proven) == (100, True)
