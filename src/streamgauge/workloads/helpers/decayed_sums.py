"""Exponentially decaying sums per key, and recently seen keys: exact, or in the cells of a filter.

Bianchi, d'Heureuse and Niccolini (2011) store such sums in on-demand time-decaying Bloom filters: a counter decays when
it is read, by the time since its last read. No maintained library has them: count-min sketches cannot scale cells down,
and growing weights would overflow after 700 decays (six hours at Bordin's 30 s). So they are implemented here in NumPy,
and again as DuckDB SQL for verification.

*Places* map keys to cells. `Exact` gives each key one cell. `Filter` gives it one shared cell in each of `hashes` parts
of `width` cells; a sum is the minimum of its cells. There are `SHARDS` filters and flows are keyed by shard, so that
results do not depend on the parallelism. Unlike in Bordin's code, an amount is added to all cells of its key, not only
to the smallest. Otherwise the order of keys in a cell would matter. So sums are overestimated more.

Recently seen keys may also stand in Bloom filters of rbloom. Whether a filter reports a key as seen depends on earlier
keys, so keys are tested and added one by one, which is too slow in pure Python. Each shard has two filters to forget
old keys: one of the current span of time, one of the current and previous span. rbloom does not specify its cells, so
its version is pinned. A key's cells are the middle bits of a 128-bit linear congruential generator seeded with the key.
`BloomFilter.sql` restates this, and a test compares both.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import rbloom
from numpy.typing import NDArray

from streamgauge.core.arrays import Bools, Floats, Int64s
from streamgauge.dataflow.operators.grouped_arrays import groups
from streamgauge.loadgen.random import PhiloxBits

SHARDS = 64
"""The number of filters; more than the usual parallelism."""
HASHES_MAX = 8
WORD = 2**32
MULTIPLIERS: Int64s = (PhiloxBits(seed=2011, stream=0, partition=0, field=0).lanes(0, HASHES_MAX) | 1).astype(np.int64)
"""Odd 32-bit numbers. Hashing is multiply, shift, multiply within 63 bits, which SQL can restate."""
MIXER, MIXED_BITS = 0x7FEB352D, 16
"""The second hashing step: without it, consecutive keys would spread more evenly than random keys."""
BLOCK_DECAYS = 500
"""SQL sums within blocks of this many decays: exp(500) does not overflow, and exp(-500) is negligible."""
BLOOM_MULTIPLIER = 47026247687942121848144207491837418733
P64, P96, P128 = 2**64, 2**96, 2**128


@dataclass(frozen=True)
class Exact:
    """One cell per key; keys are from 0 to 2**31 - 1."""

    def addresses(self, shards: Int64s, key: Int64s) -> Int64s:
        """The cell of each row's key, shape (1, rows); `shards` is not used."""
        return key[None, :]

    def sql(self, shard: str, key: str) -> tuple[str, ...]:
        """The cells of one row as DuckDB expressions."""
        return (f"{key}::BIGINT",)


@dataclass(frozen=True)
class Filter:
    """Shared cells of a filter; keys are from 0 to 2**31 - 1, `width` is below 2**31."""

    hashes: int
    width: int

    def addresses(self, shards: Int64s, key: Int64s) -> Int64s:
        """The cells of each row's key in the filter of its shard, shape (hashes, rows)."""
        hashed_word = key * MULTIPLIERS[: self.hashes, None] % WORD
        hashed = (hashed_word ^ (hashed_word >> MIXED_BITS)) * MIXER % WORD
        part = shards * self.hashes + np.arange(self.hashes)[:, None]
        return part * self.width + hashed * self.width // WORD

    def sql(self, shard: str, key: str) -> tuple[str, ...]:
        """The cells of one row as DuckDB expressions."""
        return tuple(self._cell(part, shard, key) for part in range(self.hashes))

    def _cell(self, part: int, shard: str, key: str) -> str:
        word = f"({key}::BIGINT * {MULTIPLIERS[part]} % {WORD})"
        hashed = f"(xor({word}, {word} // {2**MIXED_BITS}) * {MIXER} % {WORD})"
        return f"({shard}::BIGINT * {self.hashes} + {part}) * {self.width} + ({hashed} * {self.width}) // {WORD}"


Places = Exact | Filter


