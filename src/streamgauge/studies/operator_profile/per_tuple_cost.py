"""Computes the time per tuple of an operator from its timed slices."""

from collections.abc import Sequence

import numpy as np

from streamgauge.core.arrays import Floats
from streamgauge.core.clock import US
from streamgauge.engines.operator_profiler import Slice
from streamgauge.results.profile import TupleTime
from streamgauge.stats.samples import carries, observations_needed, positives_needed

Q = 0.99
CONFIDENCE = 0.95
"""The confidence of the two-sided sign test that tells an operator from only reading."""


def per_tuple_cost(slices: Sequence[Slice] | Floats) -> TupleTime | None:
    """Median and p99 over slices, microseconds; None without a slice. An array has the columns of `Slice`.

    - The time of the job without rows, the median over slices, is paid once a batch, so each slice is reduced by it.
    - The p99 is of the runs with the operator alone, less one baseline for all of them: the p99 of differences would be
      that of the baseline's own noise wherever the operator costs little.
    - Negative differences stay in the median and are counted in `negative_slices`.
    - `distinguishable`: by a sign test, the operator is slower than only reading. If not, median and p99 are None, and
      `interval` says what the median may be. The p99 is also None with too few slices.
    """
    if not len(slices):
        return None
    rows, seconds, reading, fixed = np.array(slices, dtype=np.float64).T
    fixed_s = np.median(fixed)
    differences = US * (seconds - reading - fixed_s) / rows
    baseline = float(np.median(US * (reading + fixed_s) / rows))
    high = float(np.quantile(US * seconds / rows, Q, method="inverted_cdf"))
    interval = _interval(differences)
    distinguishable = interval is not None and interval[0] > 0
    return TupleTime(
        median=float(np.median(differences)) if distinguishable else None,
        p99=max(high - baseline, 0.0) if distinguishable and carries(Q, len(slices)) else None,
        interval=interval,
        distinguishable=distinguishable,
        slices=len(slices),
        slower_slices=int((differences > 0).sum()),
        negative_slices=int((differences < 0).sum()),
        baseline=baseline,
        fixed_per_slice=US * float(fixed_s),
        rows_per_slice=float(rows.mean()),
    )


def _interval(differences: Floats) -> tuple[float, float] | None:
    """Interval of the median difference, by rank: above 0 if as many differences are as the sign test needs."""
    needed = positives_needed(len(differences), CONFIDENCE)
    if needed > len(differences):
        return None
    ordered = np.sort(differences)
    return float(ordered[-needed]), float(ordered[needed - 1])


def resampled(slices: Sequence[Slice], times: int, random: np.random.Generator) -> list[float]:
    """Tp of eq. 3.4 in each of `times` bootstrap samples of slices that carry a p99, microseconds."""
    measured = np.array(slices, dtype=np.float64)
    drawn = (per_tuple_cost(measured[random.integers(len(slices), size=len(slices))]) for _ in range(times))
    return [time.p99 or 0.0 for time in drawn if time is not None]


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
