"""What flows: schemas, lineage columns, event identity, units and the one clock.

Lineage columns are BIGINT: `event_time` and `ingest_time` in microseconds since the epoch, `event_id` as below.
They are never an engine's own time column.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamgauge.errors import InputError, Problem

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

EVENT_TIME = "event_time"
INGEST_TIME = "ingest_time"
EMISSION_TIME = "emission_time"
EVENT_ID = "event_id"
EVENT_ORDINAL = "event_ordinal"
"""Which of the rows that one event became: its place in the array that was exploded, from 0."""
EVENT_BRANCH = "event_branch"
"""On which way an event came to a union, from 0, where its id alone does not tell."""
WINDOW_START = "window_start"
WINDOW_END = "window_end"
LINEAGE = (EVENT_TIME, INGEST_TIME, EVENT_ID)

US = 1_000_000
"""Microseconds in a second."""
FAR_PAST_US, FAR_FUTURE_US = -(2**62), 2**62
"""Before and after every time there is, with room in a BIGINT for what is added to one."""

STREAM_BITS, PARTITION_BITS, SEQUENCE_BITS = 8, 12, 43

# The types a field may have, by their Spark SQL names.
TYPES = ("int", "bigint", "double", "boolean", "string", "binary", "timestamp")


@dataclass(frozen=True)
class Field:
    """A column of a stream: its name, its type by Spark SQL name (one of `TYPES`), and whether it may hold nulls."""

    name: str
    type: str
    nullable: bool = False


@dataclass(frozen=True)
class Schema:
    """The columns of a stream, in order; lineage columns are not among them."""

    fields: tuple[Field, ...]

    @classmethod
    def of(cls, **types: str) -> Schema:
        """`Schema.of(user_id="int", price="int")`."""
        return cls(tuple(Field(name, type_) for name, type_ in types.items()))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    def types(self) -> dict[str, str]:
        """Column name to Spark SQL type name."""
        return {field.name: field.type for field in self.fields}

    def to_arrow(self) -> pa.Schema:
        import pyarrow as pa

        return pa.schema([(field.name, arrow_type(field.type)) for field in self.fields])


def quote(name: str) -> str:
    """A name as DuckDB reads it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def backquote(name: str) -> str:
    """A name as Spark SQL reads it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def spark_text(plain: str) -> str:
    """A text as Spark SQL reads it."""
    return "'" + plain.replace("\\", "\\\\").replace("'", "\\'") + "'"


def quoted(names: Iterable[str]) -> str:
    """Names as DuckDB reads a list of them."""
    return ", ".join(map(quote, names))


def arrow_type(name: str) -> pa.DataType:
    """The Arrow type of a Spark SQL type name; `array<string>` too."""
    import pyarrow as pa

    if name.startswith("array<"):
        return pa.list_(arrow_type(name[len("array<") : -1]))
    return {
        "int": pa.int32(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "string": pa.string(),
        "binary": pa.binary(),
        "timestamp": pa.timestamp("us", "UTC"),
    }[name]


def event_id_base(stream: int, partition: int) -> int:
    """The id of sequence number 0 of a partition; ids of one partition are consecutive.

    8 bits of stream, 12 of partition, 43 of sequence (8.8e12 events).
    """
    return (stream << (PARTITION_BITS + SEQUENCE_BITS)) | (partition << SEQUENCE_BITS)


def partitions_of(event_ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The partition of each event, by its id."""
    return (event_ids >> SEQUENCE_BITS) & (2**PARTITION_BITS - 1)


