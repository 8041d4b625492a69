"""Event batching: events enter Spark as single rows, or in bundles of thousands as one row of arrays.

Spark copies, counts and checks each row of a Python source, which costs more than aggregating it. A bundle pays this
once. The query starts with `posexplode`, which Spark compiles into one loop with the following operators.
Columns without nulls are declared so, which saves checks. The ingest time is per delivery, so a bundle has it once.
"""

from collections.abc import Container, Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from streamgauge.core.schema import INGEST_TIME
from streamgauge.engines.spark.lowering.columns import column, columns

EVENTS = 4096
SHARED = (INGEST_TIME,)
"""Columns that are equal for many consecutive events. A bundle ends where one changes."""
_PLACE = "_place"


def row_schema(types: dict[str, DataType], nullable: Container[str] = ()) -> StructType:
    """The row type of single events; only the columns `nullable` may be null."""
    return StructType([StructField(name, type_, nullable=name in nullable) for name, type_ in types.items()])


def packed_schema(types: dict[str, DataType], nullable: Container[str] = ()) -> StructType:
    """The row type of a bundle of the columns `types`."""
    each = _each(types)
    return StructType(
        [
            StructField(
                name, ArrayType(type_, containsNull=name in nullable) if name in each else type_, nullable=False
            )
            for name, type_ in types.items()
        ]
    )


def pack(batches: Iterable[pa.RecordBatch], nullable: Container[str] = ()) -> Iterator[pa.RecordBatch]:
    """Bundles of at most `EVENTS` events, without a copy. Raises ValueError for an undeclared null."""
    for batch in validate_rows(batches, nullable):
        if batch.num_rows:
            yield _bundles(batch, _borders(batch))


def validate_rows(batches: Iterable[pa.RecordBatch], nullable: Container[str] = ()) -> Iterator[pa.RecordBatch]:
    """The same events with declared nullability. Raises ValueError for an undeclared null."""
    for batch in batches:
        fields = [field.with_nullable(field.name in nullable) for field in batch.schema]
        holed = [field.name for field, values in zip(fields, batch.columns, strict=True) if values.null_count]
        if any(name not in nullable for name in holed):
            raise ValueError(f"a stream holds nulls in {', '.join(holed)}, which was declared to hold none")
        yield pa.RecordBatch.from_arrays(batch.columns, schema=pa.schema(fields))


def _each(names: Iterable[str]) -> list[str]:
    """The columns with one value per event. If all columns are shared, all of them."""
    return [name for name in names if name not in SHARED] or list(names)


def _borders(batch: pa.RecordBatch) -> np.ndarray:
    """The first rows of bundles, and the end: at most `EVENTS` apart, and where a shared column changes."""
    borders = np.minimum(np.arange(0, batch.num_rows + EVENTS, EVENTS), batch.num_rows)
    for name in set(batch.schema.names) - set(_each(batch.schema.names)):
        values = batch.column(name).to_numpy()
        borders = np.union1d(borders, np.flatnonzero(values[1:] != values[:-1]) + 1)
    return np.unique(borders).astype(np.int32)


def _bundles(batch: pa.RecordBatch, borders: np.ndarray) -> pa.RecordBatch:
    each, ends, first = _each(batch.schema.names), pa.array(borders), pa.array(borders[:-1])
    arrays, fields = [], []
    for field, values in zip(batch.schema, batch.columns, strict=True):
        type_ = pa.list_(field.with_name("element")) if field.name in each else field.type
        fields.append(pa.field(field.name, type_, nullable=False))
        arrays.append(pa.ListArray.from_arrays(ends, values, type=type_) if field.name in each else values.take(first))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def unpack(frame: DataFrame, place_column: str = _PLACE) -> DataFrame:
    """One row per event, with the columns of `frame` in order.

    `place_column` names the column of positions, by which row counters recognise the node in a plan.
    """
    each = _each(frame.columns)
    first = each[0]
    while place_column.lower() in map(str.lower, frame.columns):
        place_column = f"_{place_column}"
    other_columns = columns(name for name in frame.columns if name != first)
    placed = frame.select(F.posexplode(column(first)).alias(place_column, first), *other_columns)
    position = column(place_column)
    return placed.select(
        *[
            column(name)[position].alias(name) if name in each and name != first else column(name)
            for name in frame.columns
        ]
    )
