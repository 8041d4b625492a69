"""Fields, one kind of column each, and the streams that have them.

A field makes its column from random lanes (`PhiloxBits`) for events [first, last) of a partition. It is a pure
function, so any slicing gives the same rows. Fields are frozen. Those of user jobs validate themselves, those of
workloads have parameters that were validated.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.arrays import Floats, Int32s, Int64s
from streamgauge.core.errors import Rule, near, require, require_all
from streamgauge.core.schema import EVENT_ID, EVENT_TIME, LINEAGE, Field, Schema, arrow_type, event_id_base
from streamgauge.loadgen.random import (
    DISTRIBUTIONS,
    DOMAIN_MAX,
    TABLE_DOMAIN_MAX,
    Distribution,
    Partitions,
    PhiloxBits,
    Sampler,
    Uniform,
    empty,
    keys_of_partition,
    partition_shares,
    partitions_of_numbers,
    probabilities,
    sampler,
    sampler_of_column,
)

EventNumbers = Callable[[], Int64s]
"""Gives the numbers of events across all partitions of a stream."""
INT_MIN, INT_MAX = -(2**31), 2**31 - 1
PAYLOAD_POOL_BYTES = 2**20
PAYLOAD_BYTES_MAX = 2**26
WORDS_MAX = 10_000
SHARES_RULE = "shares must sum to 1"
_ROUNDING = 1e-9
VALIDITY_BYTES = 1 / 8
TYPE_BYTES = {"int": 4, "bigint": 8, "double": 8, "boolean": 1 / 8, "timestamp": 8}
"""The bytes of a value in Arrow, for types of one size."""
OFFSET_BYTES = 4
"""The bytes of a text or binary value in Arrow in addition to its content."""

_CONSONANTS, _VOWELS = ("b", "d", "f", "g", "k", "l", "m", "r", "st", "tr"), ("a", "e", "i", "o")
_SYLLABLES = tuple(consonant + vowel for consonant in _CONSONANTS for vowel in (*_VOWELS, "an"))


@dataclass(frozen=True)
class FieldSpec(ABC):
    """A named column and how its values are made. `sql_type` is one of `TYPES`."""

    name: str
    sql_type: ClassVar[str]
    is_key: ClassVar[bool] = False
    """Whether the values only identify things."""

    @abstractmethod
    def column(self, bits: PhiloxBits, first: int, last: int) -> npt.NDArray[Any] | pa.Array:
        """The values of events [first, last), shape (last - first,)."""

    def of_events(self, bits: PhiloxBits, first: int, last: int, numbers: EventNumbers) -> npt.NDArray[Any] | pa.Array:
        """Like `column`, for kinds whose values depend on the events' `numbers` across all partitions of a stream."""
        return self.column(bits, first, last)

    def partition_shares(self, partitions: int) -> Floats | None:
        """The share of the events whose value hashes to each partition, shape (partitions,).

        None for kinds that cannot be a stream's key, because their values cannot be restricted to those of a partition.
        """
        return None

    def partitions_of_rows(self, partitions: int) -> Partitions | None:
        """The partition of each row, for columns of a file; otherwise None."""
        return None

    @property
    def nullable(self) -> bool:
        """Whether a value may be null."""
        return False

    @property
    def key_kind(self) -> str | None:
        """For key fields, which only identify things, the name of the kind of thing; otherwise None.

        Fields with the same name have the same keys, also in different streams.
        """
        return self.name if self.is_key else None

    @property
    def row_bytes(self) -> float:
        """The average bytes of a value in Arrow."""
        return TYPE_BYTES[self.sql_type] + (VALIDITY_BYTES if self.nullable else 0)

    def concatenated(self, parts: Sequence[pa.Array]) -> pa.Array:
        """A column from its parts; an empty one without parts."""
        return pa.concat_arrays(parts) if parts else pa.array([], arrow_type(self.sql_type))