def sequences_of(event_ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of each event within its partition, by its id."""
    return event_ids & (2**SEQUENCE_BITS - 1)


@dataclass(frozen=True)
class Clock:
    """One clock for all processes of a run: the host's monotonic clock, shown as microseconds since the epoch.

    `offset_us` is fixed once, by the runner; a step of the wall clock during the run moves nothing.
    """

    offset_us: int

    @classmethod
    def fixed_now(cls) -> Clock:
        return cls(time.time_ns() // 1000 - time.monotonic_ns() // 1000)

    def now_us(self) -> int:
        return time.monotonic_ns() // 1000 + self.offset_us

    def sleep_until(self, when_us: int) -> None:
        """Sleep until `when_us`; returns at once where that is past."""
        wait_us = when_us - self.now_us()
        if wait_us > 0:
            time.sleep(wait_us / US)


_RATE_UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}
_TIME_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_SIZE_UNITS = {"b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_DIGITS = r"[0-9](?:_?[0-9])*"
_NUMBER = re.compile(rf"\s*((?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?[0-9]+)?)\s*([a-zA-Z%/]*)\s*$")
"""A number as Python writes it, such as 1e6 or 1_000_000, and a unit."""


def _quantity(setting: str, text: str | float | int, units: dict[str, float], rule: str, way_out: str) -> float:
    if isinstance(text, bool):
        raise InputError(Problem(setting, rule, text, way_out))
    match = _NUMBER.match(str(text))
    unit = match.group(2).lower() if match else None
    if match is None or unit not in units:
        raise InputError(Problem(setting, rule, text, way_out))
    value = float(match.group(1)) * units[unit]
    if not math.isfinite(value):
        raise InputError(Problem(setting, rule, text, way_out))
    return value


def parse_rate(text: str | float | int, setting: str = "rate", *, way_out: str | None = None) -> float:
    """`100k`, `1.5M`, `2500`, `1e6` or `100k/s` as events per second; must be above zero.

    `way_out` is what to write instead where the setting is no option `--{setting}`.
    """
    way_out = way_out or f"--{setting} 100k"
    units = _RATE_UNITS | {unit + "/s": factor for unit, factor in _RATE_UNITS.items()}
    rule = "must be a number of events per second above 0, such as 100k, 1.5M or 1e6"
    rate = _quantity(setting, text, units, rule, way_out)
    if rate <= 0:
        raise InputError(Problem(setting, "must be above 0 events per second", text, way_out))
    return rate


def parse_whole(text: str | int, setting: str, least: int, greatest: int, example: str) -> int:
    """`10k`, `1e3` or `2500` as a whole number from `least` to `greatest`; `example` is one that is right."""
    rule, way_out = f"must be a whole number from {least} to {greatest:,}", f"{setting} {example}"
    # 1.005 * 1000 is a little below 1005.
    number = round(_quantity(setting, text, _RATE_UNITS, rule, way_out), 6)
    if not least <= number <= greatest or number != int(number):
        raise InputError(Problem(setting, rule, text, way_out))
    return int(number)


def parse_duration(text: str | float | int, setting: str = "duration", *, way_out: str | None = None) -> float:
    """`500ms`, `60s`, `2m` or `2min`, `1h`, or a bare number of seconds, as seconds; must not be negative.

    `way_out` is what to write instead where the setting is no option `--{setting}`.
    """
    units = _TIME_UNITS | {"": 1.0}
    rule = "must be a time such as 500ms, 60s, 2m (or 2min) or 1h; a number alone is seconds"
    return _quantity(setting, text, units, rule, way_out or f"--{setting} 60s")


def parse_size(text: str | float | int, setting: str = "size") -> int:
    """`512MiB`, `2GB`, or a bare number of bytes, as bytes."""
    rule = "must be a size such as 512MiB or 2GB"
    return int(_quantity(setting, text, _SIZE_UNITS | {"": 1}, rule, f"--{setting} 2GB"))


def parse_share(text: str | float | int, setting: str = "share") -> float:
    """`5%` or `0.05` as a share of 1."""
    rule = "must be a share such as 5% or 0.05"
    number = _quantity(setting, text, {"": 1, "%": 1}, rule, f"--{setting} 5%")
    return number / 100 if str(text).rstrip().endswith("%") else number
