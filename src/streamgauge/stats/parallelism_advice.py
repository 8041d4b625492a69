"""Advised number of instances per operator (Bordin 2017, equation 3.4), and its multiples (section 3.5).

    s_op = sum over its inputs i of Tp_i * Sin_i        s_app = sum of s_op
    I_op = max(1, ceil(K * s_op / s_app))

`Tp_i` is the operator's time per tuple of input i, `Sin_i` the number of such tuples per source tuple. K is the
approximate total of instances, because every operator's share is rounded up.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

import numpy as np

AdviceMethod = Literal["formula", "one_each", "source_only"]
"""With a multiplier m: equation 3.4 times m; m instances for every operator; equation 3.4 with only sources times m."""

SPREAD = (0.05, 0.95)
"""The quantiles of the reported range of instances."""

# In floating point 10 * (0.7 / 1.0) exceeds 7 and must not become 8.
_ROUNDING = 1e-9


def work(inputs: Iterable[tuple[float, float]]) -> float:
    """`s_op` of an operator, from its pairs of Tp_i and Sin_i.

    >>> work([(2.0, 1.0), (2.0, 0.5)])
    3.0
    """
    return math.fsum(time * weight for time, weight in inputs)


def advised(works: Mapping[str, float | None], target: int = 10) -> dict[str, int | None]:
    """`I_op` by operator; None if its `s_op` is unknown. Unknown operators do not count for `s_app`.

    >>> advised({"splitter": 3.0, "counter": 1.0, "source": None}, target=10)
    {'splitter': 8, 'counter': 3, 'source': None}
    """
    if any(each is not None and not (each >= 0 and math.isfinite(each)) for each in works.values()):
        raise ValueError(f"work must be finite and not negative, got {dict(works)}")
    whole = math.fsum(each for each in works.values() if each is not None)
    return {name: None if each is None else _instances(each, whole, target) for name, each in works.items()}


def _instances(own: float, whole: float, target: int) -> int:
    """One instance if no operator takes any time."""
    return max(1, math.ceil(target * own / whole - _ROUNDING)) if whole else 1


def spread(samples: Sequence[Mapping[str, float | None]], target: int = 10) -> dict[str, tuple[int, int] | None]:
    """The 5th and 95th percentile of `I_op` over bootstrap samples of the works, by operator.

    >>> spread([{"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 3.0}])
    {'a': (3, 5), 'b': (5, 8)}
    """
    drawn = [advised(works, target) for works in samples]
    spreads: dict[str, tuple[int, int] | None] = {}
    for name in drawn[0] if drawn else ():
        values = [value for each in drawn if (value := each[name]) is not None]
        low, high = np.quantile(values, SPREAD, method="inverted_cdf") if values else (0, 0)
        spreads[name] = (int(low), int(high)) if values else None
    return spreads


def multiplied(
    base: Mapping[str, int | None], sources: Collection[str], multipliers: Sequence[int]
) -> dict[AdviceMethod, dict[int, dict[str, int]]]:
    """Method to multiplier to instances by operator. An operator with unknown instances counts as one.

    >>> multiplied({"lines": None, "splitter": 5}, {"lines"}, [2])["source_only"]
    {2: {'lines': 2, 'splitter': 5}}
    """
    by_formula = {name: each or 1 for name, each in base.items()}
    return {
        "formula": {times: {name: each * times for name, each in by_formula.items()} for times in multipliers},
        "one_each": {times: dict.fromkeys(by_formula, times) for times in multipliers},
        "source_only": {
            times: {name: each * times if name in sources else each for name, each in by_formula.items()}
            for times in multipliers
        },
    }