def is_number(value: object) -> bool:
    """Whether a user's value is a number. Texts such as "1" and booleans are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def not_of(value: object) -> str:
    """The end of a rule that a value's type breaks, because a text and its number look the same in a message."""
    return f", not of type {type(value).__name__}"


def need_type(kind: str, setting: str, got: object, way_out: str) -> None:
    """Raises InputError unless a value is `a number` or `a whole number`, before any comparison."""
    holds = is_number(got) and (kind == "a number" or isinstance(got, Integral))
    require(holds, setting, f"must be {kind}{not_of(got)}", got, way_out)


def need_count(setting: str, got: Any, most: int, way_out: str, unit: str) -> None:
    """Raises InputError unless a value is a whole number from 1 to `most`. `unit`: words after these in the rule."""
    need_type("a whole number", setting, got, way_out)
    require(1 <= got <= most, setting, f"must be 1 to {most}{unit}", got, way_out)


def sampled(by: Sampler, bits: PhiloxBits, first: int, last: int, width: int = 1) -> Int32s:
    """`width` samples per event, shape ((last - first) * width,)."""
    out = empty((last - first) * width, np.int32)
    for part, lanes in bits.blocks(first, last, width):
        by.fill(lanes, out[part.start * width : part.stop * width])
    return out


@dataclass(frozen=True)
class Key(FieldSpec):
    """A key of 0..domain-1, distributed as `distribution` says; `exponent` is Zipf's."""

    domain: int
    distribution: Distribution = "uniform"
    exponent: float = 1.0
    sql_type: ClassVar[str] = "int"
    is_key: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require(self.distribution in DISTRIBUTIONS, f"{self.name}.distribution",
                f"must be one of {', '.join(DISTRIBUTIONS)}", self.distribution,
                near(self.distribution, DISTRIBUTIONS) or "normal")  # fmt: skip
        need_type("a whole number", f"{self.name}.domain", self.domain, "1_000_000")
        need_type("a number", f"{self.name}.exponent", self.exponent, "1.0")
        most = TABLE_DOMAIN_MAX if self.distribution in ("normal", "zipf") else DOMAIN_MAX
        rule = f"a {self.distribution} domain must hold 1 to {most} keys"
        way_out = "1000000" if self.distribution == "uniform" else f"{min(most, 1_000_000)}, or uniform keys"
        require(1 <= self.domain <= most, f"{self.name}.domain", rule, self.domain, way_out)
        rule = "must be a number of at least 0"
        require(0 <= self.exponent < math.inf, f"{self.name}.exponent", rule, self.exponent, "1.0")

    def column(self, bits: PhiloxBits, first: int, last: int) -> Int32s:
        return sampled(sampler_of_column(bits, self.distribution, self.domain, self.exponent), bits, first, last)

    def partition_shares(self, partitions: int) -> Floats | None:
        return partition_shares(self.distribution, self.domain, partitions, self.exponent)


@dataclass(frozen=True)
class KeyByRate(Key):
    """A uniform key whose domain follows a load shape: `domain` keys at `rate_per_s`, in proportion at other rates.

    So streams of the same key meet equally often at any rate. Smaller domains are part of larger ones. Within one
    window around a change the events of both rates meet, as often as the larger domain lets them. If the key decides
    between several partitions, the domain does not change, because the share of each partition is fixed.
    """

    rate_per_s: float = 1.0

    def at_rates(self, bits: PhiloxBits, first: int, last: int, rates: Floats) -> Int32s:
        """The values of events [first, last), where the plan has `rates` (events per second), both (last - first,)."""
        if bits.split > 1:
            return self.column(bits, first, last)
        out, domains = empty(last - first, np.int32), np.rint(self.domain * (rates / self.rate_per_s))
        spans = np.clip(domains, 1, DOMAIN_MAX).astype(np.uint64)
        for part, lanes in bits.blocks(first, last):
            out[part] = (lanes * spans[part]) >> np.uint64(32)
        return out


