"""How far a sample carries: which percentiles, the sign test of paired differences, and stratified sampling.

Only percentiles that the number of independent observations can carry are printed. The rule: at least one observation
is expected beyond the percentile, `count * (1 - q) >= 1`. With fewer observations the estimate is just the maximum,
which lies below the true q-quantile with probability q^n. At the limit of the rule that probability is 0.37, so an
allowed percentile can still be uncertain. "Count" is the effective count: windows instead of rows, if all rows of a
window close together.
"""

import functools
import math

import numpy as np
from numpy.typing import NDArray

# 1 - 0.9 is not exactly 0.1; without this slack ten observations would not carry p90.
_ROUNDING = 1e-9


def carries(q: float, effective_count: int) -> bool:
    """Whether `effective_count` independent observations carry the q-quantile, q in [0, 1]; none carry that of 1.

    >>> carries(0.99, 100), carries(0.99, 99)
    (True, False)
    """
    return effective_count >= 1 and effective_count * (1 - q) >= 1 - _ROUNDING


def observations_needed(q: float) -> int:
    """The fewest independent observations that carry the q-quantile, q in [0, 1).

    >>> observations_needed(0.99)
    100
    """
    return math.ceil((1 - _ROUNDING) / (1 - q))


@functools.cache
def positives_needed(differences: int, confidence: float = 0.95) -> int:
    """The fewest of `differences` that must be above 0, two-sided; `differences` + 1 if they are too few.

    >>> positives_needed(100), positives_needed(6), positives_needed(5)
    (61, 6, 6)
    """
    from scipy.stats import binom

    return int(binom.isf((1 - confidence) / 2, differences, 0.5)) + 1


SEED = 7


def stratified_indices(count: int, parts: int) -> NDArray[np.int64]:
    """Ascending indices below `count`, one random index from each of `parts` equal parts; all if there are fewer.

    The same arguments give the same indices.

    >>> stratified_indices(3, 10).tolist()
    [0, 1, 2]
    """
    if count <= parts:
        return np.arange(count, dtype=np.int64)
    borders = np.arange(parts + 1, dtype=np.int64) * count // parts
    return np.random.default_rng(SEED).integers(borders[:-1], borders[1:])
