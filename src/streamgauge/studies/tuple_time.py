"""From the timed slices of an operator to the time that one of its tuples takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from streamgauge.events import US
from streamgauge.stats.percentile import carries, observations_needed

Q = 0.99


class Slice(NamedTuple):
    """Rows of a slice, seconds with the operator and of only reading them, and their difference without a row."""

    rows: int
    seconds: float
    reading_seconds: float
    fixed_seconds: float = 0.0

    def tuple_us(self, fixed_s: float) -> float:
        """Microseconds for each row; below 0 where only reading happened to take longer."""
        return US * (self.seconds - self.reading_seconds - fixed_s) / self.rows


def tuple_time(slices: Sequence[Slice]) -> dict[str, Any] | None:
    """Median and p99 over slices, microseconds; None where there is no slice.

    What a job of the operator costs without a row, the median over slices, is paid once a batch, and taken off each.
    Negative differences stay in the median, and are in `negative_slices`; p99 is of what is not below 0, and None where
    there are too few slices to carry it.
    """
    if not slices:
        return None
    fixed_s = float(np.median([each.fixed_seconds for each in slices]))
    times = np.array([each.tuple_us(fixed_s) for each in slices])
    p99 = float(np.quantile(np.maximum(times, 0.0), Q, method="inverted_cdf")) if carries(Q, len(times)) else None
    return {
        "median": float(np.median(times)),
        "p99": p99,
        "slices": len(slices),
        "negative_slices": int((times < 0).sum()),
        "fixed_per_slice": US * fixed_s,
        "rows_per_slice": float(np.mean([each.rows for each in slices])),
    }


def too_few(slices: int) -> str:
    """Why there is no p99."""
    return f"p99 needs {observations_needed(Q)} slices with rows, and there were {slices}"
