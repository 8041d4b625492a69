"""The generator's own ceiling on this machine, now: to be printed beside every rate [K §III; method 3]."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from streamgauge.load.plan import BATCH_BYTES_MAX, Plan

CHUNK_EVENTS = 131_072
_SLICES = 3


def measure_ceiling(plan: Plan, seconds: float = 0.5, clock: Callable[[], float] = time.perf_counter) -> float:
    """Events per second that one process makes of this plan's streams, in their shares: the median of three slices.

    Takes about `seconds`; nothing is sent anywhere. `clock` gives seconds.
    """
    rows = _rows_per_round(plan)
    _make_round(plan, rows, 0)  # the first round makes tables and is not timed
    return statistics.median(_slice_rate(plan, rows, seconds / _SLICES, clock) for _ in range(_SLICES))


def _rows_per_round(plan: Plan) -> list[int]:
    """Events of each stream in one round, in their shares, each batch within the bytes that a batch may have."""
    events = min(CHUNK_EVENTS, *(int(BATCH_BYTES_MAX / (s.row_bytes * s.share)) for s in plan.streams))
    return [max(round(events * stream.share), 1) for stream in plan.streams]


def _slice_rate(plan: Plan, rows: list[int], seconds: float, clock: Callable[[], float]) -> float:
    begin = now = clock()
    rounds = 0
    while rounds == 0 or now - begin < seconds:
        _make_round(plan, rows, rounds)
        rounds += 1
        now = clock()
    return rounds * sum(rows) / (now - begin)


def _make_round(plan: Plan, rows: list[int], number: int) -> None:
    for stream, count in enumerate(rows):
        plan.batch(stream, 0, number * count, (number + 1) * count)
