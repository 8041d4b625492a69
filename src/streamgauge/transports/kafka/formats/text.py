"""Messages that are the text of one field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.transports.kafka.formats.api import ProgramFormat, text_of


class Text(ProgramFormat):
    """Implements `ProgramFormat`, for one column."""

    words = "a text"

    def encode(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        column = batch.column(self.names[0])
        return column if pa.types.is_binary(column.type) else pc.cast(pc.cast(column, pa.string()), pa.binary())

    def table(self, values: Sequence[bytes], schema: pa.Schema) -> pa.Table | None:
        try:
            return pa.table([pa.array(values, pa.binary()).cast(pa.string())], schema=schema)
        except pa.ArrowInvalid:
            return None

    def fields(self, value: bytes) -> dict[str, Any]:
        return {self.names[0]: text_of(value)}
