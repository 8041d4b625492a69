"""One row of the table: the median of a figure's repeats, and their spread."""

from __future__ import annotations

import statistics
from typing import Any

Row = dict[str, Any]


def row(
    what: str, values: list[float], unit: str, floor: float | None = None, goal: float | None = None, note: str = ""
) -> Row:
    """`value` is the median of the repeats, `spread` half their range relative to it; `note` may name a limit."""
    middle = statistics.median(values)
    spread = (max(values) - min(values)) / 2 / middle if middle else 0.0
    return {
        "what": what, "value": middle, "unit": unit, "floor": floor, "goal": goal, "median": middle, "spread": spread,
        "note": note,
    }  # fmt: skip
