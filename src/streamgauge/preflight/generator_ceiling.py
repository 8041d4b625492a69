"""How many events per second the generators of a trial can make on this machine, measured before it starts."""

import statistics
import time
from collections.abc import Callable

import numpy as np

from streamgauge.core.clock import US
from streamgauge.core.errors import Rule, require_all
from streamgauge.core.formatting import format_rate
from streamgauge.core.schema import StreamColumns
from streamgauge.loadgen.plan import BATCH_BYTES_MAX, MADE_US, Plan
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.system.cpu_pinning import cpus

CHUNK_EVENTS = 131_072
_SLICES = 3


def ceiling_of(resolved: ResolvedExperiment, rate_per_s: float) -> float:
    """Events per second that all generators can produce on this machine.

    One process is measured alone and without a transport, with the batches of a trial of this rate. The generators that
    have a core each can produce as many times more, unless one of them has a larger share of the events.
    """
    plan, cores = resolved.plan(0, rate_per_s, 10.0), len(resolved.driver_cpus or cpus())
    shares = np.zeros(plan.partitions)
    for number, stream in enumerate(plan.streams):
        shares += stream.share * plan.partition_shares(number)
    largest = max(float(shares[first :: resolved.generators].sum()) for first in range(resolved.generators))
    rounds_per_s = resolved.partitions / resolved.generators * US / max(resolved.chunk_for(rate_per_s), MADE_US)
    return measure_capacity(plan, resolved.generated_columns, rounds_per_s) * min(1 / largest, cores)


def ceiling_above_rate(resolved: ResolvedExperiment) -> float:
    """The generators' ceiling in events per second. Raises InputError if the rate is above it."""
    rate_per_s = resolved.experiment.load.rate
    ceiling = ceiling_of(resolved, rate_per_s)
    require_all(Rule(
        rate_per_s <= ceiling, "load.rate",
        f"must be at most the limit of the generators on this machine, {format_rate(ceiling)}", format_rate(rate_per_s),
        f"--rate {format_rate(ceiling / 2).replace(' ', '')}, or a longer --chunk if rows are wide",
    ))  # fmt: skip
    return ceiling


def measure_capacity(
    plan: Plan, columns: StreamColumns, rounds_per_s: float = 0.0, seconds: float = 0.5,
    clock: Callable[[], float] = time.perf_counter,
) -> float:  # fmt: skip
    """Events per second that one process makes of this plan's streams, in their shares: the median of three slices.

    It makes `columns` of each stream, as generators do, in about `seconds`. Nothing is sent and nothing else runs, so
    a generator in a trial offers less. `clock` returns seconds.

    `rounds_per_s`: how often a generator makes a batch of each stream. The fixed cost of a batch, which wide rows make
    large, leaves only the rest of each second for events.
    """
    rows = _rows_per_round(plan, columns)
    least = [1] * len(rows)
    for each in (rows, least):
        _make_round(plan, columns, each, 0)  # the first round makes tables and is not timed
    round_s, fixed_s = (
        statistics.median(_round_s(plan, columns, each, slice_s, clock) for _ in range(_SLICES))
        for each, slice_s in ((rows, seconds / _SLICES), (least, 0.0))
    )
    # A quarter at least, because rounds of few large events hardly take longer than those of one.
    of_events_s = max(round_s - fixed_s, round_s / 4)
    return max(1 - rounds_per_s * fixed_s, 0.0) * sum(rows) / of_events_s


def _rows_per_round(plan: Plan, columns: StreamColumns) -> list[int]:
    """Events of each stream in one round, in their shares, with no batch above the limit of bytes."""
    sizes = [stream.bytes_of(columns[stream.name]) * stream.share for stream in plan.streams]
    # A stream without columns has size 0.
    events = min([CHUNK_EVENTS, *(int(BATCH_BYTES_MAX / size) for size in sizes if size)])
    return [max(round(events * stream.share), 1) for stream in plan.streams]


def _round_s(plan: Plan, columns: StreamColumns, rows: list[int], seconds: float, clock: Callable[[], float]) -> float:
    """Seconds per round, over at least one round and `seconds`."""
    begin = now = clock()
    rounds = 0
    while rounds == 0 or now - begin < seconds:
        _make_round(plan, columns, rows, rounds)
        rounds += 1
        now = clock()
    return (now - begin) / rounds


def _make_round(plan: Plan, columns: StreamColumns, rows: list[int], number: int) -> None:
    for index, (stream, count) in enumerate(zip(plan.streams, rows, strict=True)):
        fullest = int(np.argmax(plan.partition_shares(index)))
        plan.batch(index, fullest, number * count, (number + 1) * count, columns[stream.name])