def column_of_one_partition(field: FieldSpec, bits: PhiloxBits, first: int, last: int) -> Any:
    """`column` of a kind with `of_events`, for a stream with one partition, which numbers its events without gaps."""
    return field.of_events(bits, first, last, lambda: np.arange(first, last, dtype=np.int64))


@dataclass(frozen=True)
class RoundRobinKey(Key):
    """A key of 0..domain-1 in turn: event n of a stream has key n modulo `domain`, however the stream is partitioned.

    So every key comes at one fixed frequency, its share of the rate.
    """

    column = column_of_one_partition

    def of_events(self, bits: PhiloxBits, first: int, last: int, numbers: EventNumbers) -> Int32s:
        return (numbers() % self.domain).astype(np.int32)

    def partitions_of_rows(self, partitions: int) -> Partitions:
        return partitions_of_numbers(self.domain, partitions)


@dataclass(frozen=True)
class InTurn(Key):
    """A key of 0..domain-1, round robin in every partition. If it decides partitions, among those of the partition."""

    def column(self, bits: PhiloxBits, first: int, last: int) -> Int32s:
        turns = np.arange(first, last)
        if bits.split == 1:
            return (turns % self.domain).astype(np.int32)
        keys = keys_of_partition(self.domain, bits.partition, bits.split)
        return keys[turns % max(len(keys), 1)]

    def partition_shares(self, partitions: int) -> Floats | None:
        return partition_shares("uniform", self.domain, partitions)


@dataclass(frozen=True)
class Integer(FieldSpec):
    """A whole number from `low` to `high` (both included), uniformly distributed."""

    low: int
    high: int
    sql_type: ClassVar[str] = "int"

    def __post_init__(self) -> None:
        for limit in (self.low, self.high):
            need_type("a whole number", self.name, limit, "1 and 100")
        rule = "low..high must rise and lie within 32-bit integers"
        require(INT_MIN <= self.low <= self.high <= INT_MAX, self.name, rule, (self.low, self.high), "1 and 100")

    def column(self, bits: PhiloxBits, first: int, last: int) -> Int32s:
        return sampled(Uniform(self.high - self.low + 1, self.low), bits, first, last)


@dataclass(frozen=True)
class Decimal(FieldSpec):
    """A double in [low, high), uniform on a grid of 2**32 steps."""

    low: float
    high: float
    sql_type: ClassVar[str] = "double"

    def __post_init__(self) -> None:
        for limit in (self.low, self.high):
            need_type("a number", self.name, limit, "0.0 and 1.0")
        rule = "low must be below high, both finite"
        require(-math.inf < self.low < self.high < math.inf, self.name, rule, (self.low, self.high), "0.0 and 1.0")

    def column(self, bits: PhiloxBits, first: int, last: int) -> Floats:
        out = empty(last - first, np.float64)
        step = (self.high - self.low) / 2**32
        for part, lanes in bits.blocks(first, last):
            np.multiply(lanes, step, out=out[part])
            np.add(out[part], self.low, out=out[part])
        return out


@lru_cache(maxsize=1)
def vocabulary() -> pa.Array:
    """The words of `Text`, most frequent first: 2500 words of two syllables and four to eight letters."""
    return pa.array([first + last for last in _SYLLABLES for first in _SYLLABLES])


@lru_cache(maxsize=1)
def _word_bytes() -> float:
    """The mean length of a word as `Text` draws them."""
    lengths = pc.binary_length(vocabulary()).to_numpy()
    return float(np.average(lengths, weights=probabilities("zipf", len(lengths))))


def joined(values: pa.Array, picks: npt.NDArray[np.integer], each: int, separator: str = " ") -> pa.Array:
    """Texts of `each` values, which successive `picks` select, with a separator between them."""
    ends = pa.array(np.arange(0, len(picks) + 1, each, dtype=np.int32))
    return pc.binary_join(pa.ListArray.from_arrays(ends, values.take(pa.array(picks))), separator)


