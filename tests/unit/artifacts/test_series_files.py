"""The schemas of series.parquet and engine/batches.parquet, and what breaks them."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.artifacts import series_files
from streamgauge.core.errors import DriverError


@given(st.sets(st.sampled_from(series_files.SCHEMA.names[2:])))
def test_absent_columns_become_null(names: set[str]) -> None:
    """Any subset of the nullable columns is enough; the rest is null, never 0."""
    values = {name: [[1], [2, 3]] if name == "lag_by_partition" else [1, 2] for name in names}
    table = series_files.conform(pa.table({"time_us": [0, 1_000_000], "phase": ["measured"] * 2, **values}))
    assert table.schema == series_files.SCHEMA
    for name in series_files.SCHEMA.names[2:]:
        assert table.column(name).to_pylist() == values.get(name, [None, None])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"time_us": [1], "phase": ["a"], "extra": [1]}, "columns extra$"),
        ({"time_us": [1]}, "phase"),
        ({"time_us": [1], "phase": pa.array([None], pa.string())}, "phase"),
        ({"time_us": ["x"], "phase": ["a"]}, "time_us"),
        ({"time_us": [2, 1], "phase": ["a", "a"]}, "ascend"),
        ({"time_us": [1, 1], "phase": ["a", "a"]}, "ascend"),
    ],
)
def test_broken_series_is_refused(columns: dict[str, object], message: str) -> None:
    """Each way to break the schema is refused by the column's name."""
    with pytest.raises(DriverError, match=message):
        series_files.conform(pa.table(columns))
