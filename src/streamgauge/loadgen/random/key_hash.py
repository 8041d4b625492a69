"""Kafka's own assignment of keys to partitions: murmur2 of the key's UTF-8 text, modulo the number of partitions.

So a keyed topic has its rows where a producer with Kafka's default partitioner would have put them.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.arrays import Int32s

_SEED, _M, _R = np.uint32(0x9747B28C), np.uint32(0x5BD1E995), np.uint32(24)
_BLOCK = 2**18
"""Keys hashed at once, so that temporary arrays stay small."""
_POSITIVE = np.int32(0x7FFFFFFF)

Words = npt.NDArray[np.uint32]
Partitions = npt.NDArray[np.int16]


def murmur2(texts: pa.Array) -> Int32s:
    """The 32-bit murmur2 of each text, as Kafka's Java client computes it, shape (n,). Nulls give the hash of ""."""
    column = texts if pa.types.is_large_string(texts.type) else pc.cast(texts, pa.large_string())
    column = pc.fill_null(column, "")
    hashes = np.empty(len(column), np.int32)
    for start in range(0, len(column), _BLOCK):
        block = column.slice(start, _BLOCK)
        hashes[start : start + len(block)] = _hashes(block)
    return hashes


def partitions_of(texts: pa.Array, partitions: int) -> Partitions:
    """The partition of each key by its text, shape (n,)."""
    # Kafka's toPositive clears the sign bit. It does not take the absolute value.
    return ((murmur2(texts) & _POSITIVE) % np.int32(partitions)).astype(np.int16)


def key_texts(values: npt.NDArray[np.generic] | pa.Array) -> pa.Array:
    """Keys as the text that a message carries; null for keys that are null."""
    column = pa.array(values) if isinstance(values, np.ndarray) else values
    return pc.cast(column, pa.string())


@lru_cache(maxsize=4)
def partitions_of_numbers(domain: int, partitions: int) -> Partitions:
    """The partition of each key 0..domain-1, shape (domain,)."""
    found = np.empty(domain, np.int16)
    for start in range(0, domain, _BLOCK):
        end = min(start + _BLOCK, domain)
        found[start:end] = partitions_of(key_texts(np.arange(start, end)), partitions)
    return found


@lru_cache(maxsize=64)
def keys_of_partition(domain: int, partition: int, partitions: int) -> Int32s:
    """The keys of 0..domain-1 that hash to a partition, ascending."""
    return np.flatnonzero(partitions_of_numbers(domain, partitions) == partition).astype(np.int32)


def _hashes(block: pa.LargeStringArray) -> Int32s:
    _, ends_buffer, data_buffer = block.buffers()
    ends = np.frombuffer(ends_buffer, np.int64)[block.offset : block.offset + len(block) + 1]
    # Padded, so that the last word of a text can be read whole; its foreign bytes are masked.
    size = int(ends[-1]) if len(ends) else 0
    data = np.zeros(size + 4, np.uint8)
    if data_buffer is not None:
        data[:size] = np.frombuffer(data_buffer, np.uint8)[:size]
    starts, lengths = ends[:-1], np.diff(ends)
    with np.errstate(over="ignore"):
        hashes = _SEED ^ lengths.astype(np.uint32)
        for word in range(int(lengths.max(initial=0)) // 4):
            rows = np.flatnonzero(lengths >= 4 * (word + 1))
            mixed = _words(data, starts[rows] + 4 * word) * _M
            mixed = (mixed ^ (mixed >> _R)) * _M
            hashes[rows] = hashes[rows] * _M ^ mixed
        rest = (lengths % 4).astype(np.uint32)
        rows = np.flatnonzero(rest)
        masks = (np.uint32(1) << (np.uint32(8) * rest[rows])) - np.uint32(1)
        hashes[rows] = (hashes[rows] ^ (_words(data, starts[rows] + lengths[rows] // 4 * 4) & masks)) * _M
        hashes = (hashes ^ (hashes >> np.uint32(13))) * _M
        hashes ^= hashes >> np.uint32(15)
    return hashes.view(np.int32)


def _words(data: npt.NDArray[np.uint8], at: npt.NDArray[np.int64]) -> Words:
    """The four bytes from each place as a little-endian word."""
    parts = [data[at + byte].astype(np.uint32) << np.uint32(8 * byte) for byte in range(4)]
    return parts[0] | parts[1] | parts[2] | parts[3]
