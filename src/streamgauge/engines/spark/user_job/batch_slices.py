"""One timed slice of an operator, as the process that times hands it to who asked."""

from __future__ import annotations

from typing import NamedTuple


class Slice(NamedTuple):
    """Rows of a slice, seconds with the operator and seconds of only reading them.

    `fixed_seconds` is the same difference where there are no rows: what a job of the operator costs anyhow.
    """

    rows: int
    seconds: float
    reading_seconds: float
    fixed_seconds: float = 0.0
