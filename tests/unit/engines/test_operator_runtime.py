"""One instance of a process, without any engine: order, pieces, lineage, and what it refuses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import source
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.dataflow.nodes import Process
from streamgauge.dataflow.operators.api import INPUT, TIME, Processor
from streamgauge.engines.operator_runtime import OperatorRuntime, column_layouts, in_order, ordinals, pieces

EVENTS = source("events", Schema.from_types(key="int", value="int"))
OTHERS = source("others", Schema.from_types(key="int", name="string"))


class Noted(Processor):
    """Notes what it was given, and gives what `make` makes of it."""

    def __init__(self, make: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None) -> None:
        self.given: list[tuple[list[dict[str, Any]], int]] = []
        self._make = make or (lambda batch: rows(value=[1] * batch.num_rows, _row=range(batch.num_rows)))

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        self.given.append((batch.to_pylist(), watermark_us))
        return self._make(batch)

    def snapshot(self) -> bytes:
        return b""

    def restore(self, state: bytes) -> None:
        self.given = []


def rows(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({name: pa.array(list(values), pa.int64()) for name, values in columns.items()})


def node_of(make: Callable[..., Any] | None = None, *others: Any, lineage: bool = True, **more: Any) -> Process:
    stream = EVENTS.process(
        Noted, *others, keys="key", gives=Schema.from_types(value="int"), parameters={"make": make}, **more
    )
    node = with_lineage(stream.sink("out")).sink.input if lineage else stream.node
    assert isinstance(node, Process)
    return node


def side(node: Process, number: int = 0, **columns: Any) -> pa.Table:
    wanted = column_layouts(node).sides[number]
    rows_ = len(columns[TIME])
    filled = {name: columns.get(name, columns[TIME] if name == "event_time" else [0] * rows_) for name in wanted.names}
    return pa.table({name: pa.array(values, wanted.field(name).type) for name, values in filled.items()})


def test_rows_come_by_time_then_by_event_id() -> None:
    """Whatever order the engine brought them in; the watermark is never before the last of them."""
    node = node_of()
    instance = OperatorRuntime(node)
    table = side(node, key=[1, 1, 1], value=[3, 1, 2], event_id=[8, 9, 7], **{TIME: [20, 10, 20]})
    found = pa.concat_tables(list(instance.advance([table], 5)))
    given, watermark_us = instance._class.given[0]  # type: ignore[attr-defined]
    assert [row["value"] for row in given] == [1, 2, 3]
    assert watermark_us == 20
    assert found.column("event_id").to_pylist() == [9, 7, 8]
    assert found.column_names == ["value", "event_time", "ingest_time", "event_id", TIME]


def test_results_of_the_watermark_go_by_the_engines_own() -> None:
    """Rows may lie after it; were each instance to go by its own rows, results would come out of order."""
    node = node_of(lambda batch: rows(value=[], _time=[], event_time=[], ingest_time=[]), identity="value")
    instance = OperatorRuntime(node)
    list(instance.advance([side(node, **{TIME: [10, 30]})], 20))
    assert instance._class.given[0][1] == 20  # type: ignore[attr-defined]


def test_a_result_takes_its_rows_lineage() -> None:
    """Rows may be left out and named in any order."""
    node = node_of(lambda batch: rows(value=[5, 6], _row=[2, 0]))
    table = side(node, event_id=[1, 2, 3], ingest_time=[11, 12, 13], **{TIME: [1, 2, 3]})
    assert pa.concat_tables(list(OperatorRuntime(node).advance([table], 3))).to_pylist() == [
        {"value": 5, "event_time": 3, "ingest_time": 13, "event_id": 3, TIME: 3},
        {"value": 6, "event_time": 1, "ingest_time": 11, "event_id": 1, TIME: 1},
    ]


def test_several_results_of_a_row_are_numbered() -> None:
    """The ordinal tells them apart."""
    node = node_of(lambda batch: rows(value=[1, 2, 3], _row=[1, 0, 1]), several=True)
    found = pa.concat_tables(list(OperatorRuntime(node).advance([side(node, event_id=[4, 5], **{TIME: [1, 2]})], 2)))
    pairs = zip(found.column("event_id").to_pylist(), found.column("event_ordinal").to_pylist(), strict=True)
    assert list(pairs) == [(5, 0), (4, 0), (5, 1)]


def test_several_inputs_are_a_tagged_union() -> None:
    """In one order of time, inputs at one time in their own order; columns that an input lacks are null."""
    node = node_of(None, OTHERS)
    instance = OperatorRuntime(node)
    left = side(node, 0, key=[1, 1], value=[10, 20], event_id=[1, 2], **{TIME: [5, 7]})
    right = side(node, 1, key=[1, 1], name=["a", "b"], event_id=[3, 4], **{TIME: [5, 6]})
    found = pa.concat_tables(list(instance.advance([left, right], 7)))
    given, _ = instance._class.given[0]  # type: ignore[attr-defined]
    assert [(row[TIME], row[INPUT], row["value"], row["name"]) for row in given] == [
        (5, 0, 10, None), (5, 1, None, "a"), (6, 1, None, "b"), (7, 0, 20, None),
    ]  # fmt: skip
    assert found.column("event_id").to_pylist() == [1, 3, 4, 2]


def test_a_class_that_states_times_is_given_them() -> None:
    """Event and ingest time are in the batch, and what it states is what leaves."""
    node = node_of(lambda batch: rows(value=[1], _time=[9], event_time=[4], ingest_time=[6]), identity="value")
    instance = OperatorRuntime(node)
    found = pa.concat_tables(list(instance.advance([side(node, ingest_time=[6], **{TIME: [4]})], 9)))
    assert instance._class.given[0][0][0]["ingest_time"] == 6  # type: ignore[attr-defined]
    assert found.to_pylist() == [{"value": 1, "event_time": 4, "ingest_time": 6, TIME: 9}]


FAULTS: list[tuple[Callable[..., Any], str]] = [
    (lambda batch: [1], "must give a RecordBatch"),
    (lambda batch: rows(value=[1]), "gave no column _row"),
    (lambda batch: rows(_row=[0]), "gave no column value"),
    (lambda batch: rows(value=[1], _row=[None]), "_row has nulls"),
]


@pytest.mark.parametrize(("make", "message"), FAULTS)
def test_a_class_that_gives_something_else_is_named(make: Callable[..., Any], message: str) -> None:
    """The operator's name and what is wrong, in one line."""
    node = node_of(make)
    with pytest.raises(ValueError, match=message) as caught:
        list(OperatorRuntime(node).advance([side(node, **{TIME: [1]})], 1))
    assert "process 'process'" in str(caught.value)


