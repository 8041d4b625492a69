"""Static tables for DuckDB: each one is a Parquet file of this process, which any connection can read."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path

from streamgauge.dataflow.static_table import Table
from streamgauge.system.disk import Scratch


@lru_cache(maxsize=64)
def relation_of(table: Table) -> str:
    """A relation with the table's rows, as SQL. Timestamps are UTC without a zone."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = table.to_arrow()
    naive = [pa.timestamp("us") if pa.types.is_timestamp(field.type) else field.type for field in rows.schema]
    path = Path(_folder().name) / f"{len(list(Path(_folder().name).iterdir()))}.parquet"
    pq.write_table(rows.cast(pa.schema(list(zip(rows.column_names, naive, strict=True)))), path)
    return f"read_parquet('{path}')"


@cache
def _folder() -> Scratch:
    """Removed when the process ends."""
    return Scratch("tables")
