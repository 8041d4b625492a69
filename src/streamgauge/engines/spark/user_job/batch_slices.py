"""One timed slice of an operator, the reply of the benchmark process."""

from __future__ import annotations

from typing import NamedTuple


class Slice(NamedTuple):
    """Rows of a slice, seconds with the operator, and seconds of only reading.

    `fixed_seconds` is the same difference without rows: the fixed cost of a job with the operator.
    """

    rows: int
    seconds: float
    reading_seconds: float
    fixed_seconds: float = 0.0