@given(st.lists(st.integers(0, 20), max_size=60), st.integers(1, 10))
def test_pieces_never_part_rows_of_one_time(times: list[int], most: int) -> None:
    """They cover all rows once; there is always one."""
    sorted_times = np.sort(np.array(times, np.int64))
    found = list(pieces(sorted_times, most))
    assert [end for _, end in found[:-1]] == [start for start, _ in found[1:]]
    assert (found[0][0], found[-1][1]) == (0, len(times))
    assert all(sorted_times[end - 1] < sorted_times[end] for _, end in found[:-1])


@given(st.lists(st.integers(0, 5), max_size=30))
def test_ordinals_count_what_was_before(numbers: list[int]) -> None:
    """Against plain Python."""
    expected = [numbers[:place].count(number) for place, number in enumerate(numbers)]
    assert ordinals(np.array(numbers, np.int64)).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-5, 5)), max_size=30))
def test_order_is_the_same_for_numbers_and_for_other_ids(pairs: list[tuple[int, int]]) -> None:
    """NumPy sorts whole numbers, Arrow everything else."""
    times, ids = pa.array([time for time, _ in pairs], pa.int64()), pa.array([id_ for _, id_ in pairs], pa.int64())
    expected = sorted(pairs)
    for column in (ids, pa.compute.cast(ids, pa.float64())):
        found = in_order(pa.table({TIME: times, "id": column}), ["id"])
        assert list(zip(found.column(TIME).to_pylist(), found.column("id").to_pylist(), strict=True)) == expected
