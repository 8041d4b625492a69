"""What is said of a comparison of answers."""

from __future__ import annotations

import pytest

from streamgauge.experiment import build
from streamgauge.measure.answers import Counts
from streamgauge.run import verify
from streamgauge.run.check import check


@pytest.mark.parametrize(
    ("workload", "whole", "said"),
    [
        ("identity", True, "1,200 results expected, 1,197 matched, 3 late"),
        ("windowed_aggregation", True, "1,200 windows expected, 1,197 matched, 3 late"),
        ("identity", False, "1,200 results expected of what was committed, 1,197 matched, 3 late"),
    ],
)
def test_the_sentence_says_what_was_expected(workload: str, whole: bool, said: str) -> None:
    """Of a run that ended before its input was committed, less is owed than was offered."""
    counts = Counts(expected=1200, matched=1197, late=3)
    assert verify._sentence(check(build({"workload": workload})), counts, whole) == said
