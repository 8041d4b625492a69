"""What a comparison says in words."""

from __future__ import annotations

from streamgauge.diff.compare import Counts
from streamgauge.verification.sink_comparison import outcome


def test_nothing_due_is_not_called_matched() -> None:
    """A trial that ended early may owe nothing: then there is nothing to compare."""
    assert (
        outcome(Counts(), complete=False)
        == "no results were due of what was committed, so there was nothing to compare"
    )
    nothing = "no matches were due of warm-up and span, so there was nothing to compare"
    assert outcome(Counts(), complete=True, noun="matches") == nothing
    said = "3 windows expected of warm-up and span, all matched"
    assert outcome(Counts(expected=3, matched=3), complete=True, noun="windows") == said
    assert outcome(Counts(extra=2), complete=True) == "0 results expected of warm-up and span, 0 matched, 2 extra"
