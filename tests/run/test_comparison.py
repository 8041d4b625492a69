"""What a comparison says in words."""

from __future__ import annotations

from streamgauge.measure.answers import Counts
from streamgauge.run.comparison import outcome


def test_nothing_due_is_not_called_matched() -> None:
    """A trial that ended early may owe nothing: then nothing was compared."""
    assert outcome(Counts(), whole=False) == "no results were due of what was committed, so nothing was compared"
    assert outcome(Counts(), whole=True, noun="matches") == "no matches were due, so nothing was compared"
    assert outcome(Counts(expected=3, matched=3), whole=True, noun="windows") == "3 windows expected, all matched"
    assert outcome(Counts(extra=2), whole=True) == "0 results expected, 0 matched, 2 extra"
