"""The generator's own ceiling on this machine, now: to be printed beside every rate [K §III; method 3]."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

from streamgauge.loadgen.plan import BATCH_BYTES_MAX, Plan

CHUNK_EVENTS = 131_072
_SLICES = 3

Columns = Mapping[str, Sequence[str]]
"""Of each stream, those that are made."""


def measure_capacity(
    plan: Plan, columns: Columns, seconds: float = 0.5, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Events per second that one process makes of this plan's streams, in their shares: the median of three slices.

    `columns` of each stream are made, as generators do. Takes about `seconds`; nothing is sent anywhere, and nothing
    else runs: with a transport, beside a system under test, a generator offers less. `clock` gives seconds.
    """
    rows = _rows_per_round(plan, columns)
    _make_round(plan, columns, rows, 0)  # the first round makes tables and is not timed
    return statistics.median(_slice_rate(plan, columns, rows, seconds / _SLICES, clock) for _ in range(_SLICES))


def _rows_per_round(plan: Plan, columns: Columns) -> list[int]:
    """Events of each stream in one round, in their shares, each batch within the bytes that a batch may have."""
    sizes = [stream.bytes_of(columns[stream.name]) * stream.share for stream in plan.streams]
    # A stream that nothing is read of takes nothing.
    events = min([CHUNK_EVENTS, *(int(BATCH_BYTES_MAX / size) for size in sizes if size)])
    return [max(round(events * stream.share), 1) for stream in plan.streams]


def _slice_rate(plan: Plan, columns: Columns, rows: list[int], seconds: float, clock: Callable[[], float]) -> float:
    begin = now = clock()
    rounds = 0
    while rounds == 0 or now - begin < seconds:
        _make_round(plan, columns, rows, rounds)
        rounds += 1
        now = clock()
    return rounds * sum(rows) / (now - begin)


def _make_round(plan: Plan, columns: Columns, rows: list[int], number: int) -> None:
    for index, (stream, count) in enumerate(zip(plan.streams, rows, strict=True)):
        plan.batch(index, 0, number * count, (number + 1) * count, columns[stream.name])
