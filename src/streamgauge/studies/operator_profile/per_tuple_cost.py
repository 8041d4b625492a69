"""Computes the time per tuple of an operator from its timed slices."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from streamgauge.core.arrays import Floats
from streamgauge.core.clock import US
from streamgauge.engines.operator_profiler import Slice
from streamgauge.results.profile import TupleTime
from streamgauge.stats.samples import carries, observations_needed, positives_needed

Q = 0.99
CONFIDENCE = 0.95
"""The confidence of the two-sided sign test that tells an operator from only reading."""


class _Times(NamedTuple):
    """Microseconds per tuple: of each slice, the baseline of the p99, and the p99.

    `interval`: interval of the median difference, by the sign test; None with too few slices.
    """

    differences: Floats
    baseline: float
    p99: float
    interval: tuple[float, float] | None

    @property
    def distinguishable(self) -> bool:
        """Slower than only reading."""
        return self.interval is not None and self.interval[0] > 0


def _times(slices: Floats) -> _Times:
    """`slices` (slices, 4): rows, seconds, reading, fixed.

    The p99 is of the runs with the operator alone, less one baseline for all of them: the p99 of differences would be
    that of the baseline's own noise wherever the operator costs little.
    """
    rows, seconds, reading, fixed = slices.T
    fixed_s = np.median(fixed)
    differences = US * (seconds - reading - fixed_s) / rows
    baseline = float(np.median(US * (reading + fixed_s) / rows))
    high = float(np.quantile(US * seconds / rows, Q, method="inverted_cdf"))
    return _Times(differences, baseline, max(high - baseline, 0.0), _interval(differences))


def _interval(differences: Floats) -> tuple[float, float] | None:
    """Interval of the median difference, by rank: above 0 if as many differences are as the sign test needs."""
    needed = positives_needed(len(differences), CONFIDENCE)
    if needed > len(differences):
        return None
    ordered = np.sort(differences)
    return float(ordered[-needed]), float(ordered[needed - 1])


def per_tuple_cost(slices: Sequence[Slice]) -> TupleTime | None:
    """Median and p99 over slices, microseconds; None without a slice.

    - The time of the job without rows, the median over slices, is paid once a batch, so each slice is reduced by it.
    - Negative differences stay in the median and are counted in `negative_slices`.
    - `distinguishable`: by a sign test, the operator is slower than only reading. If not, median and p99 are None, and
      `interval` says what the median may be. The p99 is also None with too few slices.
    """
    if not slices:
        return None
    measured = np.array(slices, dtype=np.float64)
    times = _times(measured)
    return TupleTime(
        median=float(np.median(times.differences)) if times.distinguishable else None,
        p99=times.p99 if times.distinguishable and carries(Q, len(slices)) else None,
        interval=times.interval,
        distinguishable=times.distinguishable,
        slices=len(slices),
        slower_slices=int((times.differences > 0).sum()),
        negative_slices=int((times.differences < 0).sum()),
        baseline=times.baseline,
        fixed_per_slice=US * float(np.median(measured[:, 3])),
        rows_per_slice=float(measured[:, 0].mean()),
    )


def resampled(slices: Sequence[Slice], times: int, random: np.random.Generator) -> list[float]:
    """Tp of eq. 3.4 in each of `times` bootstrap samples of the slices, microseconds."""
    measured = np.array(slices, dtype=np.float64)
    drawn = (_times(measured[random.integers(len(slices), size=len(slices))]) for _ in range(times))
    return [each.p99 if each.distinguishable else 0.0 for each in drawn]


def too_few(slices: int) -> str:
    """Why there is no p99."""
    return f"p99 needs {observations_needed(Q)} slices with rows, and there were {slices}"


def unreported(time: TupleTime) -> str:
    """Why an operator has no time, and counts as no work."""
    slices, slower = time.slices, time.slower_slices
    needed = positives_needed(slices, CONFIDENCE)
    head = "takes less than only reading"
    if time.negative_slices < needed:
        interval = f" (+/- {(time.interval[1] - time.interval[0]) / 2:.3g} us)" if time.interval is not None else ""
        head = f"below what can be told from only reading{interval}"
    counted = "; counts as no work" if carries(Q, slices) else ""
    return (
        f"{head}: slower with it in {slower} of {slices} slices, the sign test wants {needed}{counted}; more or larger "
        "slices (--slices, --slice-events) tell more"
    )
