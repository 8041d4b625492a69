"""The sign test: whether paired differences are above nothing, whatever their distribution."""

from __future__ import annotations

import functools


@functools.cache
def positives_needed(differences: int, confidence: float = 0.95) -> int:
    """The fewest of so many differences that must be above 0, two-sided; one more than there are where none suffice.

    >>> positives_needed(100), positives_needed(6), positives_needed(5)
    (61, 6, 6)
    """
    from scipy.stats import binom

    return int(binom.isf((1 - confidence) / 2, differences, 0.5)) + 1
