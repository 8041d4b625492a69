"""Which percentile a number of independent observations can carry, and so which may be printed [method 1].

The rule: at least one observation is expected beyond it, `count * (1 - q) >= 1`. With fewer, the estimate is the
maximum under another name: of n observations the largest lies below the true q-quantile with probability q^n, which is
still 0.37 where the rule is just met and grows to 1 below it. A percentile that is allowed may thus still be uncertain;
one that is not allowed says nothing. "Count" is the effective count: where rows close together, windows and not rows.
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
