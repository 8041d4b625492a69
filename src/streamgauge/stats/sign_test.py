"""The sign test: whether paired differences are above 0, for any distribution."""

from __future__ import annotations

import functools


@functools.cache
def positives_needed(differences: int, confidence: float = 0.95) -> int:
    """The fewest of `differences` that must be above 0, two-sided; `differences` + 1 if they are too few.

    >>> positives_needed(100), positives_needed(6), positives_needed(5)
    (61, 6, 6)
    """
    from scipy.stats import binom

    return int(binom.isf((1 - confidence) / 2, differences, 0.5)) + 1
