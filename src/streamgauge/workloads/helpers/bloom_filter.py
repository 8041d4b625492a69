"""Which keys were seen lately, in Bloom filters of rbloom; and their cells as DuckDB SQL, which can judge them.

Whether a filter takes a key for known depends on the keys before it, so each is asked for and then added, one after the
other; filters in pure Python are too slow for that. What else is done goes by shard: there are `SHARDS` filters of a
kind, and a flow is keyed by shard, for the reason given in `decayed`.

To forget, there are two filters for each shard: of this span of time, and of it and the span before together.

How rbloom finds a key's cells is no part of what it promises, so its version is pinned: each is the middle of a linear
congruential generator's 128 bits that begins with the key. `BloomFilter.sql` says the same, and a test compares them.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import rbloom

from streamgauge.dataflow.operators.grouped_arrays import Bools, Ints, groups
from streamgauge.workloads.helpers.decayed_sums import SHARDS, WORD

MULTIPLIER = 47026247687942121848144207491837418733
P64, P96, P128 = 2**64, 2**96, 2**128


@dataclass(frozen=True)
class BloomFilter:
    """Filters with room for so many keys in all of them together, of two numbers each, both 0 to 2**31 - 1.

    `error_rate`: share of the new keys that may pass for known where a filter is full; below 0.5.
    """

    capacity: int
    error_rate: float

    def empty(self) -> rbloom.Bloom:
        """The filter of one shard; keys are whole numbers, which are their own hashes."""
        return rbloom.Bloom(math.ceil(self.capacity / SHARDS), self.error_rate, operator.index)

    @property
    def hashes(self) -> int:
        """How many cells a key has: what is saved of a filter begins with it."""
        return int.from_bytes(self.empty().save_bytes()[:8], "little")

    @property
    def width(self) -> int:
        """How many cells the filter of a shard has."""
        return self.empty().size_in_bits

    def sql(self, shard: str, first: str, second: str) -> tuple[str, ...]:
        """The cells of a row's key `first * WORD + second`, as DuckDB expressions."""
        found, factor, added = [], 1, 0
        for _ in range(self.hashes):
            factor, added = factor * MULTIPLIER % P128, (added * MULTIPLIER + 1) % P128
            by_first = f"{first}::HUGEINT * {factor % P64} % {P64} * {WORD}"
            state = f"({by_first} + {second}::HUGEINT * {factor % P96} % {P96} + {added % P96}) % {P96}"
            found.append(f"({shard} * {self.width} + {state} // {WORD} % {self.width})::BIGINT")
        return tuple(found)


class _Lately:
    """The two filters of a shard, as they are in one span."""

    def __init__(self, span: int, now: rbloom.Bloom, lately: rbloom.Bloom) -> None:
        self.span, self.now, self.lately = span, now, lately

    def at(self, span: int) -> _Lately:
        """The same in this span or a later one."""
        if span > self.span:
            self.now, self.lately = self.lately, self.now
            self.now.clear()
            if span > self.span + 1:
                self.lately.clear()
            self.span = span
        return self

    def add(self, keys: list[int]) -> list[bool]:
        """Which of them were new, each when it came."""
        lately, new = self.lately, []
        for key in keys:
            is_new = key not in lately
            if is_new:
                lately.add(key)
            new.append(is_new)
        self.now.update(keys)
        return new


class SeenInBloom:
    """`decayed.Seen` in filters: some keys that are new pass for known, and none that is known for new."""

    def __init__(self, memory_us: int, size: BloomFilter) -> None:
        self._memory_us, self._size = memory_us, size
        self._shards: dict[int, _Lately] = {}

    def add(self, keys: Ints, times_us: Ints) -> Bools:
        """Takes rows in order of time, keys of two numbers as `first * WORD + second`; tells which are new."""
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

    def _filters(self, shard: int, span: int) -> _Lately:
        there = self._shards.get(shard)
        if there is None:
            there = self._shards[shard] = _Lately(span, self._size.empty(), self._size.empty())
        return there.at(span)

    @property
    def state(self) -> dict[str, pa.Array]:
        """For `save`."""
        filters = self._shards.values()
        return {
            "shards": pa.array(list(self._shards), pa.int64()),
            "spans": pa.array([each.span for each in filters], pa.int64()),
            "now": pa.array([each.now.save_bytes() for each in filters], pa.large_binary()),
            "lately": pa.array([each.lately.save_bytes() for each in filters], pa.large_binary()),
        }

    def restore(self, shards: pa.Array, spans: pa.Array, now: pa.Array, lately: pa.Array) -> None:
        rows = zip(*(each.to_pylist() for each in (shards, spans, now, lately)), strict=True)
        self._shards = {shard: _Lately(span, _loaded(first), _loaded(second)) for shard, span, first, second in rows}


def _loaded(saved: bytes) -> rbloom.Bloom:
    return rbloom.Bloom.load_bytes(saved, operator.index)
