"""How many instances each operator is advised to have [B eq. 3.4], and the thesis's three ways of multiplying [B §3.5].

    s_op = sum over its inputs i of Tp_i * Sin_i        s_app = sum of s_op
    I_op = max(1, ceil(K * s_op / s_app))

`Tp_i` is the time that a tuple of input i takes at the operator, `Sin_i` how many such tuples there are for one of the
source. K is how many instances are given out, about: every operator's share is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

import numpy as np

AdviceMethod = Literal["formula", "one_each", "source_only"]
ADVICE_METHODS: tuple[AdviceMethod, ...] = ("formula", "one_each", "source_only")
"""Eq. 3.4 for all, times m; one for all, times m; eq. 3.4, of which the sources alone are multiplied by m."""

SPREAD = (0.05, 0.95)
"""The quantiles between which advised instances are said to lie."""

# 10 * (0.7 / 1.0) is a little above 7, and must not become 8.
_ROUNDING = 1e-9


def work(inputs: Iterable[tuple[float, float]]) -> float:
    """`s_op` of an operator: `inputs` are its pairs of Tp_i and Sin_i.

    >>> work([(2.0, 1.0), (2.0, 0.5)])
    3.0
    """
    return math.fsum(time * weight for time, weight in inputs)


def advised(works: Mapping[str, float | None], target: int = 10) -> dict[str, int | None]:
    """`I_op` by operator; None where `s_op` is not known, and the others share what is.

    >>> advised({"splitter": 3.0, "counter": 1.0, "source": None}, target=10)
    {'splitter': 8, 'counter': 3, 'source': None}
    """
    if target < 1:
        raise ValueError(f"target must be at least 1, got {target}")
    if any(each is not None and not (each >= 0 and math.isfinite(each)) for each in works.values()):
        raise ValueError(f"work must be finite and not negative, got {dict(works)}")
    whole = math.fsum(each for each in works.values() if each is not None)
    return {name: None if each is None else _instances(each, whole, target) for name, each in works.items()}


def _instances(own: float, whole: float, target: int) -> int:
    """Where nothing takes any time, nothing needs more than one instance."""
    return max(1, math.ceil(target * own / whole - _ROUNDING)) if whole else 1


def spread(samples: Sequence[Mapping[str, float | None]], target: int = 10) -> dict[str, tuple[int, int] | None]:
    """The least and the most of `I_op` over bootstrap samples of the works, by operator, but for a twentieth each.

    >>> spread([{"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 3.0}])
    {'a': (3, 5), 'b': (5, 8)}
    """
    drawn = [advised(works, target) for works in samples]
    found: dict[str, tuple[int, int] | None] = {}
    for name in drawn[0] if drawn else ():
        known = [value for each in drawn if (value := each[name]) is not None]
        low, high = np.quantile(known, SPREAD, method="inverted_cdf") if known else (0, 0)
        found[name] = (int(low), int(high)) if known else None
    return found


def multiplied(
    base: Mapping[str, int | None], sources: Collection[str], multipliers: Iterable[int]
) -> dict[AdviceMethod, dict[int, dict[str, int]]]:
    """Way to multiplier to instances by operator. An operator whose instances are not known counts as one.

    >>> multiplied({"lines": None, "splitter": 5}, {"lines"}, [2])["source_only"]
    {2: {'lines': 2, 'splitter': 5}}
    """
    by_formula = {name: each or 1 for name, each in base.items()}
    found: dict[AdviceMethod, dict[int, dict[str, int]]] = {way: {} for way in ADVICE_METHODS}
    for times in multipliers:
        found["formula"][times] = {name: each * times for name, each in by_formula.items()}
        found["one_each"][times] = dict.fromkeys(by_formula, times)
        found["source_only"][times] = {
            name: each * times if name in sources else each for name, each in by_formula.items()
        }
    return found
