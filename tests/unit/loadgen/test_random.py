"""Random lanes: readable from anywhere.

Kafka's hash of keys, against the values in the tests of Kafka's own client.

Key distributions: frequencies against the exact probabilities.
"""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, ks_1samp, norm

from streamgauge.loadgen.random import (
    BLOCK_EVENTS,
    Distribution,
    PhiloxBits,
    Uniform,
    key_texts,
    murmur2,
    partitions_of,
    partitions_of_numbers,
    probabilities,
    sampler,
)

BITS = PhiloxBits(seed=7, stream=1, partition=2, field=3)


@given(st.integers(0, 2**43), st.integers(0, 200), st.integers(0, 200))
def test_lanes_are_a_function_of_their_number(first: int, skip: int, count: int) -> None:
    """A slice read alone equals the same slice of a longer one."""
    assert (BITS.lanes(first + skip, first + skip + count) == BITS.lanes(first, first + skip + count)[skip:]).all()


@given(st.integers(0, 10**6), st.integers(0, 2 * BLOCK_EVENTS + 100), st.integers(1, 3))
def test_blocks_are_the_lanes_in_pieces(first: int, count: int, width: int) -> None:
    """Pieces lie side by side, cover every event, and hold the lanes that `lanes` gives."""
    pieces = list(BITS.blocks(first, first + count, width))
    joined = np.concatenate([lanes for _, lanes in pieces]) if pieces else np.empty(0, np.uint32)
    assert (joined == BITS.lanes(first * width, (first + count) * width)).all()
    assert [part.start for part, _ in pieces] + [count] == [0] + [part.stop for part, _ in pieces]


def test_lanes_are_philox() -> None:
    """The lanes are NumPy's Philox under the key (seed, place), from counter 0 on."""
    philox = np.random.Philox(key=np.array([7, (1 << 40) | (2 << 16) | 3], dtype=np.uint64))
    assert (philox.random_raw(500).view(np.uint32) == BITS.lanes(0, 1000)).all()


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


EVENTS = 1_000_000
LANES = PhiloxBits(3, 0, 0, 0).lanes(0, EVENTS)
CASES = [("uniform", 1000), ("normal", 1000), ("zipf", 1000), ("normal", 10), ("zipf", 50_000), ("normal", 50_000)]


def draw(distribution: Distribution, domain: int, exponent: float = 1.0) -> np.ndarray:
    out = np.empty(EVENTS, dtype=np.int32)
    sampler(distribution, domain, exponent).fill(LANES, out)
    return out


@pytest.mark.parametrize(("distribution", "domain"), CASES)
def test_frequencies_fit_the_distribution(distribution: Distribution, domain: int) -> None:
    """A chi-square test of a million events against the exact probabilities, rare keys pooled, finds nothing."""
    counts = np.bincount(draw(distribution, domain), minlength=domain)
    expected = probabilities(distribution, domain) * EVENTS
    pools = np.minimum(np.cumsum(expected) // 50, EVENTS // 50 - 1).astype(int)
    used = np.unique(pools)
    assert chisquare(np.bincount(pools, counts)[used], np.bincount(pools, expected)[used]).pvalue > 1e-4


@pytest.mark.parametrize(
    ("distribution", "domain"), [("normal", 1_000_000), ("zipf", 1_000_000), ("uniform", 2**31 - 1)]
)
def test_large_domains_fit_the_distribution(distribution: Distribution, domain: int) -> None:
    """A Kolmogorov-Smirnov test at every key that came holds for domains far beyond the guide table's cells."""
    keys = np.sort(draw(distribution, domain))
    is_uniform = distribution == "uniform"
    exact = (keys + 1.0) / domain if is_uniform else np.cumsum(probabilities(distribution, domain))[keys]
    last_of_key = np.append(keys[1:] != keys[:-1], True)
    shares = np.arange(1, EVENTS + 1)[last_of_key] / EVENTS
    assert np.abs(shares - exact[last_of_key]).max() < 2.2 / np.sqrt(EVENTS)


def test_normal_keys_are_normal() -> None:
    """Mean in the middle, a sixth of the domain as standard deviation; the ends hold what is clipped."""
    keys = draw("normal", 100_000)
    inside = keys[(keys > 0) & (keys < 99_999)]
    model = norm(50_000, 100_000 / 6)
    low, high = model.cdf([1, 99_999])
    assert ks_1samp(inside + 0.5, lambda x: (model.cdf(x) - low) / (high - low)).pvalue > 1e-4
    assert (keys == 0).mean() == pytest.approx(norm.cdf(-3), rel=0.15)


@given(st.integers(2, 6000), st.sampled_from(["normal", "zipf"]), st.floats(0, 3))
def test_a_table_agrees_with_a_search_of_all_borders(domain: int, distribution: Distribution, exponent: float) -> None:
    """The guide table gives, for every lane, the key that the inverse of the distribution gives."""
    lanes = np.concatenate((LANES[:2000], np.array([0, 1, 2**31, 2**32 - 1], dtype=np.uint32)))
    by = sampler.__wrapped__(distribution, domain, exponent)
    out = np.empty(len(lanes), dtype=np.int32)
    by.fill(lanes, out)
    borders = np.minimum(
        np.floor(np.cumsum(probabilities(distribution, domain, exponent))[:-1] * 2**32 + 0.5), 2**32 - 1
    )
    assert (out == np.searchsorted(borders, lanes, side="right")).all()


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1))
def test_uniform_reaches_both_ends(one: int, other: int) -> None:
    """The lowest and the highest lane give the lowest and the highest value, and none leaves the range."""
    low, high = min(one, other), max(one, other)
    lanes = np.array([0, 2**32 - 1, 2**31, 12345], dtype=np.uint32)
    out = np.empty(4, dtype=np.int32)
    Uniform(high - low + 1, low).fill(lanes, out)
    assert out[:2].tolist() == [low, high]
    assert ((out >= low) & (out <= high)).all()


def test_single_is_one_key() -> None:
    """`single` gives key 0 alone, whatever the domain."""
    assert np.unique(draw("single", 1000)).tolist() == [0]


def test_zipf_weights() -> None:
    """With exponent 2 the second key comes a quarter as often as the first."""
    first, second, *_ = probabilities("zipf", 100, 2.0)
    assert second / first == pytest.approx(0.25)
