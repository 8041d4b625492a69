"""Recently seen keys in Bloom filters of rbloom, and the same cells as DuckDB SQL for verification.

Whether a filter reports a key as seen depends on earlier keys, so keys are tested and added one by one, which is too
slow in pure Python. There are `SHARDS` filters, and flows are keyed by shard (see `decayed_sums`).

Each shard has two filters to forget old keys: one of the current span of time, one of the current and previous span.

rbloom does not specify its cells, so its version is pinned. A key's cells are the middle bits of a 128-bit linear
congruential generator seeded with the key. `BloomFilter.sql` restates this, and a test compares both.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import rbloom

from streamgauge.core.arrays import Bools, Int64s
from streamgauge.dataflow.operators.grouped_arrays import groups
from streamgauge.workloads.helpers.decayed_sums import SHARDS, WORD

MULTIPLIER = 47026247687942121848144207491837418733
P64, P96, P128 = 2**64, 2**96, 2**128


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
            factor, added = factor * MULTIPLIER % P128, (added * MULTIPLIER + 1) % P128
            by_first = f"{first}::HUGEINT * {factor % P64} % {P64} * {WORD}"
            state = f"({by_first} + {second}::HUGEINT * {factor % P96} % {P96} + {added % P96}) % {P96}"
            cells.append(f"({shard} * {self.width} + {state} // {WORD} % {self.width})::BIGINT")
        return tuple(cells)


class _FilterPair:
    """The two filters of a shard in one span."""

    def __init__(self, span: int, current: rbloom.Bloom, recent: rbloom.Bloom) -> None:
        self.span, self.current, self.recent = span, current, recent

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
            filters = self._filters(int(shards[rows[0]]), int(spans[rows[0]]))
            new[rows] = filters.add(keys[rows].tolist())
        return new

    def _filters(self, shard: int, span: int) -> _FilterPair:
        pair = self._shards.get(shard)
        if pair is None:
            pair = self._shards[shard] = _FilterPair(span, self._size.empty(), self._size.empty())
        return pair.at(span)

    @property
    def state(self) -> dict[str, pa.Array]:
        """For `save`."""
        filters = self._shards.values()
        return {
            "shards": pa.array(list(self._shards), pa.int64()),
            "spans": pa.array([each.span for each in filters], pa.int64()),
            "now": pa.array([each.current.save_bytes() for each in filters], pa.large_binary()),
            "lately": pa.array([each.recent.save_bytes() for each in filters], pa.large_binary()),
        }

    def restore(self, shards: pa.Array, spans: pa.Array, now: pa.Array, lately: pa.Array) -> None:
        rows = zip(*(each.to_pylist() for each in (shards, spans, now, lately)), strict=True)
        self._shards = {
            shard: _FilterPair(span, _loaded(first), _loaded(second)) for shard, span, first, second in rows
        }


def _loaded(saved: bytes) -> rbloom.Bloom:
    return rbloom.Bloom.load_bytes(saved, operator.index)
