"""Rows of every type, with what an encoding may get wrong, and batches of them."""

import math
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from streamgauge.core.schema import arrow_type

KINDS = {"n": "int", "b": "bigint", "d": "double", "f": "boolean", "t": "timestamp", "s": "string", "x": "binary"}
MOMENT, BEFORE_1970 = datetime(2026, 1, 2, 3, 4, 5, 6, UTC), datetime(1969, 1, 1, tzinfo=UTC)
LARGE = 1.7976931348623157e308
ROWS: list[dict[str, Any]] = [
    dict(zip(KINDS, row, strict=True)) for row in (
        (1, -(2**63), 0.1, True, MOMENT, "añb", b"\x00\xff"),
        (-(2**31), 2**63 - 1, -LARGE, False, BEFORE_1970, "", b""),
        (None, None, None, None, None, None, None),
        (0, 0, math.inf, True, MOMENT, " \n ", b" "),
        (7, 7, 5e-324, True, MOMENT, "x" * 1000, b"y"),
        (64, -65, -0.0, False, MOMENT, '"a" \\ \x01 \u2028 😀', b"'"),
    )
]  # fmt: skip


def batch_of(rows: list[dict[str, Any]], kinds: dict[str, str]) -> pa.RecordBatch:
    columns = [pa.array([row[name] for row in rows], arrow_type(kind)) for name, kind in kinds.items()]
    return pa.RecordBatch.from_arrays(columns, names=list(kinds))
