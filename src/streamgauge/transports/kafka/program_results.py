"""Results of a program of the user's own: messages with declared fields. Any other message is foreign.

Numbers that are times have the declared unit. A result gets the column `event_time`, which is null if the program's
results carry no time, and `window_end` if the program names the end of a window.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.schema import EMISSION_TIME, EVENT_TIME, WINDOW_END, arrow_type
from streamgauge.transports.kafka.encodings.api import Foreign
from streamgauge.transports.kafka.encodings.choice import format_of
from streamgauge.transports.kafka.encodings.json import WORDS
from streamgauge.transports.topic_names import FAR_US, OutputTopic, in_year, is_near, units_of

SHOWN_BYTES = 120
"""How much of a foreign message is shown."""
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "bigint": ("a whole number", lambda value: type(value) is int or (type(value) is float and value.is_integer())),
    "double": ("a number", lambda value: type(value) in (int, float)),
    "boolean": ("true or false", lambda value: type(value) is bool),
    "string": ("a text", lambda value: type(value) is str),
}
_KINDS["timestamp"] = _KINDS["bigint"]
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Parsed:
    """The results among some messages, and the foreign messages: their number, and the first one with the reason."""

    results: pa.Table
    foreign: int = 0
    first: str = ""


class ResultParser:
    """Parses the messages of one topic."""

    def __init__(self, topic: OutputTopic) -> None:
        self.topic = topic
        wired = tuple((name, "bigint" if kind == "timestamp" else kind) for name, kind in topic.types.items())
        self.format = format_of(topic.format, wired)
        self._fields = pa.schema([(name, arrow_type(kind)) for name, kind in wired])
        columns = {name: arrow_type(kind) for name, kind in topic.types.items()}
        columns |= {EVENT_TIME: pa.int64()} | ({WINDOW_END: arrow_type("timestamp")} if topic.window_end else {})
        self.schema = pa.schema([*columns.items(), (EMISSION_TIME, pa.int64())])
        """The columns of parsed results."""
        self._times = [*([EVENT_TIME] if topic.time else []), *([WINDOW_END] if topic.window_end else [])]

    def parse(self, values: Sequence[bytes | None], received_us: Sequence[int], now_us: int) -> Parsed:
        """Parses messages in order of arrival, shape (messages,). `now_us`: the run's clock."""
        present = [value for value in values if value is not None]
        table = self.format.table(present, self._fields) if len(present) == len(values) else None
        # A missing field is null.
        if table is not None and not any(table.column(name).null_count for name in self.topic.required):
            results = self._with_times(table, received_us)
            if all(_are_near(results.column(name), now_us) for name in self._times):
                return Parsed(results)  # every message surely is one
        return self._one_by_one(values, received_us, now_us)

    def _one_by_one(self, values: Sequence[bytes | None], received_us: Sequence[int], now_us: int) -> Parsed:
        rows, foreign = list[tuple[dict[str, Any], int]](), list[str]()
        for value, when_us in zip(values, received_us, strict=True):
            try:
                rows.append((self._row(value, now_us), when_us))
            except (Foreign, ArithmeticError, LookupError, ValueError, RecursionError) as reason:
                # A message may have any content, and none may end a trial.
                foreign.append("" if foreign else f"{_shown(value)} ({reason})")
        whole = pa.Table.from_pylist([row for row, _ in rows], self._fields)
        return Parsed(self._with_times(whole, [when_us for _, when_us in rows]), len(foreign), "".join(foreign[:1]))

    def _row(self, value: bytes | None, now_us: int) -> dict[str, Any]:
        """The declared fields of a result. Raises Foreign."""
        if value is None:
            raise Foreign("it has no value: a tombstone")
        row, topic = self.format.fields(value), self.topic
        for name in topic.required:
            if row.get(name) is None:
                raise Foreign(f"it has no field {name}" if name not in row else f"its {name} is null")
        for name, kind in topic.types.items():
            if reason := _type_reason(row.get(name), kind):
                raise Foreign(f"its {name} is {reason}")
        for name in filter(None, (topic.time, topic.window_end)):
            if reason := _time_reason(name, row[name], topic.unit_us, now_us):
                raise Foreign(reason)
        return {name: _exact(row.get(name), kind) for name, kind in topic.types.items()}

    def _with_times(self, table: pa.Table, received_us: Sequence[int]) -> pa.Table:
        """The results with timestamps restored, their event time and the end of their window."""
        topic = self.topic
        columns = {
            name: pc.cast(self._micros(table.column(name)), arrow_type("timestamp"))
            if kind == "timestamp"
            else table.column(name)
            for name, kind in topic.types.items()
        }
        ends = self._micros(table.column(topic.window_end)) if topic.window_end else None
        if topic.time:
            columns[EVENT_TIME] = self._micros(table.column(topic.time))
        else:
            columns[EVENT_TIME] = pa.nulls(table.num_rows, pa.int64()) if ends is None else pc.subtract(ends, 1)
        if ends is not None:
            columns[WINDOW_END] = pc.cast(ends, arrow_type("timestamp"))
        columns[EMISSION_TIME] = pa.array(received_us, pa.int64())
        return pa.table(columns, schema=self.schema)

    def _micros(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        return pc.multiply(pc.cast(column, pa.int64()), self.topic.unit_us)


def _type_reason(value: Any, kind: str) -> str:
    if value is None:
        return ""
    if kind.startswith("array<"):
        if type(value) is not list:
            return f"{WORDS[type(value)]}, not an array"
        element = kind.removeprefix("array<").removesuffix(">")
        return next((f"an array with {reason}" for one in value if (reason := _type_reason(one, element))), "")
    words, fits = _KINDS[kind]
    if not fits(value):
        return f"{WORDS[type(value)]}, not {words}"
    if kind in ("bigint", "timestamp") and abs(value) > 2**63 - 1:
        return f"too large for a {kind}"
    if kind == "string" and _SURROGATE.search(value):
        return "a text with half a surrogate pair"
    return ""


def _time_reason(name: str, time: float, unit_us: int, now_us: int) -> str:
    if is_near(time * unit_us, now_us):
        return ""
    fits = "".join(f"; it fits {unit}" for unit in units_of([time], now_us)[:1])
    return f"its {name} is {in_year(time * unit_us)} in the declared time_unit{fits}"


def _exact(value: Any, kind: str) -> Any:
    if value is None or kind.startswith("array<"):
        return value
    return float(value) if kind == "double" else int(value) if kind in ("bigint", "timestamp") else value


def _shown(value: bytes | None) -> str:
    text = (value or b"").decode(errors="backslashreplace")
    return repr(text if len(text) <= SHOWN_BYTES else f"{text[:SHOWN_BYTES]}...")


def _are_near(times: pa.ChunkedArray, now_us: int) -> bool:
    span = pc.min_max(pc.cast(times, pa.int64())).as_py()
    return span["min"] is None or (span["min"] >= now_us - FAR_US and span["max"] <= now_us + FAR_US)
