"""Sums that forget, of each key exactly or in the cells of a filter, and exactly what was seen lately: whole batches.

Bianchi, d'Heureuse and Niccolini [CCR 2011] keep such sums in *on-demand time-decaying Bloom filters*: a counter is
decayed when it is looked at, by the time since it was looked at last. No library that is kept has them. Cells of a
count-min sketch can be added to, and not be scaled down: those of pyprobables are whole numbers, and in datasketches,
of doubles, decay would be weights that grow with time, which overflow after 700 decays, six hours of the thesis's 30
s. So they are here, in NumPy, and again as DuckDB SQL, which can judge them. A plain Bloom filter, which tells what
was seen lately, is a library's: `bloom`.

*Places* say where a key is kept. `Exact` gives each key a cell of its own. `Filter` gives it one cell in each of
`hashes` parts of `width` cells, which it shares with others: a sum is the smallest of its cells. There are `SHARDS`
filters, and a flow is keyed by shard: were there one for each instance, answers would depend on which keys meet in
which instance. One thing differs from the thesis's code, or the order in which keys meet in a cell would matter, row
after row: an amount is added to all cells of its key, not only to the smallest, so sums are overestimated more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamgauge.dataflow.operators.grouped_arrays import Bools, Floats, Ints, groups
from streamgauge.loadgen.random.philox import PhiloxBits

SHARDS = 64
"""Filters of a kind; more than there are instances, so that these can share them out."""
HASHES_MAX = 8
WORD = 2**32
MULTIPLIERS: Ints = (PhiloxBits(seed=2011, stream=0, partition=0, field=0).lanes(0, HASHES_MAX) | 1).astype(np.int64)
"""Odd numbers of 32 bits. Hashing is multiply, shift, multiply: plain arithmetic within 63 bits, which SQL can
restate."""
MIXER, MIXED_BITS = 0x7FEB352D, 16
"""Without a second step, keys that rise evenly would fill a filter evenly, and more of it than keys at random."""
BLOCK_DECAYS = 500
"""SQL sums within blocks of so many decays: exp(500) is far from the end of doubles, exp(-500) is nothing."""


@dataclass(frozen=True)
class Exact:
    """A cell for each key, 0 to 2**31 - 1."""

    def addresses(self, shards: Ints, key: Ints) -> Ints:
        """The one cell of each row's key, shape (1, rows); `shards` say nothing here."""
        return key[None, :]

    def sql(self, shard: str, key: str) -> tuple[str, ...]:
        """The same of one row, as DuckDB expressions."""
        return (f"{key}::BIGINT",)


@dataclass(frozen=True)
class Filter:
    """Cells of a filter for keys, each 0 to 2**31 - 1; `width` is below 2**31."""

    hashes: int
    width: int

    def addresses(self, shards: Ints, key: Ints) -> Ints:
        """The cells of each row's key in the filter of its shard, shape (hashes, rows)."""
        word = key * MULTIPLIERS[: self.hashes, None] % WORD
        hashed = (word ^ (word >> MIXED_BITS)) * MIXER % WORD
        part = shards * self.hashes + np.arange(self.hashes)[:, None]
        return part * self.width + hashed * self.width // WORD

    def sql(self, shard: str, key: str) -> tuple[str, ...]:
        """The same of one row, as DuckDB expressions."""
        return tuple(self._cell(part, shard, key) for part in range(self.hashes))

    def _cell(self, part: int, shard: str, key: str) -> str:
        word = f"({key}::BIGINT * {MULTIPLIERS[part]} % {WORD})"
        hashed = f"(xor({word}, {word} // {2**MIXED_BITS}) * {MIXER} % {WORD})"
        return f"({shard}::BIGINT * {self.hashes} + {part}) * {self.width} + ({hashed} * {self.width}) // {WORD}"


Places = Exact | Filter


