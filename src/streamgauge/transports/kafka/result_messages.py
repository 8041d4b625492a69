"""Results as messages: JSON objects, with marks before and after each batch.

- A result's key names its batch; a mark's key is `MARK`.
- The first mark of a batch has the column types and the read positions. The second one completes the batch.
- A repeated first mark discards the results since the previous one: the batch was restarted.
- A query without batches has one first mark with `endless`, and more marks as its read positions advance.

JSON has no NaN, timestamps or bytes, so `wire` converts them and `table_of` restores them.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.schema import EMISSION_TIME, TYPES, arrow_type
from streamgauge.core.units import backquote
from streamgauge.transports.kafka.encodings.json import read_lines
from streamgauge.transports.kafka.settings import ABSOLUTE_PATH_OPTIONS, KafkaSettings
from streamgauge.transports.spi import Edge
from streamgauge.transports.topic_names import results_of

MARK = b"mark"
FLUSH_S = 30.0
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_PLAIN = ("int", "bigint", "boolean", "string")
"""Types that JSON has, also in arrays."""
_OTHERS = {"tinyint": pa.int8(), "smallint": pa.int16(), "float": pa.float32(), "date": pa.date32()}
"""Types that streams do not have, and results of user jobs may have."""
Types = dict[str, str]
"""Column to SQL type."""


class Position(NamedTuple):
    """The offset that a reader of a stream reached in one partition."""

    stream: str
    reader: int
    partition: int
    offset: int


@dataclass(frozen=True)
class Mark:
    """A mark. `sinks`: sink to its column types.

    `positions`: in a first mark, the end positions of the batch. In later marks of an `endless` batch, the positions up
    to which all results were written.
    """

    query: str
    batch: int
    first: bool
    sinks: dict[str, Types] = field(default_factory=dict)
    positions: tuple[Position, ...] = ()
    endless: bool = False

    def to_bytes(self) -> bytes:
        return json.dumps({**vars(self), "positions": [each._asdict() for each in self.positions]}).encode()


def mark_of(value: bytes) -> Mark:
    fields_ = json.loads(value)
    return Mark(**{**fields_, "positions": tuple(Position(**each) for each in fields_["positions"])})


class Marks:
    """Sends the marks of one run to its results topic.

    Args:
        output: where results go.
        options: the options of the transport.
    """

    def __init__(self, output: Edge, options: Mapping[str, str]) -> None:
        from confluent_kafka import Producer

        self._topic, settings = results_of(output.token), KafkaSettings(**options)
        self._client: Any = Producer({**settings.of_client, "linger.ms": 0, "log_level": 0, **ABSOLUTE_PATH_OPTIONS})

    def send(self, mark: Mark) -> None:
        """Returns when the broker has acknowledged the mark. Raises RuntimeError on an error or timeout."""
        errors: list[str] = []
        self._client.produce(
            self._topic,
            mark.to_bytes(),
            MARK,
            on_delivery=lambda error, _: errors.append(error.str()) if error else None,
        )
        if unsent := self._client.flush(FLUSH_S):
            raise RuntimeError(f"the broker has not kept {unsent} marks after {FLUSH_S:g} s")
        if errors:
            raise RuntimeError(f"the broker did not accept a mark: {errors[0]}")


def key_of(query: str, batch: int) -> str:
    return f"{query}/{batch}"


def wire(name: str, kind: str, of: str = "") -> str:
    """SQL that converts a column (or a field of the struct `of`) for JSON without loss."""
    column = f"{of}.{backquote(name)}" if of else backquote(name)
    if kind in ("double", "float") or kind.startswith("decimal("):
        return f"cast({column} AS string)"
    functions = {"timestamp": "unix_micros", "date": "unix_date", "binary": "base64"}
    return f"{functions[kind]}({column})" if kind in functions else column


def table_of(values: Sequence[bytes], sinks: Mapping[str, Types], received_us: Sequence[int]) -> dict[str, pa.Table]:
    """Sink to its results in order of arrival, with `emission_time` from `received_us`, shape (messages,).

    With one sink a message is its row, with several an object of rows.

    Raises:
        pa.ArrowInvalid: a message is malformed.
    """
    fields = {sink: pa.schema([(name, _wired(kind)) for name, kind in types.items()]) for sink, types in sinks.items()}
    text, emission_times = b"\n".join(values), pa.array(received_us, pa.int64())
    if len(sinks) == 1:
        return {sink: _restored(read_lines(text, fields[sink], "error"), sinks[sink], emission_times) for sink in sinks}
    table = read_lines(text, pa.schema([(sink, pa.struct(list(of))) for sink, of in fields.items()]), "error")
    return {sink: _rows_in(table.column(sink), fields[sink], types, emission_times) for sink, types in sinks.items()}


def _rows_in(column: pa.ChunkedArray, fields: pa.Schema, types: Types, emission_times: pa.Array) -> pa.Table:
    valid, structs = column.is_valid(), column.combine_chunks().drop_null()
    return _restored(pa.Table.from_arrays(structs.flatten(), schema=fields), types, emission_times.filter(valid))


def is_carried(kind: str) -> bool:
    """Whether a message can hold a column of this SQL type."""
    element = kind.removeprefix("array<").removesuffix(">")
    if kind.startswith("array<"):
        return element in _PLAIN
    return element in (*_PLAIN, *_OTHERS, *TYPES) or _DECIMAL.fullmatch(element) is not None


def carried_type(kind: str) -> pa.DataType:
    """The Arrow type of a carried type."""
    if match := _DECIMAL.fullmatch(kind):
        return pa.decimal128(int(match.group(1)), int(match.group(2)))
    return _OTHERS.get(kind) or arrow_type(kind)


def _wired(kind: str) -> pa.DataType:
    if kind.startswith("array<"):
        return pa.list_(_wired(kind[len("array<") : -1]))
    if kind in ("double", "float", "binary") or _DECIMAL.fullmatch(kind):
        return pa.string()
    return {"timestamp": pa.int64(), "date": pa.int32()}.get(kind) or carried_type(kind)


def _restored(table: pa.Table, types: Types, emission_times: pa.Array) -> pa.Table:
    columns = {name: _column(table.column(name), kind) for name, kind in types.items()}
    return pa.table({**columns, EMISSION_TIME: emission_times})


def _column(column: pa.ChunkedArray, kind: str) -> pa.ChunkedArray:
    if kind == "binary":
        values = [None if text is None else base64.b64decode(text) for text in column.to_pylist()]
        return pa.chunked_array([values], pa.binary())
    return pc.cast(column, carried_type(kind))
