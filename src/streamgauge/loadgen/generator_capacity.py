"""Measures the generator's maximum rate on this machine, which results report with every rate."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from streamgauge.core.schema import StreamColumns
from streamgauge.loadgen.plan import BATCH_BYTES_MAX, Plan

CHUNK_EVENTS = 131_072
_SLICES = 3


def measure_capacity(
    plan: Plan, columns: StreamColumns, seconds: float = 0.5, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Events per second that one process makes of this plan's streams, in their shares: the median of three slices.

    It makes `columns` of each stream, as generators do, in about `seconds`. Nothing is sent and nothing else runs, so
    a generator in a trial offers less. `clock` returns seconds.
    """
    rows = _rows_per_round(plan, columns)
    _make_round(plan, columns, rows, 0)  # the first round makes tables and is not timed
    return statistics.median(_slice_rate(plan, columns, rows, seconds / _SLICES, clock) for _ in range(_SLICES))


def _rows_per_round(plan: Plan, columns: StreamColumns) -> list[int]:
    """Events of each stream in one round, in their shares, with no batch above the limit of bytes."""
    sizes = [stream.bytes_of(columns[stream.name]) * stream.share for stream in plan.streams]
    # A stream without columns has size 0.
    events = min([CHUNK_EVENTS, *(int(BATCH_BYTES_MAX / size) for size in sizes if size)])
    return [max(round(events * stream.share), 1) for stream in plan.streams]


def _slice_rate(
    plan: Plan, columns: StreamColumns, rows: list[int], seconds: float, clock: Callable[[], float]
) -> float:
    begin = now = clock()
    rounds = 0
    while rounds == 0 or now - begin < seconds:
        _make_round(plan, columns, rows, rounds)
        rounds += 1
        now = clock()
    return rounds * sum(rows) / (now - begin)


def _make_round(plan: Plan, columns: StreamColumns, rows: list[int], number: int) -> None:
    for index, (stream, count) in enumerate(zip(plan.streams, rows, strict=True)):
        fullest = int(np.argmax(plan.partition_shares(index)))
        plan.batch(index, fullest, number * count, (number + 1) * count, columns[stream.name])
