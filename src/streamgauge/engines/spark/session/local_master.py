"""Masters of a Spark on this machine alone. Does not load Spark."""

from __future__ import annotations

import re

_LOCAL = re.compile(r"local(?:\[([1-9][0-9]*|\*)(?:,\s*[1-9][0-9]*)?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*[0-9]+\s*,\s*[0-9]+\s*,\s*[0-9]+\s*\]")


def is_local(master: str) -> bool:
    """Whether its processes run on this machine: `local`, `local[N]` or `local-cluster[...]`."""
    return master.startswith("local")


def is_valid_local(master: str) -> bool:
    """Whether Spark can start it."""
    return bool(_LOCAL.fullmatch(master) or _LOCAL_CLUSTER.fullmatch(master))


def local_slots(master: str) -> int | None:
    """The tasks that it runs at once, N of `local[N]`; None where that is not stated, and for every other master."""
    match = _LOCAL.fullmatch(master)
    return int(match[1] or 1) if match is not None and match[1] != "*" else None