@dataclass(frozen=True)
class Text(FieldSpec):
    """A line of `words` words drawn from `vocabulary` with Zipf's frequencies, with single spaces between them."""

    words: int
    sql_type: ClassVar[str] = "string"

    def __post_init__(self) -> None:
        need_count(f"{self.name}.words", self.words, WORDS_MAX, "10", " words a line")

    @property
    def row_bytes(self) -> float:
        between_words = 1
        return OFFSET_BYTES + self.words * (_word_bytes() + between_words) - between_words

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        drawn = sampled(sampler("zipf", len(vocabulary())), bits, first, last, self.words)
        return joined(vocabulary(), drawn, self.words)


@dataclass(frozen=True)
class Payload(FieldSpec):
    """`size_bytes` bytes that do not compress: successive rows of a pool of random rows, again from its beginning.

    A row costs no random numbers. A slice is a copy only if it wraps around the pool (1 MiB, at least one row).
    """

    size_bytes: int
    sql_type: ClassVar[str] = "binary"

    def __post_init__(self) -> None:
        need_count(f"{self.name}.size_bytes", self.size_bytes, PAYLOAD_BYTES_MAX, "100", " bytes")

    @property
    def row_bytes(self) -> float:
        return self.size_bytes + OFFSET_BYTES

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        pool = _payload_pool(bits, self.size_bytes)
        parts = []
        while first < last:
            start = first % len(pool)
            parts.append(pool.slice(start, min(len(pool) - start, last - first)))
            first += len(parts[-1])
        return parts[0] if len(parts) == 1 else self.concatenated(parts)


