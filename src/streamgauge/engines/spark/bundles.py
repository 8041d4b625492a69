"""How events enter Spark: one by one, or in bundles, some thousand as one row of arrays.

A row that comes from a Python source is copied, counted and checked on its own before the query sees it, which costs
more than aggregating it; a bundle pays that once. The query then begins with `posexplode`, a native expression that is
compiled into the same loop as what follows it. Most columns hold no nulls, and Spark that knows it does not ask.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

EVENTS = 4096
_PLACE = "_place"


def row_schema(types: dict[str, DataType], nullable: Container[str] = ()) -> StructType:
    """The row type of single events; only the columns `nullable` are ever null."""
    return StructType([StructField(name, type_, nullable=name in nullable) for name, type_ in types.items()])


def bundle_schema(types: dict[str, DataType], nullable: Container[str] = ()) -> StructType:
    """The row type of a bundle of the columns `types`."""
    fields = [
        StructField(name, ArrayType(type_, containsNull=name in nullable), nullable=False)
        for name, type_ in types.items()
    ]
    return StructType(fields)


def bundled(batches: Iterable[pa.RecordBatch], nullable: Container[str] = ()) -> Iterator[pa.RecordBatch]:
    """The same events, `EVENTS` a row at most, without a copy; ValueError where a value is null that may not be."""
    for batch in single(batches, nullable):
        if batch.num_rows:
            ends = np.minimum(np.arange(0, batch.num_rows + EVENTS, EVENTS), batch.num_rows).astype(np.int32)
            yield _bundles(batch, pa.array(ends))


def single(batches: Iterable[pa.RecordBatch], nullable: Container[str] = ()) -> Iterator[pa.RecordBatch]:
    """The same events, declared as they are; ValueError where a value is null that may not be."""
    for batch in batches:
        fields = [field.with_nullable(field.name in nullable) for field in batch.schema]
        holed = [field.name for field, column in zip(fields, batch.columns, strict=True) if column.null_count]
        if any(name not in nullable for name in holed):
            raise ValueError(f"a stream holds nulls in {', '.join(holed)}, which was declared to hold none")
        yield pa.RecordBatch.from_arrays(batch.columns, schema=pa.schema(fields))


def _bundles(batch: pa.RecordBatch, offsets: pa.Array) -> pa.RecordBatch:
    types = [pa.list_(field.with_name("element")) for field in batch.schema]
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
