"""Parses rates, durations, sizes, shares and sets of processors (`0`, `1-3`, `0,2-5`) from text."""

import math
import re
from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from typing import TypeVar

from streamgauge.core.errors import InputError, Problem, require

Value = TypeVar("Value")

FAR_PAST_US, FAR_FUTURE_US = -(2**62), 2**62
"""Before and after every valid time; sums with a valid time still fit into a BIGINT."""

STREAM_BITS, PARTITION_BITS, SEQUENCE_BITS = 8, 12, 43


def backquote(name: str) -> str:
    """A quoted name in an expression."""
    return "`" + name.replace("`", "``") + "`"


def by_reference(columns_: Mapping[str, Value]) -> dict[str, Value]:
    """The values keyed by each expression that denotes exactly the column: plain and quoted name."""
    plain = {name: value for name, value in columns_.items() if name.isidentifier()}
    return plain | {backquote(name): value for name, value in columns_.items()}


def sql_text(plain: str) -> str:
    """A string literal in an expression."""
    return "'" + plain.replace("\\", "\\\\").replace("'", "\\'") + "'"


_RATE_UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}
_TIME_UNITS = {"": 1.0, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_SIZE_UNITS = {
    "": 1,
    "b": 1,
    "kb": 1e3,
    "mb": 1e6,
    "gb": 1e9,
    "tb": 1e12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_DIGITS = r"[0-9](?:_?[0-9])*"
_AMOUNT = rf"(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?[0-9]+)?"
"""A number in Python's notation, such as 1e6 or 1_000_000."""
_NUMBER = re.compile(rf"\s*({_AMOUNT})\s*([a-zA-Z%/]*)\s*$")
"""A number and a unit."""


def _pattern_of(units: Iterable[str]) -> str:
    """A regular expression in the dialect of JSON Schema: a number and one of the units, in upper or lower case."""
    any_case = (re.sub("[a-z]", lambda match: f"[{match[0]}{match[0].upper()}]", unit) for unit in units)
    return rf"^\s*{_AMOUNT}\s*(?:{'|'.join(any_case)})\s*$"


RATE_PATTERN = _pattern_of([*_RATE_UNITS, *(f"{unit}/s" for unit in _RATE_UNITS)])
DURATION_PATTERN = _pattern_of(_TIME_UNITS)
SHARE_PATTERN = _pattern_of(["", "%"])
"""Texts that a file may have, for its JSON Schema. What the parsers refuse beyond it stands in their errors."""


def _quantity(setting: str, text: str | float | int, units: dict[str, float], rule: str, way_out: str) -> float:
    match = None if isinstance(text, bool) else _NUMBER.match(str(text))
    value = float(match.group(1)) * units.get(match.group(2).lower(), math.nan) if match else math.nan
    require(math.isfinite(value), setting, rule, text, way_out)
    return value


def parse_rate(text: str | float | int, setting: str = "rate", *, way_out: str | None = None) -> float:
    """`100k`, `1.5M`, `2500`, `1e6` or `100k/s` as events per second. Raises InputError unless above zero.

    `way_out` is the suggestion if the setting is not an option `--{setting}`.
    """
    way_out = way_out or f"--{setting} 100k"
    units = _RATE_UNITS | {unit + "/s": factor for unit, factor in _RATE_UNITS.items()}
    rule = "must be a number of events per second above 0, such as 100k, 1.5M or 1e6"
    if (minutes := re.fullmatch(rf"\s*({_DIGITS}(?:\.{_DIGITS})?)\s*(?:m|min)(?:/s)?\s*", str(text))) is not None:
        millions = f"{minutes[1]}M"
        rule = f"{str(text).strip()} is not a rate; {millions} is {float(minutes[1]):g} million events a second"
        raise InputError(Problem(setting, rule, text, way_out.replace("100k", millions)))
    rate = _quantity(setting, text, units, rule, way_out)
    require(rate > 0, setting, "must be above 0 events per second", text, way_out)
    return rate


def parse_whole(text: str | int, setting: str, least: int, greatest: int, example: str) -> int:
    """`10k`, `1e3` or `2500` as an integer from `least` to `greatest`. Raises InputError, with `example`."""
    rule, way_out = f"must be a whole number from {least} to {greatest:,}", f"{setting} {example}"
    # 1.005 * 1000 is slightly below 1005.
    number = round(_quantity(setting, text, _RATE_UNITS, rule, way_out), 6)
    require(least <= number <= greatest and number == int(number), setting, rule, text, way_out)
    return int(number)


def parse_duration(text: str | float | int, setting: str = "duration", *, way_out: str | None = None) -> float:
    """`500ms`, `60s`, `2m`, `2min`, `1h` or a bare number of seconds, as seconds. Raises InputError if negative.

    `way_out` is the suggestion if the setting is not an option `--{setting}`.
    """
    rule = "must be a time such as 500ms, 60s, 2m (or 2min) or 1h; a number alone is seconds"
    if re.match(r"\s*-\s*[0-9.]", str(text)):
        rule = "must not be negative"
    return _quantity(setting, text, _TIME_UNITS, rule, way_out or f"--{setting} 60s")


def parse_size(text: str | float | int, setting: str = "size", *, way_out: str | None = None) -> int:
    """`512MiB`, `2GB` or a bare number of bytes, as bytes. Raises InputError.

    `way_out` is the suggestion if the setting is not an option `--{setting}`.
    """
    rule = "must be a size such as 512MiB or 2GB"
    return int(_quantity(setting, text, _SIZE_UNITS, rule, way_out or f"--{setting} 2GB"))


def parse_share(text: str | float | int, setting: str = "share") -> float:
    """`5%` or `0.05` as a share of 1. Raises InputError."""
    rule = "must be a share such as 5% or 0.05"
    number = _quantity(setting, text, {"": 1, "%": 1}, rule, f"--{setting} 5%")
    return number / 100 if str(text).rstrip().endswith("%") else number


CPU_MAX = 8191
"""The highest number that Linux gives a processor."""
_PART = re.compile(r"\s*([0-9]{1,5})\s*(?:-\s*([0-9]{1,5})\s*)?")


def parse_cpus(text: str | int, setting: str = "cpus", way_out: str = "--cpus 0-1") -> tuple[int, ...]:
    """The ascending numbers in a text. Raises InputError."""
    found: set[int] = set()
    for part in str(text).split(","):
        match = _PART.fullmatch(part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        rule = "must be processors such as 0, 1-3 or 0,2-5"
        require(first <= last <= CPU_MAX, setting, rule, text, way_out)
        found |= set(range(first, last + 1))
    return tuple(sorted(found))


def format_cpus(cpus: Collection[int]) -> str:
    """The shortest text that `parse_cpus` reads back."""
    # Numbers in a row have the same distance to their place in the order.
    rows = groupby(enumerate(sorted(cpus)), key=lambda placed: placed[1] - placed[0])
    spans = [[cpu for _, cpu in row] for _, row in rows]
    return ",".join(f"{span[0]}-{span[-1]}" if len(span) > 1 else str(span[0]) for span in spans)
