"""The lines of HdrHistogram's log format, apart from what is encoded in them: measures read them, and reports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_INTERVAL = re.compile(r"^(?:Tag=([^,]+),)?([\d.]+),[\d.]+,[\d.]+,(\S+)$")


class Interval(NamedTuple):
    """One line: `tag` is empty where there is none, `start_s` in seconds, `encoded` the histogram as text."""

    tag: str
    start_s: float
    encoded: str


def intervals(text: str) -> Iterator[Interval]:
    """Those of a log's text, in its order; lines that are no interval are passed over."""
    for line in text.splitlines():
        if match := _INTERVAL.match(line.strip()):
            yield Interval(match[1] or "", float(match[2]), match[3])
