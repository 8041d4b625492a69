"""The one operator in Python: a class that works on Arrow batches [design 4].

What it is given. `process(batch, watermark_us)` gets rows in event-time order (ties by event id), all rows of a key in
the same instance, one instance for many keys. A batch has the columns that the node reads, then `_time` (int64, us:
the row's event time; of a window's result its last microsecond), and with several inputs `_input` (int8: 0 is the
first; columns that an input does not have are null). Every row at or before `watermark_us` has been given by then, and
perhaps some after it. A batch may be empty: only the watermark moved. Borders of batches fall between different times,
anywhere: the answer must not depend on where.

What it gives. The node's output columns, and where each row comes from:

- by row (the default): `_row`, the index in the given batch of the row that it came from; event time, ingest time and
  identity are that row's. Each row of the batch at most once, unless the node says `several`.
- by itself (the node names an `identity`): columns `_time` (when it became due, at or before the watermark),
  `event_time` and `ingest_time` (the greatest of the rows that it came from; the batch has them too). This is for
  results of the watermark, which come from no row of the batch.

A broadcast input is the last one. Every instance is given all of its rows, and its results come from the others' rows
alone: it has as many instances as an engine likes, and each would give them.

No call and no state per row: NumPy and Arrow on whole batches. `dataflow.operators.grouped_arrays` has the usual
patterns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from streamgauge.core.units import FAR_FUTURE_US, FAR_PAST_US

if TYPE_CHECKING:
    import pyarrow as pa

TIME, ROW, INPUT, ORDINAL = "_time", "_row", "_input", "_ordinal"

BEFORE_ALL, AFTER_ALL = FAR_PAST_US, FAR_FUTURE_US
"""Watermarks before the first event and after the last; a stateless process is given the first, always."""


class Processor(ABC):
    """Base of the classes that `Stream.process` takes; made with the node's parameters, once for each instance."""

    @classmethod
    def label(cls, **parameters: Any) -> str:
        """What one made with these parameters does, in words, for pictures of a flow."""
        return f"{cls.__name__}({', '.join(f'{name}={value!r}' for name, value in parameters.items())})"

    def open(self, schema: pa.Schema) -> None:  # noqa: B027 - few need it
        """Called once, before anything else; `schema` is that of the batches to come."""

    @abstractmethod
    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        """The results of the batch's rows, and of the watermark's move (see the module)."""

    def snapshot(self) -> bytes:
        """The state, whole. A keyed class must have it: instances end and begin with every batch of an engine."""
        raise NotImplementedError(f"{type(self).__name__} keeps state by key, and has no snapshot()")

    def restore(self, state: bytes) -> None:
        """The inverse of `snapshot`, on a fresh instance."""
        raise NotImplementedError(f"{type(self).__name__} keeps state by key, and has no restore()")
