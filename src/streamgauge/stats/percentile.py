"""Decides which percentiles a number of independent observations can carry. Only those are printed.

The rule: at least one observation is expected beyond the percentile, `count * (1 - q) >= 1`. With fewer observations
the estimate is just the maximum, which lies below the true q-quantile with probability q^n. At the limit of the rule
that probability is 0.37, so an allowed percentile can still be uncertain.
"Count" is the effective count: windows instead of rows, if all rows of a window close together.
"""

from __future__ import annotations

import math

# 1 - 0.9 is not exactly 0.1; without this slack ten observations would not carry p90.
_ROUNDING = 1e-9


def carries(q: float, effective_count: int) -> bool:
    """Whether `effective_count` independent observations carry the q-quantile, q in [0, 1).

    >>> carries(0.99, 100), carries(0.99, 99)
    (True, False)
    """
    _require(q)
    return effective_count >= 1 and effective_count * (1 - q) >= 1 - _ROUNDING


def observations_needed(q: float) -> int:
    """The fewest independent observations that carry the q-quantile, q in [0, 1).

    >>> observations_needed(0.99)
    100
    """
    _require(q)
    return math.ceil((1 - _ROUNDING) / (1 - q))


def _require(q: float) -> None:
    if not 0 <= q < 1:
        raise ValueError(f"q must be in [0, 1), got {q}")
