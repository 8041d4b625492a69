"""The operator in Python: a class that works on Arrow batches.

Input of `process(batch, watermark_us)`:

- One instance gets all rows of a key, and serves many keys. Rows come in event-time order (ties by event id).
- A batch has the columns that the node reads, then `_time` (int64, us): the row's event time. For a window's result
  it is the window's last microsecond.
- With several inputs it also has `_input` (int8, 0 is the first). Columns that an input lacks are null.
- All rows at or before `watermark_us` have been given by then, and perhaps some later ones.
- A batch may be empty: only the watermark moved.
- Batches end anywhere between two different times. The answer must not depend on where.

Output: the node's output columns, and the origin of each row:

- From a row (the default): `_row`, the index of the row in the batch. The result takes that row's event time, ingest
  time and identity. Each row gives at most one result, unless the node sets `several`.
- From the watermark (the node names an `identity`): `_time` (when the result became due, at or before the watermark),
  `event_time` and `ingest_time` (the maxima over the rows that contributed; the batch has them too).

A broadcast input is the last one. Every instance gets all of its rows, so these rows must not give results: each
instance would repeat them.

Work on whole batches with NumPy and Arrow, without a call per row; `dataflow.operators.grouped_arrays` helps.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from streamgauge.core.units import FAR_FUTURE_US, FAR_PAST_US

if TYPE_CHECKING:
    import pyarrow as pa

TIME, ROW, INPUT, ORDINAL = "_time", "_row", "_input", "_ordinal"

BEFORE_ALL, AFTER_ALL = FAR_PAST_US, FAR_FUTURE_US
"""Watermarks before the first event and after the last. A stateless process always gets the first."""


class Processor(ABC):
    """Base class for `Stream.process`. Each instance is made with the node's parameters."""

    @classmethod
    def label(cls, **parameters: Any) -> str:
        """A short description for pictures of a flow."""
        return f"{cls.__name__}({', '.join(f'{name}={value!r}' for name, value in parameters.items())})"

    def open(self, schema: pa.Schema) -> None:  # noqa: B027 - few need it
        """Called once, before the first batch, with the schema of the batches."""

    @abstractmethod
    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        """The results of the batch's rows and of the watermark's advance (see the module)."""

    def snapshot(self) -> bytes:
        """The whole state. Keyed classes need it: an engine may end and restart an instance with every batch."""
        raise NotImplementedError(f"{type(self).__name__} keeps state by key, and has no snapshot()")

    def restore(self, state: bytes) -> None:
        """The inverse of `snapshot`, on a fresh instance."""
        raise NotImplementedError(f"{type(self).__name__} keeps state by key, and has no restore()")


class StateInAttributes(Processor):
    """Base class for keyed classes: a snapshot has all attributes of the instance, pickled."""

    def snapshot(self) -> bytes:
        return pickle.dumps(vars(self), pickle.HIGHEST_PROTOCOL)

    def restore(self, state: bytes) -> None:
        vars(self).update(pickle.loads(state))
