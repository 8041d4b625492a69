"""Events in bundles: nothing is lost, moved or copied on the way in."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, LongType, StringType

from streamgauge.engines.spark.io import event_batching

TYPES = {"event_time": LongType(), "pack": IntegerType(), "name": StringType()}


def batch_of(rows: int) -> pa.RecordBatch:
    columns = [
        pa.array(range(rows), pa.int64()), pa.array(range(rows), pa.int32()), pa.array([str(i) for i in range(rows)])
    ]  # fmt: skip
    return pa.RecordBatch.from_arrays(columns, names=list(TYPES))


@given(
    st.lists(
        st.sampled_from([0, 1, 5, event_batching.EVENTS - 1, event_batching.EVENTS, event_batching.EVENTS + 1, 9000]),
        max_size=4,
    )
)
def test_bundles_hold_the_same_events_in_the_same_order(sizes: list[int]) -> None:
    """Whatever the sizes of the batches; no bundle is empty or too large."""
    given_ = [batch_of(size) for size in sizes]
    found = list(event_batching.pack(given_))
    for name in TYPES:
        there = [value for batch in found for row in batch.column(name).to_pylist() for value in row]
        assert there == [value for batch in given_ for value in batch.column(name).to_pylist()]
    lengths = [len(row) for batch in found for row in batch.column("pack").to_pylist()]
    assert all(0 < length <= event_batching.EVENTS for length in lengths)


def test_what_arrives_is_what_the_frame_declares() -> None:
    """Spark compares the Arrow schema with its own, nullability and all."""
    (bundle,) = event_batching.pack([batch_of(3)])
    (single,) = event_batching.validate_rows([batch_of(3)])
    assert to_arrow_schema(event_batching.packed_schema(TYPES), timezone="UTC").equals(bundle.schema)
    assert to_arrow_schema(event_batching.row_schema(TYPES), timezone="UTC").equals(single.schema)


def test_a_null_comes_only_where_it_was_declared() -> None:
    """Elsewhere the frame says that there are none, and Spark would read rubbish."""
    holed = pa.RecordBatch.from_arrays([pa.array([1, None], pa.int64())], names=["v"])
    for enter in (event_batching.pack, event_batching.validate_rows):
        with pytest.raises(ValueError, match="nulls in v"):
            list(enter([holed]))
    (bundle,) = event_batching.pack([holed], ["v"])
    assert bundle.column("v").to_pylist() == [[1, None]]
    assert to_arrow_schema(event_batching.packed_schema({"v": LongType()}, ["v"]), timezone="UTC").equals(bundle.schema)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([1, 2, event_batching.EVENTS, 5000])), min_size=1, max_size=4)
)
def test_a_shared_column_comes_once_a_bundle(deliveries: list[tuple[int, int]]) -> None:
    """A bundle ends where the ingest time changes, and each event keeps its own."""
    ingest = [time for time, events in deliveries for _ in range(events)]
    events = pa.RecordBatch.from_arrays(
        [pa.array(ingest, pa.int64()), pa.array(range(len(ingest)), pa.int64())], names=["ingest_time", "event_time"]
    )
    (found,) = event_batching.pack([events])
    lengths = [len(row) for row in found.column("event_time").to_pylist()]
    assert max(lengths) <= event_batching.EVENTS
    times = found.column("ingest_time").to_pylist()
    assert [time for time, length in zip(times, lengths, strict=True) for _ in range(length)] == ingest
    assert [value for row in found.column("event_time").to_pylist() for value in row] == list(range(len(ingest)))
    types = {"ingest_time": LongType(), "event_time": LongType()}
    assert to_arrow_schema(event_batching.packed_schema(types), timezone="UTC").equals(found.schema)