@lru_cache(maxsize=64)
def _payload_pool(bits: PhiloxBits, size_bytes: int) -> pa.Array:
    rows = max(PAYLOAD_POOL_BYTES // size_bytes, 1)
    data = bits.lanes(0, -(-rows * size_bytes // 4))
    ends = np.arange(0, (rows + 1) * size_bytes, size_bytes, dtype=np.int32)
    return pa.BinaryArray.from_buffers(pa.binary(), rows, [None, pa.py_buffer(ends), pa.py_buffer(data)])


@dataclass(frozen=True)
class OwnNumber(FieldSpec):
    """A unique number for each event of a plan, over all partitions."""

    sql_type: ClassVar[str] = "bigint"
    is_key: ClassVar[bool] = True

    def column(self, bits: PhiloxBits, first: int, last: int) -> Int64s:
        return np.arange(first, last, dtype=np.int64) + event_id_base(bits.stream, bits.partition)


@dataclass(frozen=True)
class RecordTime(FieldSpec):
    """The event time as an attribute of the record itself, in units of `unit_us` microseconds since the epoch.

    The plan makes it, rounded down. Without a plan, event n is at n microseconds.
    """

    unit_us: int = 1
    sql_type: ClassVar[str] = "bigint"

    def column(self, bits: PhiloxBits, first: int, last: int) -> Int64s:
        return np.arange(first, last, dtype=np.int64) // self.unit_us


_OF_COINS = 2**10
"""Added to a field's number for the bits that select malformed values. Streams have fewer fields, and the offsets of
other kinds of field begin at 2**11."""


def with_malformed(field: FieldSpec, share: float, *forms: Any) -> FieldSpec:
    """The field with a share of malformed values (0 to 1; for 0 the field itself), see `Malformed`."""
    return Malformed(field.name, field, share, forms) if share else field


@dataclass(frozen=True)
class Malformed(FieldSpec):
    """The field `whole` with a share of its values (above 0, at most 1) replaced by `forms`, equally often.

    A form None is a null. Other fields that depend on this one see the original values of `whole`.
    """

    whole: FieldSpec
    share: float
    forms: tuple[Any, ...]

    def __post_init__(self) -> None:
        setting, rule = f"{self.name}.malformed", "must be a share above 0, up to 1"
        require_all(
            Rule(0 < self.share <= 1, setting, rule, self.share, "0.001"),
            Rule(self.forms, f"{self.name}.forms", "must be at least one", self.forms, "(None,)"),
        )

    @property
    def sql_type(self) -> str:  # type: ignore[override]
        return self.whole.sql_type

    @property
    def nullable(self) -> bool:
        return self.whole.nullable or None in self.forms

    @property
    def key_kind(self) -> str | None:
        return self.whole.key_kind

    @property
    def row_bytes(self) -> float:
        return self.whole.row_bytes + (VALIDITY_BYTES if self.nullable and not self.whole.nullable else 0)

    column = column_of_one_partition

    def of_events(self, bits: PhiloxBits, first: int, last: int, numbers: EventNumbers) -> pa.Array:
        return self._replaced(self.whole.of_events(bits, first, last, numbers), bits, first, last)

    def partition_shares(self, partitions: int) -> Floats | None:
        """A key that became null may be in any partition. One that became another value would be in a wrong one."""
        return self.whole.partition_shares(partitions) if set(self.forms) == {None} else None

    def partitions_of_rows(self, partitions: int) -> Partitions | None:
        return self.whole.partitions_of_rows(partitions) if set(self.forms) == {None} else None

    def _replaced(self, values: npt.NDArray[Any] | pa.Array, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        column = pa.array(values) if isinstance(values, np.ndarray) else values
        which = self._drawn(bits, first, last)
        if not which.any():
            return column
        for number, form in enumerate(self.forms, 1):
            # This copies texts. replace_with_mask builds them one by one, at three times the cost.
            column = pc.if_else(pa.array(which == number), pa.scalar(form, arrow_type(self.sql_type)), column)
        return column

    def _drawn(self, bits: PhiloxBits, first: int, last: int) -> npt.NDArray[np.int8]:
        """The number of each value's form, from 1; 0 for original values. Shape (last - first,)."""
        which = np.zeros(last - first, np.int8)
        highest = np.uint32(max(round(self.share * 2**32), 1) - 1)
        for part, lanes in replace(bits, field=bits.field + _OF_COINS).blocks(first, last):
            places = np.flatnonzero(lanes <= highest)
            which[places + part.start] = 1 + lanes[places] % len(self.forms)
        return which


def sum_to_one(shares: Iterable[float]) -> bool:
    """Whether the shares of all streams sum to 1, apart from rounding."""
    return abs(sum(shares) - 1) <= _ROUNDING


@dataclass(frozen=True)
class StreamSpec:
    """An input stream: its fields in order, and its share (above 0, at most 1) of the plan's total rate.

    `key` names the field that is the key of its messages over a broker, which decides their partition. Without one,
    partitions take turns.
    """

    name: str
    fields: tuple[FieldSpec, ...]
    share: float = 1.0
    key: str | None = None

    def __post_init__(self) -> None:
        names = [field.name for field in self.fields]
        alike = {name.lower() for name in names}
        rule = f"needs at least one field; names must differ, not by case alone, and {', '.join(LINEAGE)} are taken"
        are_valid = names and len(alike) == len(names) and not alike & set(LINEAGE)
        require(are_valid, f"stream {self.name}", rule, names, "rename the field")
        rule, way_out = f"must be one of {', '.join(names)}", near(self.key, names) or names[0]
        require_all(
            Rule(self.key is None or self.key in names, f"stream {self.name}.key", rule, self.key, way_out),
            Rule(0 < self.share <= 1, f"stream {self.name}.share", "must be above 0 and at most 1", self.share, "0.5"),
        )

    @cached_property
    def schema(self) -> Schema:
        """The stream's columns without lineage."""
        return Schema(tuple(Field(field.name, field.sql_type, field.nullable) for field in self.fields))

    @property
    def row_bytes(self) -> float:
        """The average bytes of an event in Arrow with all columns, including event time and id."""
        return self.bytes_of((*self.schema.names, EVENT_TIME, EVENT_ID))

    def bytes_of(self, columns: Iterable[str]) -> float:
        """The average bytes of an event in Arrow with only these columns."""
        sizes = {field.name: field.row_bytes for field in self.fields} | {EVENT_TIME: 8, EVENT_ID: 8}
        return sum(sizes[name] for name in columns)
