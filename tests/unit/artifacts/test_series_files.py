"""The schema of series.parquet."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.artifacts import series_files


@given(st.sets(st.sampled_from(series_files.SCHEMA.names[2:])))
def test_absent_columns_become_null(names: set[str]) -> None:
    """Any subset of the nullable columns is enough; the rest is null, never 0."""
    values = {name: [[1], [2, 3]] if name == "lag_by_partition" else [1, 2] for name in names}
    table = series_files.conform(pa.table({"time_us": [0, 1_000_000], "phase": ["measured"] * 2, **values}))
    assert table.schema == series_files.SCHEMA
    for name in series_files.SCHEMA.names[2:]:
        assert table.column(name).to_pylist() == values.get(name, [None, None])
