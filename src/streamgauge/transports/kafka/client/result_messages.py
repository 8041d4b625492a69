"""Results as messages, for both ends: JSON objects, with marks before and after those of a batch.

A result's key is that of its batch, a mark's is `MARK`. The first mark of a batch says what types its columns have and
how far its sources were read; the second that the batch is whole. A first mark that comes again takes back what came
since the one before: the batch was begun anew. A query that writes without batches has one first mark, which says so,
and further ones as it learns how far it has read. JSON has no NaN, no time and no bytes, so those travel as texts and
numbers (`wire`), and are made what they were where they arrive (`table_of`).
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from streamgauge.core.lineage_columns import EMISSION_TIME
from streamgauge.core.schema import arrow_type
from streamgauge.core.units import backquote

MARK = b"mark"
Types = dict[str, str]
"""Column to Spark SQL type."""


@dataclass(frozen=True)
class Position:
    """How far a reader of a stream had come, by offset, in one partition of its topic."""

    stream: str
    reader: int
    partition: int
    offset: int


@dataclass(frozen=True)
class Mark:
    """`sinks`: of each sink the types of its columns; `positions`: of a first mark those at the batch's end, of a later
    one of an `endless` batch those up to which everything has been read and written.
    """

    query: str
    batch: int
    first: bool
    sinks: dict[str, Types] = field(default_factory=dict)
    positions: tuple[Position, ...] = ()
    endless: bool = False

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()


def mark_of(value: bytes) -> Mark:
    said = json.loads(value)
    positions = tuple(Position(**each) for each in said.pop("positions"))
    return Mark(**said, positions=positions)


def key_of(query: str, batch: int) -> str:
    return f"{query}/{batch}"


def wire(name: str, kind: str, of: str = "") -> str:
    """Spark SQL that makes a column, or one of the struct `of`, fit for JSON, without loss."""
    column = f"{of}.{backquote(name)}" if of else backquote(name)
    if kind == "timestamp":
        return f"unix_micros({column})"
    if kind == "double":
        return f"cast({column} AS string)"
    return f"base64({column})" if kind == "binary" else column


def table_of(values: Sequence[bytes], sinks: Mapping[str, Types], stamps_us: Sequence[int]) -> dict[str, pa.Table]:
    """The results of each sink, in the order in which they came, `emission_time` added. Of one sink alone a message is
    its row, of several it is an object of their rows. `stamps_us`: when each message was taken.

    Raises:
        pa.ArrowInvalid: a message is no such object.
    """
    fields = {sink: pa.schema([(name, _wired(kind)) for name, kind in types.items()]) for sink, types in sinks.items()}
    several = len(sinks) > 1
    structs = pa.schema([(sink, pa.struct(list(of))) for sink, of in fields.items()])
    whole = structs if several else next(iter(fields.values()))
    text = b"\n".join(values)
    found = pa.json.read_json(
        io.BytesIO(text),
        pa.json.ReadOptions(use_threads=False, block_size=max(len(text) + 1, 1)),
        pa.json.ParseOptions(explicit_schema=whole, unexpected_field_behavior="error"),
    )
    stamps = pa.array(stamps_us, pa.int64())
    if not several:
        return {sink: _restored(found, types, stamps) for sink, types in sinks.items()}
    return {sink: _rows_in(found.column(sink), fields[sink], types, stamps) for sink, types in sinks.items()}


def _rows_in(column: pa.ChunkedArray, fields: pa.Schema, types: Types, stamps: pa.Array) -> pa.Table:
    there, structs = column.is_valid(), column.combine_chunks().drop_null()
    return _restored(pa.Table.from_arrays(structs.flatten(), schema=fields), types, stamps.filter(there))


def _wired(kind: str) -> pa.DataType:
    if kind.startswith("array<"):
        return pa.list_(_wired(kind[len("array<") : -1]))
    return {"timestamp": pa.int64(), "double": pa.string(), "binary": pa.string()}.get(kind) or arrow_type(kind)


def _restored(found: pa.Table, types: Types, stamps: pa.Array) -> pa.Table:
    columns = [_column(found.column(name), kind) for name, kind in types.items()]
    return pa.Table.from_arrays([*columns, stamps], names=[*types, EMISSION_TIME])


def _column(column: pa.ChunkedArray, kind: str) -> pa.ChunkedArray:
    if kind == "binary":
        values = [None if text is None else base64.b64decode(text) for text in column.to_pylist()]
        return pa.chunked_array([values], pa.binary())
    return pc.cast(column, arrow_type(kind))
