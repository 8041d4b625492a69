"""Kafka's hash of keys, against the values in the tests of Kafka's own client."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.loadgen.random.key_hash import key_texts, murmur2, partitions_of, partitions_of_numbers

KNOWN = {
    "21": -973932308,
    "foobar": -790332482,
    "a-little-bit-long-string": -985981536,
    "a-little-bit-longer-string": -1486304829,
    "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    "abc": 479470107,
    "": 275646681,
}
"""From `UtilsTest.testMurmur2` of Kafka's Java client, and the empty text as `librdkafka` tests it."""


def java_murmur2(data: bytes) -> int:
    """`org.apache.kafka.common.utils.Utils.murmur2`, statement by statement."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = (0x9747B28C ^ len(data)) & mask
    for i in range(len(data) // 4):
        k = int.from_bytes(data[4 * i : 4 * i + 4], "little")
        k = k * m & mask
        k ^= k >> 24
        k = k * m & mask
        h = h * m & mask
        h ^= k
    tail = data[len(data) & ~3 :]
    if len(tail) == 3:
        h ^= tail[2] << 16
    if len(tail) >= 2:
        h ^= tail[1] << 8
    if len(tail) >= 1:
        h ^= tail[0]
        h = h * m & mask
    h ^= h >> 13
    h = h * m & mask
    h ^= h >> 15
    return h - 2**32 if h >= 2**31 else h


def test_the_values_that_kafka_tests() -> None:
    """All at once, because texts of different lengths are hashed together."""
    assert murmur2(pa.array(list(KNOWN))).tolist() == list(KNOWN.values())


@given(st.lists(st.text(), max_size=40), st.integers(0, 5))
def test_any_texts_hash_as_in_java(texts: list[str], skip: int) -> None:
    """In any alphabet, also in a slice of a longer column."""
    column = pa.array(texts, pa.string()).slice(min(skip, len(texts)))
    assert murmur2(column).tolist() == [java_murmur2(text.encode()) for text in texts[skip:]]


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 4096])
def test_a_partition_is_the_positive_hash_modulo_the_partitions(partitions: int) -> None:
    """The sign bit is cleared. An absolute value would give other partitions."""
    numbers = np.arange(1000)
    expected = [(java_murmur2(str(n).encode()) & 0x7FFFFFFF) % partitions for n in numbers]
    assert partitions_of(key_texts(numbers), partitions).tolist() == expected
    assert partitions_of_numbers(1000, partitions).tolist() == expected


def test_keys_are_texts() -> None:
    """As Kafka's string serializer would write them."""
    assert key_texts(np.array([7, -1], np.int32)).to_pylist() == ["7", "-1"]
    assert key_texts(pa.array([None, "a"])).to_pylist() == [None, "a"]