class _Together:
    """Rows of equal addresses together, in the order they had: `order` brings them there.

    Of each address: where its rows begin and end (its last row). Of each row: its `rank` among them, from 0.
    """

    def __init__(self, addresses: Ints) -> None:
        self.order = np.argsort(addresses, kind="stable")
        together = addresses[self.order]
        self.begins, group = groups(together)
        self.addresses = together[self.begins]
        self.ends = np.append(self.begins[1:], len(together)) - 1
        self.rank = np.arange(len(together)) - self.begins[group]

    def back(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the rows together, shape (..., rows), in the order that rows had."""
        found = np.empty_like(values)
        found[..., self.order] = values
        return found


class _Remembered:
    """Some numbers of each address: addresses sorted, numbers with shape (width, addresses)."""

    def __init__(self, width: int) -> None:
        self.addresses = np.empty(0, np.int64)
        self.numbers = np.empty((width, 0))

    def known(self, addresses: Ints) -> tuple[Bools, Floats]:
        """Which of `addresses` (sorted, each once) are there, and the numbers of those."""
        at, there = self._find(addresses)
        return there, self.numbers[:, at[there]]

    def put(self, addresses: Ints, numbers: Floats) -> None:
        at, there = self._find(addresses)
        self.numbers[:, at[there]] = numbers[:, there]
        self.addresses = np.insert(self.addresses, at[~there], addresses[~there])
        self.numbers = np.insert(self.numbers, at[~there], numbers[:, ~there], axis=1)

    def keep(self, which: Bools) -> None:
        if not which.all():
            self.addresses, self.numbers = self.addresses[which], self.numbers[:, which]

    def _find(self, addresses: Ints) -> tuple[Ints, Bools]:
        at = np.searchsorted(self.addresses, addresses)
        there = np.zeros(len(addresses), np.bool_)
        inside = np.flatnonzero(at < len(self.addresses))
        there[inside] = self.addresses[at[inside]] == addresses[inside]
        return at, there

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        return {"addresses": self.addresses, "numbers": self.numbers.ravel()}

    def restore(self, addresses: pa.Array, numbers: pa.Array) -> None:
        self.addresses = addresses.to_numpy()
        self.numbers = numbers.to_numpy().reshape(len(self.numbers), len(addresses)).copy()


class DecayedSums:
    """Sums of each key in which an amount counts exp(-age / decay); `decays_us` has one decay for each sum."""

    def __init__(self, decays_us: Sequence[float]) -> None:
        self._decays = np.array(decays_us, np.float64)[:, None]
        self._last = _Remembered(1 + len(decays_us))

    def add(self, addresses: Ints, times_us: Ints, amounts: Floats) -> Floats:
        """Takes rows in order of time: their cells (places, rows), times (rows,), what they add (sums, rows).

        Gives the sums of each row's key, what it adds included, of several cells the smallest: shape (sums, rows).
        """
        places, rows = addresses.shape
        if not rows:
            return amounts
        together = _Together(addresses.ravel())
        row = together.order % rows
        times, sums = times_us[row].astype(np.float64), amounts[:, row]
        known, last = self._last.known(together.addresses)
        first = together.begins[known]
        sums[:, first] += last[1:] * self._left(times[first] - last[0])
        self._run(together.rank, times, sums)
        self._last.put(together.addresses, np.vstack((times[together.ends], sums[:, together.ends])))
        found: Floats = together.back(sums).reshape(len(sums), places, rows)
        return found.min(axis=1)

    def _run(self, rank: Ints, times: Floats, sums: Floats) -> None:
        """Running sums of each key, in place: after each step, a row has what its last 2, 4, 8, ... rows added.

        Doubling takes as many steps as the longest key's rows have binary digits; and unlike differences of one running
        sum, or powers of one reference time, it neither cancels nor overflows.
        """
        step, later = 1, np.arange(len(rank))
        while len(later := later[rank[later] >= step]):
            before = later - step
            sums[:, later] += sums[:, before] * self._left(times[later] - times[before])
            step *= 2

    def _left(self, ages_us: Floats) -> Floats:
        """What is left of an amount of each age, shape (sums, ages)."""
        left: Floats = np.exp(-ages_us / self._decays)
        return left

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """For `save`."""
        return self._last.state

    def restore(self, addresses: pa.Array, numbers: pa.Array) -> None:
        self._last.restore(addresses, numbers)


class Seen:
    """Which keys came in this span of `memory_us` or the one before it; older ones are forgotten."""

    def __init__(self, memory_us: int) -> None:
        self._memory_us = memory_us
        self._last = _Remembered(1)

    def add(self, keys: Ints, times_us: Ints) -> Bools:
        """Takes rows in order of time; tells which keys are new."""
        if not len(keys):
            return np.zeros(0, np.bool_)
        together = _Together(keys)
        spans = (times_us // self._memory_us)[together.order].astype(np.float64)
        before = np.concatenate(([-np.inf], spans[:-1]))
        before[together.begins] = -np.inf
        known, last = self._last.known(together.addresses)
        before[together.begins[known]] = last[0]
        self._last.put(together.addresses, spans[None, together.ends])
        self._last.keep(self._last.numbers[0] >= times_us[-1] // self._memory_us - 1)
        found: Bools = together.back(before < spans - 1)
        return found

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """For `save`."""
        return self._last.state

    def restore(self, addresses: pa.Array, numbers: pa.Array) -> None:
        self._last.restore(addresses, numbers)


def decayed_sql(relation: str, by: str, sums: Mapping[str, tuple[str, int]]) -> str:
    """DuckDB SQL: the rows of a relation with `_row` and `_time`, and for each name in `sums` (amount, decay in us) the
    sum that `DecayedSums` gives of the rows with equal `by` up to this one.

    Weights are powers of the time since the block began. The sum at the last row before a block is carried into it;
    what that row had from blocks before its own is left out, because it is nothing by now.
    """
    here, carried, windows = [], [], [f"earlier AS (PARTITION BY {by} ORDER BY _row)"]
    for name, (amount, decay) in sums.items():
        block = BLOCK_DECAYS * decay
        over = f"PARTITION BY {by}, _time // {block} ORDER BY _row"
        here.append(
            f"sum(({amount}) * exp((_time % {block}) / {decay}e0)) OVER ({over} ROWS UNBOUNDED PRECEDING)"
            f" * exp(-(_time % {block}) / {decay}e0) AS {name}_here"
        )
        windows.append(f"block_{name} AS ({over})")
        carried.append(
            f"{name}_here + coalesce(first_value({name}_before) OVER block_{name}"
            f" * exp((first_value(time_before) OVER block_{name} - _time) / {decay}e0), 0e0) AS {name}"
        )
    before = ", ".join(f"lag({name}_here) OVER earlier AS {name}_before" for name in sums)
    return (
        f"SELECT *, {', '.join(carried)} FROM (SELECT *, {before}, lag(_time) OVER earlier AS time_before"
        f" FROM (SELECT *, {', '.join(here)} FROM {relation}) WINDOW {windows[0]}) WINDOW {', '.join(windows[1:])}"
    )


def seen_sql(relation: str, by: str, memory_us: int) -> str:
    """DuckDB SQL: the rows of a relation with `_row` and `_time`, and `fresh`: whether `ReadVisibility` calls this
    row new.
    """
    span = f"_time // {memory_us}"
    before = f"lag({span}) OVER (PARTITION BY {by} ORDER BY _row)"
    return f"SELECT *, coalesce({before} < {span} - 1, true) AS fresh FROM {relation}"
