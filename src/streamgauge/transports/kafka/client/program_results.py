"""Results of a program of the user's own: JSON objects of declared fields. Any other message is foreign.

Numbers that are times have the declared unit. A result gets two columns more: `event_time`, and `window_end` if the
program names the end of a window.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from streamgauge.core.clock import US
from streamgauge.core.lineage_columns import EMISSION_TIME, EVENT_TIME, WINDOW_END
from streamgauge.core.schema import arrow_type

SHOWN_BYTES = 120
"""How much of a foreign message is shown."""
FAR_US = 86_400 * US
"""An event time so far from now has another unit."""
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "bigint": ("a whole number", lambda value: type(value) is int or (type(value) is float and value.is_integer())),
    "double": ("a number", lambda value: type(value) in (int, float)),
    "boolean": ("true or false", lambda value: type(value) is bool),
    "string": ("a text", lambda value: type(value) is str),
}
_KINDS["timestamp"] = _KINDS["bigint"]
_WORDS = {dict: "an object", list: "an array", str: "a text", bool: "a truth value", int: "a number", float: "a number"}


@dataclass(frozen=True)
class ResultFormat:
    """The fields of a result (Spark SQL types), as `dataflow.program.Output` declares them."""

    types: Mapping[str, str]
    required: Sequence[str] = ()
    time: str = ""
    window_end: str = ""
    unit_us: int = 1000

    @property
    def schema(self) -> pa.Schema:
        """The columns of parsed results."""
        columns = {name: arrow_type(kind) for name, kind in self.types.items()}
        columns |= {EVENT_TIME: pa.int64()} | ({WINDOW_END: arrow_type("timestamp")} if self.window_end else {})
        return pa.schema([*columns.items(), (EMISSION_TIME, pa.int64())])

    @property
    def wired(self) -> pa.Schema:
        """The fields as JSON has them."""
        return pa.schema([(name, arrow_type(_wired(kind))) for name, kind in self.types.items()])


@dataclass(frozen=True)
class Parsed:
    """The results among some messages, and the foreign messages: their number, and the first one with the reason."""

    results: pa.Table
    foreign: int = 0
    first: str = ""


@dataclass
class _Sorted:
    rows: list[dict[str, Any]] = field(default_factory=list)
    received_us: list[int] = field(default_factory=list)
    foreign: int = 0
    first: str = ""


def parse(values: Sequence[bytes | None], received_us: Sequence[int], of: ResultFormat, now_us: int) -> Parsed:
    """Parses messages in order of arrival, shape (messages,). `now_us`: the run's clock."""
    table = _at_once(values, of)
    if table is not None:
        results = _with_times(table, received_us, of)
        if _are_near(results.column(EVENT_TIME), now_us):
            return Parsed(results)
    found = _one_by_one(values, received_us, of, now_us)
    whole = pa.Table.from_pylist(found.rows, of.wired)
    return Parsed(_with_times(whole, found.received_us, of), found.foreign, found.first)


def _at_once(values: Sequence[bytes | None], of: ResultFormat) -> pa.Table | None:
    """The fields of all messages; None unless every message surely is a result."""
    if any(value is None for value in values):
        return None
    text = b"\n".join(value for value in values if value is not None)
    try:
        table = pa.json.read_json(
            io.BytesIO(text),
            pa.json.ReadOptions(use_threads=False, block_size=max(len(text) + 1, 1)),
            pa.json.ParseOptions(explicit_schema=of.wired, unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid:
        return None
    # A missing field reads as null, and a message of several lines as several rows.
    whole = table.num_rows == len(values) and not any(table.column(name).null_count for name in of.required)
    return table if whole else None


def _one_by_one(values: Sequence[bytes | None], received_us: Sequence[int], of: ResultFormat, now_us: int) -> _Sorted:
    found = _Sorted()
    for value, when_us in zip(values, received_us, strict=True):
        row, reason = _row(value, of, now_us)
        if row is not None:
            found.rows.append(row)
            found.received_us.append(when_us)
            continue
        found.foreign += 1
        found.first = found.first or f"{_shown(value)} ({reason})"
    return found


def _row(value: bytes | None, of: ResultFormat, now_us: int) -> tuple[dict[str, Any] | None, str]:
    """(the declared fields of a result, "") or (None, why a message is not a result)."""
    try:
        row = json.loads((value or b"").decode())
    except UnicodeDecodeError:
        return None, "it is not UTF-8"
    except ValueError:
        return None, "it is empty" if not value else "it is not JSON"
    if not isinstance(row, dict):
        return None, f"it is {_WORDS.get(type(row), 'null')}, not an object"
    for name in of.required:
        if row.get(name) is None:
            return None, f"it has no field {name}" if name not in row else f"its {name} is null"
    for name, kind in of.types.items():
        if reason := _type_reason(row.get(name), kind):
            return None, f"its {name} is {reason}"
    for name in filter(None, (of.time, of.window_end)):
        if reason := _time_reason(name, row[name] * of.unit_us, now_us):
            return None, reason
    return {name: _exact(row.get(name), kind) for name, kind in of.types.items()}, ""


def _type_reason(value: Any, kind: str) -> str:
    if value is None:
        return ""
    if kind.startswith("array<"):
        if type(value) is not list:
            return f"{_WORDS[type(value)]}, not an array"
        element = kind.removeprefix("array<").removesuffix(">")
        return next((f"an array with {reason}" for one in value if (reason := _type_reason(one, element))), "")
    words, fits = _KINDS[kind]
    return "" if fits(value) else f"{_WORDS[type(value)]}, not {words}"


def _time_reason(name: str, time_us: float, now_us: int) -> str:
    if abs(time_us - now_us) <= FAR_US:
        return ""
    try:
        moment = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_us)).strftime("in %Y")
    except OverflowError:
        moment = "out of range"
    return f"its {name} is {moment} in the declared time_unit"


def _exact(value: Any, kind: str) -> Any:
    if value is None or kind.startswith("array<"):
        return value
    return float(value) if kind == "double" else int(value) if kind in ("bigint", "timestamp") else value


def _shown(value: bytes | None) -> str:
    text = (value or b"").decode(errors="backslashreplace")
    return repr(text if len(text) <= SHOWN_BYTES else f"{text[:SHOWN_BYTES]}...")


def _wired(kind: str) -> str:
    return "bigint" if kind == "timestamp" else kind


def _with_times(table: pa.Table, received_us: Sequence[int], of: ResultFormat) -> pa.Table:
    """The results with timestamps restored, their event time and the end of their window."""
    columns = {name: _restored(table.column(name), kind, of) for name, kind in of.types.items()}
    ends = _micros(table.column(of.window_end), of) if of.window_end else None
    columns[EVENT_TIME] = _micros(table.column(of.time), of) if of.time else pc.subtract(ends, 1)
    if ends is not None:
        columns[WINDOW_END] = pc.cast(ends, arrow_type("timestamp"))
    columns[EMISSION_TIME] = pa.array(received_us, pa.int64())
    return pa.table(columns, schema=of.schema)


def _restored(column: pa.ChunkedArray, kind: str, of: ResultFormat) -> pa.ChunkedArray:
    return pc.cast(_micros(column, of), arrow_type(kind)) if kind == "timestamp" else column


def _micros(column: pa.ChunkedArray, of: ResultFormat) -> pa.ChunkedArray:
    return pc.multiply(pc.cast(column, pa.int64()), of.unit_us)


def _are_near(times: pa.ChunkedArray, now_us: int) -> bool:
    span = pc.min_max(times).as_py()
    return span["min"] is None or (span["min"] >= now_us - FAR_US and span["max"] <= now_us + FAR_US)
