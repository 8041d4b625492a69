"""How events enter Spark: one by one, or in bundles, some thousand as one row of arrays.

A row that comes from a Python source is copied, counted and checked on its own before the query sees it, which costs
more than aggregating it; a bundle pays that once. The query then begins with `posexplode`, a native expression that is
compiled into the same loop as what follows it. Streams hold no nulls, and Spark that knows it does not ask for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

EVENTS = 4096
_PLACE = "_place"


def bundle_schema(types: dict[str, DataType]) -> StructType:
    """The row type of a bundle of the columns `types`; nothing in it is ever null."""
    fields = [StructField(name, ArrayType(type_, containsNull=False), nullable=False) for name, type_ in types.items()]
    return StructType(fields)


def row_schema(types: dict[str, DataType]) -> StructType:
    """The row type of single events; nothing in it is ever null."""
    return StructType([StructField(name, type_, nullable=False) for name, type_ in types.items()])


def bundled(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same events, `EVENTS` a row at most, without a copy; ValueError where a value is null."""
    for batch in single(batches):
        if batch.num_rows:
            ends = np.minimum(np.arange(0, batch.num_rows + EVENTS, EVENTS), batch.num_rows).astype(np.int32)
            yield _bundles(batch, pa.array(ends))


def single(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same events, their columns declared as never null; ValueError where a value is."""
    for batch in batches:
        if any(column.null_count for column in batch.columns):
            raise ValueError("a stream may hold no nulls")
        fields = [field.with_nullable(False) for field in batch.schema]
        yield pa.RecordBatch.from_arrays(batch.columns, schema=pa.schema(fields))


def _bundles(batch: pa.RecordBatch, offsets: pa.Array) -> pa.RecordBatch:
    types = [pa.list_(pa.field("element", field.type, nullable=False)) for field in batch.schema]
    fields = [pa.field(name, type_, nullable=False) for name, type_ in zip(batch.schema.names, types, strict=True)]
    lists = [
        pa.ListArray.from_arrays(offsets, column, type=type_)
        for column, type_ in zip(batch.columns, types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(lists, schema=pa.schema(fields))


def unbundled(frame: DataFrame) -> DataFrame:
    """One row an event again, with the columns of `frame` in their order."""
    first, *others = frame.columns
    placed = frame.select(F.posexplode(first).alias(_PLACE, first), *others)
    return placed.select(first, *[F.col(name)[F.col(_PLACE)].alias(name) for name in others])
