"""The database of all tests of a module, and its input: rows with lineage."""

from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from streamgauge.core.schema import Schema, arrow_type
from streamgauge.dataflow.nodes import Window
from tests.helpers_times import us_of
from tests.unit.helpers_duckdb import duckdb_session

Row = tuple[Any, ...]
TIMES = st.integers(-25, 25)
KEYS = st.one_of(st.none(), st.integers(0, 2))
VALUES = st.one_of(st.none(), st.integers(-9, 9))
WINDOWS = st.tuples(st.integers(1, 12), st.integers(1, 12)).map(lambda t: Window(max(t), min(t)))
OPEN: list[duckdb.DuckDBPyConnection] = []
"""The one database of all examples, each of which replaces the inputs of the one before. It is no argument of the
tests: Hypothesis would keep that alive beyond the end."""


@pytest.fixture(autouse=True, scope="module")
def database() -> Iterator[None]:
    with duckdb_session() as connection:
        OPEN.append(connection)
        yield
        OPEN.clear()


def register(name: str, fields: Schema, rows: list[Row], first_id: int = 0) -> None:
    """Rows of (fields..., event_time) with lineage: ingest_time is event_time + 7, event_id the row's number."""
    times = [row[-1] for row in rows]
    columns = {f.name: pa.array([row[i] for row in rows], arrow_type(f.type)) for i, f in enumerate(fields.fields)}
    ids = range(first_id, first_id + len(rows))
    lineage = {"event_time": times, "ingest_time": [time + 7 for time in times], "event_id": ids}
    OPEN[0].register(name, pa.table(columns | {name: pa.array(each, pa.int64()) for name, each in lineage.items()}))


def ask(text: str) -> list[Row]:
    """The rows of a query; borders of windows as microseconds, like the times of the input."""
    return [tuple(us_of(value) for value in row) for row in OPEN[0].execute(text).fetchall()]


def holds(window: Window, start: int, time: int) -> bool:
    return start <= time < start + window.range_us


def starts(window: Window) -> range:
    """Starts of all windows that could hold a time of the tests."""
    return range(-(60 // window.slide_us) * window.slide_us, 60, window.slide_us)
