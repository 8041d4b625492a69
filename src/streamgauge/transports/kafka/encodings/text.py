"""Messages that are text: one line of CSV without a header, or the text of one field."""

import base64
import csv
import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from streamgauge.core.schema import ColumnTypes
from streamgauge.transports.kafka.encodings.api import BOM, Foreign, ProgramFormat, text_of, unmarked_text_of

_BOOLEANS = {"true": True, "false": False}


def _whole(cell: str) -> int:
    """A whole number, to the base 16 after 0x as in Arrow. Raises ValueError."""
    return int(cell, 16 if cell[:2] in ("0x", "0X") else 10)


_READERS: dict[str, Callable[[str], Any]] = {"bigint": _whole, "double": float, "boolean": _BOOLEANS.__getitem__}


class Csv(ProgramFormat):
    """Implements `ProgramFormat`; the fields are in the order of the columns.

    An empty field is null and `""` the empty text, bytes are base64 text.
    """

    words = "a line of CSV"

    def __init__(self, columns: ColumnTypes, delimiter: str = ",") -> None:
        super().__init__(columns)
        self._delimiter = delimiter

    def encode(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        cells = [self._cells(batch.column(name), kind) for name, kind in self.columns]
        lines = pc.binary_join_element_wise(*cells, self._delimiter, null_handling="replace", null_replacement="")
        return pc.cast(lines, pa.binary())

    def parsed(self, values: Sequence[bytes], schema: pa.Schema) -> pa.Table | None:
        text = b"\n".join(values)
        if text.startswith(BOM) or b"\n" + BOM in text:
            return None
        table = pa.csv.read_csv(
            io.BytesIO(text),
            pa.csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=self.names),
            pa.csv.ParseOptions(delimiter=self._delimiter, ignore_empty_lines=False),
            pa.csv.ConvertOptions(
                column_types=schema, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False,
                true_values=["true"], false_values=["false"],
            ),
        )  # fmt: skip
        return table if table.num_rows == len(values) else None

    def fields(self, value: bytes) -> dict[str, Any]:
        cells = self._split(unmarked_text_of(value).rstrip("\r\n"))
        if len(cells) != len(self.columns):
            raise Foreign(f"it has {len(cells)} fields, not {len(self.columns)}")
        return {name: _read(cell, kind) for (name, kind), cell in zip(self.columns, cells, strict=True)}

    def _split(self, text: str) -> list[str | None]:
        """The cells of a line, None for an empty one. Raises Foreign.

        Arrow reads lines with quotes, as in `table`, because Python does not tell an empty text in quotes from a null.
        """
        as_texts = pa.schema([(name, pa.string()) for name in self.names])
        if '"' in text and (table := self.table([text.encode()], as_texts)) is not None:
            return [column[0].as_py() for column in table.columns]
        try:
            lines = list(csv.reader([text], delimiter=self._delimiter, strict=True))
        except csv.Error as error:
            raise Foreign(f"it is not CSV: {error}") from None
        return [cell or None for cell in lines[0]] if lines else []

    def _cells(self, column: pa.Array, kind: str) -> pa.Array:
        if kind == "binary":
            encoded = [None if one is None else base64.b64encode(one).decode() for one in column.to_pylist()]
            column = pa.array(encoded, pa.string())
        if kind == "timestamp":
            column = pc.cast(column, pa.int64())
        texts = pc.cast(column, pa.string())
        if kind not in ("string", "binary"):
            return texts
        special = pc.match_substring_regex(texts, f'^$|["\r\n{re.escape(self._delimiter)}]')
        quoted = pc.replace_substring(texts, '"', '""')
        return pc.if_else(special, pc.binary_join_element_wise('"', quoted, '"', ""), texts)


def _read(cell: str | None, kind: str) -> Any:
    if cell is None or (cell == "" and kind != "string"):
        return None
    try:
        return _READERS[kind](cell) if kind in _READERS else cell
    except (ValueError, KeyError):
        return cell


class Text(ProgramFormat):
    """Implements `ProgramFormat`, for one column."""

    words = "a text"

    def encode(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        column = batch.column(self.names[0])
        return column if pa.types.is_binary(column.type) else pc.cast(pc.cast(column, pa.string()), pa.binary())

    def parsed(self, values: Sequence[bytes], schema: pa.Schema) -> pa.Table | None:
        return pa.table([pa.array(values, pa.binary()).cast(pa.string())], schema=schema)

    def fields(self, value: bytes) -> dict[str, Any]:
        return {self.names[0]: text_of(value)}
