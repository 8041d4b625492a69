"""Text records with a unique number and their creation time, as in the latency study of Spark Streaming."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamgauge.core.clock import US
from streamgauge.core.errors import InputError, Problem
from streamgauge.loadgen.fields import EventNumbers, FieldSpec
from streamgauge.loadgen.random import PhiloxBits

ID_DIGITS, TIME_DIGITS = 10, 12
"""Digits for ten thousand million records, and for eleven days in microseconds."""
RECORD_BYTES_MIN, RECORD_BYTES_MAX = ID_DIGITS + TIME_DIGITS + 2, 65_536
_COMMA, _ZERO, _LETTER = ord(","), ord("0"), ord("a")
_OFFSET_BYTES = 4


@dataclass(frozen=True)
class TimestampedText(FieldSpec):
    """`id,created_us,` and letters that do not compress, `size_bytes` in all.

    `id` numbers the records of all partitions. `created_us` is the record's due time at `rate_per_s`, microseconds
    since the first one. Both have leading zeros.
    """

    size_bytes: int
    rate_per_s: float
    spark_type: ClassVar[str] = "string"

    def __post_init__(self) -> None:
        if not RECORD_BYTES_MIN <= self.size_bytes <= RECORD_BYTES_MAX:
            rule = f"must be {RECORD_BYTES_MIN} to {RECORD_BYTES_MAX} bytes"
            raise InputError(Problem(f"{self.name}.size_bytes", rule, self.size_bytes, str(RECORD_BYTES_MIN)))

    @property
    def row_bytes(self) -> float:
        return self.size_bytes + _OFFSET_BYTES

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        return self.of_events(bits, first, last, lambda: np.arange(first, last, dtype=np.int64))

    def of_events(self, bits: PhiloxBits, first: int, last: int, numbers: EventNumbers) -> pa.Array:
        ids = numbers()
        created_us = (ids * (US / self.rate_per_s)).astype(np.int64)
        whole = np.empty((last - first, self.size_bytes), np.uint8)
        after_id, after_time = ID_DIGITS + 1, ID_DIGITS + TIME_DIGITS + 2
        whole[:, :ID_DIGITS] = _digits(ids, ID_DIGITS)
        whole[:, after_id : after_time - 1] = _digits(created_us, TIME_DIGITS)
        whole[:, (ID_DIGITS, after_time - 1)] = _COMMA
        whole[:, after_time:] = self._letters(bits, first, last)
        ends = np.arange(last - first + 1, dtype=np.int32) * np.int32(self.size_bytes)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(whole)]
        return pa.StringArray.from_buffers(last - first, buffers[1], buffers[2])

    def _letters(self, bits: PhiloxBits, first: int, last: int) -> NDArray[np.uint8]:
        """Letters with four random bits each."""
        size = self.size_bytes - RECORD_BYTES_MIN
        lanes = -(-size // 4)
        drawn = bits.lanes(first * lanes, last * lanes).view(np.uint8).reshape(last - first, 4 * lanes)
        letters: NDArray[np.uint8] = (drawn[:, :size] & np.uint8(0x0F)) + np.uint8(_LETTER)
        return letters


def _digits(numbers: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Decimal digits as ASCII, shape (n, count)."""
    powers = 10 ** np.arange(count - 1, -1, -1, dtype=np.int64)
    return numbers[:, None] // powers % 10 + _ZERO