class _GroupedRows:
    """Rows stably sorted by address; `order` is the permutation.

    `begins`, `ends`: first and last row of each address. `rank`: the index of each row within its address, from 0.
    """

    def __init__(self, addresses: Int64s) -> None:
        self.order = np.argsort(addresses, kind="stable")
        grouped_addresses = addresses[self.order]
        self.begins, group = groups(grouped_addresses)
        self.addresses = grouped_addresses[self.begins]
        self.ends = np.append(self.begins[1:], len(grouped_addresses)) - 1
        self.rank = np.arange(len(grouped_addresses)) - self.begins[group]

    def back(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of sorted rows, shape (..., rows), in the original order of rows."""
        restored = np.empty_like(values)
        restored[..., self.order] = values
        return restored


class _SortedStore:
    """Stores `width` numbers per address: sorted addresses, numbers of shape (width, addresses)."""

    def __init__(self, width: int) -> None:
        self.addresses = np.empty(0, np.int64)
        self.numbers = np.empty((width, 0))

    def stored(self, addresses: Int64s) -> tuple[Bools, Floats]:
        """Which of `addresses` (sorted, unique) are stored, and their numbers."""
        at, is_stored = self._find(addresses)
        return is_stored, self.numbers[:, at[is_stored]]

    def put(self, addresses: Int64s, numbers: Floats) -> None:
        at, is_stored = self._find(addresses)
        self.numbers[:, at[is_stored]] = numbers[:, is_stored]
        self.addresses = np.insert(self.addresses, at[~is_stored], addresses[~is_stored])
        self.numbers = np.insert(self.numbers, at[~is_stored], numbers[:, ~is_stored], axis=1)

    def keep(self, mask: Bools) -> None:
        if not mask.all():
            self.addresses, self.numbers = self.addresses[mask], self.numbers[:, mask]

    def _find(self, addresses: Int64s) -> tuple[Int64s, Bools]:
        at = np.searchsorted(self.addresses, addresses)
        is_stored = np.zeros(len(addresses), np.bool_)
        inside = np.flatnonzero(at < len(self.addresses))
        is_stored[inside] = self.addresses[at[inside]] == addresses[inside]
        return at, is_stored


class DecayedSums(_SortedStore):
    """Sums per key in which an amount counts exp(-age / decay); one decay in `decays_us` per sum.

    It stores the time and the sums of each key's last row.
    """

    def __init__(self, decays_us: Sequence[float]) -> None:
        super().__init__(1 + len(decays_us))
        self._decays = np.array(decays_us, np.float64)[:, None]

    def add(self, addresses: Int64s, times_us: Int64s, amounts: Floats) -> Floats:
        """Adds rows in order of time: addresses (cells, rows), times (rows,), amounts (sums, rows).

        Returns the sums of each row's key including the row, the minimum over its cells, shape (sums, rows).
        """
        cells, rows = addresses.shape
        if not rows:
            return amounts
        grouped = _GroupedRows(addresses.ravel())
        row = grouped.order % rows
        times, sums = times_us[row].astype(np.float64), amounts[:, row]
        is_stored, last = self.stored(grouped.addresses)
        first = grouped.begins[is_stored]
        sums[:, first] += last[1:] * self._remaining_share(times[first] - last[0])
        self._run(grouped.rank, times, sums)
        self.put(grouped.addresses, np.vstack((times[grouped.ends], sums[:, grouped.ends])))
        return np.asarray(grouped.back(sums).reshape(len(sums), cells, rows).min(axis=1))

    def _run(self, rank: Int64s, times: Floats, sums: Floats) -> None:
        """Running sums per key, in place, by doubling: after each step a row includes its last 2, 4, 8, ... rows.

        It needs log2(rows of the longest key) steps. Unlike differences of running sums, or powers of a reference time,
        it neither cancels nor overflows.
        """
        step, later = 1, np.arange(len(rank))
        while len(later := later[rank[later] >= step]):
            before = later - step
            sums[:, later] += sums[:, before] * self._remaining_share(times[later] - times[before])
            step *= 2

    def _remaining_share(self, ages_us: Floats) -> Floats:
        """The remaining share of an amount at each age, shape (sums, ages)."""
        return np.asarray(np.exp(-ages_us / self._decays))


class RecentKeys(_SortedStore):
    """The keys of the current and the previous span of `memory_us`, with their spans; older ones are forgotten."""

    def __init__(self, memory_us: int) -> None:
        super().__init__(1)
        self._memory_us = memory_us

    def add(self, keys: Int64s, times_us: Int64s) -> Bools:
        """Adds rows in order of time. Returns whether each key is new, shape (rows,)."""
        if not len(keys):
            return np.zeros(0, np.bool_)
        grouped = _GroupedRows(keys)
        spans = (times_us // self._memory_us)[grouped.order].astype(np.float64)
        before = np.concatenate(([-np.inf], spans[:-1]))
        before[grouped.begins] = -np.inf
        is_stored, last = self.stored(grouped.addresses)
        before[grouped.begins[is_stored]] = last[0]
        self.put(grouped.addresses, spans[None, grouped.ends])
        self.keep(self.numbers[0] >= times_us[-1] // self._memory_us - 1)
        return grouped.back(before < spans - 1)


def decayed_sql(relation: str, by: str, sums: Mapping[str, tuple[str, int]]) -> str:
    """DuckDB SQL for the sums of `DecayedSums` over rows with equal `by`.

    `relation` has `_row` and `_time`. `sums`: name to (amount, decay in us). Weights are exponentials of the time since
    the start of a block. The sum of the previous block is carried over; earlier blocks are negligible.
    """
    in_block, with_carry, windows = [], [], [f"earlier AS (PARTITION BY {by} ORDER BY _row)"]
    for name, (amount, decay) in sums.items():
        block = BLOCK_DECAYS * decay
        over = f"PARTITION BY {by}, _time // {block} ORDER BY _row"
        in_block.append(
            f"sum(({amount}) * exp((_time % {block}) / {decay}e0)) OVER ({over} ROWS UNBOUNDED PRECEDING)"
            f" * exp(-(_time % {block}) / {decay}e0) AS {name}_here"
        )
        windows.append(f"block_{name} AS ({over})")
        with_carry.append(
            f"{name}_here + coalesce(first_value({name}_before) OVER block_{name}"
            f" * exp((first_value(time_before) OVER block_{name} - _time) / {decay}e0), 0e0) AS {name}"
        )
    before = ", ".join(f"lag({name}_here) OVER earlier AS {name}_before" for name in sums)
    return (
        f"SELECT *, {', '.join(with_carry)} FROM (SELECT *, {before}, lag(_time) OVER earlier AS time_before"
        f" FROM (SELECT *, {', '.join(in_block)} FROM {relation}) WINDOW {windows[0]}) WINDOW {', '.join(windows[1:])}"
    )


def seen_sql(relation: str, by: str, memory_us: int) -> str:
    """DuckDB SQL: the rows of a relation (with `_row`, `_time`) and `fresh`: whether `RecentKeys` reports it as new."""
    span = f"_time // {memory_us}"
    before = f"lag({span}) OVER (PARTITION BY {by} ORDER BY _row)"
    return f"SELECT *, coalesce({before} < {span} - 1, true) AS fresh FROM {relation}"


@dataclass(frozen=True)
class BloomFilter:
    """Filters for `capacity` keys in total. A key is two numbers, each from 0 to 2**31 - 1.

    `error_rate`: the share of new keys that a full filter reports as seen; below 0.5.
    """

    capacity: int
    error_rate: float

    def empty(self) -> rbloom.Bloom:
        """An empty filter of one shard. Keys are integers and used as hashes."""
        return rbloom.Bloom(math.ceil(self.capacity / SHARDS), self.error_rate, operator.index)

    @property
    def hashes(self) -> int:
        """The number of cells per key; a saved filter starts with it."""
        return int.from_bytes(self.empty().save_bytes()[:8], "little")

    @property
    def width(self) -> int:
        """The number of cells in a shard's filter."""
        return self.empty().size_in_bits

    def sql(self, shard: str, first: str, second: str) -> tuple[str, ...]:
        """The cells of a row's key `first * WORD + second`, as DuckDB expressions."""
        cells, factor, added = [], 1, 0
        for _ in range(self.hashes):
            factor, added = factor * BLOOM_MULTIPLIER % P128, (added * BLOOM_MULTIPLIER + 1) % P128
            by_first = f"{first}::HUGEINT * {factor % P64} % {P64} * {WORD}"
            state = f"({by_first} + {second}::HUGEINT * {factor % P96} % {P96} + {added % P96}) % {P96}"
            cells.append(f"({shard} * {self.width} + {state} // {WORD} % {self.width})::BIGINT")
        return tuple(cells)


class _FilterPair:
    """The two filters of a shard in one span."""

    def __init__(self, span: int, current: rbloom.Bloom, recent: rbloom.Bloom) -> None:
        self.span, self.current, self.recent = span, current, recent

    def __getstate__(self) -> tuple[int, bytes, bytes]:
        return self.span, self.current.save_bytes(), self.recent.save_bytes()

    def __setstate__(self, state: tuple[int, bytes, bytes]) -> None:
        self.span = state[0]
        self.current, self.recent = (rbloom.Bloom.load_bytes(saved, operator.index) for saved in state[1:])

    def at(self, span: int) -> _FilterPair:
        """Advances to this span or a later one."""
        if span > self.span:
            self.current, self.recent = self.recent, self.current
            self.current.clear()
            if span > self.span + 1:
                self.recent.clear()
            self.span = span
        return self

    def add(self, keys: list[int]) -> list[bool]:
        """Whether each key was new when it came."""
        recent, new = self.recent, []
        for key in keys:
            is_new = key not in recent
            if is_new:
                recent.add(key)
            new.append(is_new)
        self.current.update(keys)
        return new


class RecentKeysInBloom:
    """`decayed_sums.RecentKeys` with Bloom filters: new keys may be reported as seen, but not the reverse."""

    def __init__(self, memory_us: int, size: BloomFilter) -> None:
        self._memory_us, self._size = memory_us, size
        self._shards: dict[int, _FilterPair] = {}

    def add(self, keys: Int64s, times_us: Int64s) -> Bools:
        """Adds rows in order of time; keys are `first * WORD + second`. Returns whether each is new, shape (rows,)."""
        new = np.zeros(len(keys), np.bool_)
        if not len(keys):
            return new
        shards, spans = keys // WORD % SHARDS, times_us // self._memory_us
        order = np.argsort(shards, kind="stable")
        begins, _ = groups(shards[order], spans[order])
        for rows in np.split(order, begins[1:]):
            shard, span = int(shards[rows[0]]), int(spans[rows[0]])
            if shard not in self._shards:
                self._shards[shard] = _FilterPair(span, self._size.empty(), self._size.empty())
            new[rows] = self._shards[shard].at(span).add(keys[rows].tolist())
        return new
