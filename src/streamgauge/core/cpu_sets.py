"""Sets of processors as text: `0`, `1-3`, `0,2-5`."""

from __future__ import annotations

import re
from collections.abc import Collection

from streamgauge.core.errors import InputError, Problem

CPU_MAX = 8191
"""The highest number that Linux gives a processor."""
_PART = re.compile(r"\s*([0-9]{1,5})\s*(?:-\s*([0-9]{1,5})\s*)?")


def parse_cpus(text: str | int, setting: str = "cpus", way_out: str = "--cpus 0-1") -> tuple[int, ...]:
    """The ascending numbers in a text. Raises InputError."""
    found: set[int] = set()
    for part in str(text).split(","):
        match = _PART.fullmatch(part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last <= CPU_MAX:
            raise InputError(Problem(setting, "must be processors such as 0, 1-3 or 0,2-5", text, way_out))
        found |= set(range(first, last + 1))
    return tuple(sorted(found))


def format_cpus(cpus: Collection[int]) -> str:
    """The shortest text that `parse_cpus` reads back."""
    spans: list[list[int]] = []
    for cpu in sorted(cpus):
        if spans and cpu == spans[-1][1] + 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return ",".join(f"{first}-{last}" if first < last else str(first) for first, last in spans)
