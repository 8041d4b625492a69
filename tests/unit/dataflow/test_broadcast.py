"""A broadcast edge: every instance of a keyed process meets all rows of one input, and what it is refused for."""

import itertools
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.conformance.cases import TOTALS_TRUTH, Totals, with_totals
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import source
from streamgauge.dataflow.describe import describe
from streamgauge.dataflow.lineage import identity, with_lineage
from streamgauge.dataflow.nodes import Flow
from streamgauge.dataflow.operators.api import INPUT, ROW, TIME
from streamgauge.engines.duckdb_oracle.engine import Oracle
from tests.unit.helpers_duckdb import duckdb_session
from tests.unit.helpers_refusals import assert_refused
from tests.unit.workloads.helpers_cuts import BOTH, END, in_batches, table

OWN = source("own", Schema.from_types(k="int", v="int"))
EVERYONES = source("everyones", Schema.from_types(w="int"))
FLOW = with_totals(OWN, EVERYONES).sink("out")
Sides = tuple[pa.Table, pa.Table]


def rows_of(first_id: int, times: list[int], **columns: list[Any]) -> pa.Table:
    """Events with lineage; ids count up from `first_id`."""
    ids = pa.array(range(first_id, first_id + len(times)), pa.int64())
    rows = table(list(zip(*columns.values(), strict=True)), times, **dict.fromkeys(columns, "int32"))
    rows = rows.drop_columns("event_id").append_column("ingest_time", rows["event_time"])
    return rows.append_column("event_id", ids)


def answer(flow: Flow, sides: Sides) -> list[dict[str, Any]]:
    """By event id."""
    actual = Oracle().answer(with_lineage(flow), dict(zip(("own", "everyones"), sides, strict=True)), duckdb_session())
    return actual.to_arrow_table().sort_by("event_id").to_pylist()


def in_instances(sides: Sides, instances: int, cuts: list[int]) -> list[dict[str, Any]]:
    """As an engine does it: each instance has the rows of its keys and all of the broadcast ones, batch by batch."""
    node: Any = with_lineage(FLOW).sink.input
    own, everyones = (side.append_column(TIME, side["event_time"]) for side in sides)
    results = []
    for number in range(instances):
        own_rows = own.filter(pa.array([key % instances == number for key in own["k"].to_pylist()], pa.bool_()))
        results.append(in_batches(node, [own_rows, everyones], [*cuts, END]))
    return pa.concat_tables(results).drop_columns(TIME).sort_by("event_id").to_pylist()


@BOTH
def test_worked_by_hand(variant: Any) -> None:
    """Of one time, own rows come before the broadcast ones; a result has its own row's times and id. A picture shows
    which input goes to all.
    """
    assert describe(FLOW)[2]["label"] == "Totals() by k, all of everyones to each instance"
    sides = rows_of(0, [1, 4, 4, 9], k=[1, 1, 2, 2], v=[5, 6, 7, 8]), rows_of(100, [3, 4, 20], w=[10, 1, 1000])
    assert [tuple(row.values()) for row in answer(variant(FLOW), sides)] == [
        (1, 5, 0, 1, 1, 0), (1, 6, 10, 4, 4, 1), (2, 7, 10, 4, 4, 2), (2, 8, 11, 9, 9, 3),
    ]  # fmt: skip
    assert identity(FLOW) == ("event_id",)


STEPS = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3)), max_size=25)


@given(STEPS, STEPS, st.integers(1, 4), st.lists(st.integers(0, 80), max_size=4))
def test_instances_and_batches_do_not_matter(
    own: list[tuple[int, int]], everyones: list[tuple[int, int]], instances: int, cuts: list[int]
) -> None:
    """However many instances share the keys, and wherever batches end, the answer is that of SQL over the whole."""
    times, others = ([*itertools.accumulate(step for _, step in steps)] for steps in (own, everyones))
    keys = [key for key, _ in own]
    sides = rows_of(0, times, k=keys, v=keys), rows_of(100, others, w=[weight for weight, _ in everyones])
    assert in_instances(sides, instances, cuts) == answer(FLOW, sides)


class OfAll(Totals):
    """Gives results of broadcast rows too."""

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        columns = [batch.column("k"), batch.column("v"), batch.column(INPUT), pa.array(range(batch.num_rows))]
        return pa.RecordBatch.from_arrays(columns, names=["k", "v", "total", ROW])


GIVES = Schema.from_types(k="int", v="int", total="bigint")


def test_a_result_of_a_broadcast_row_is_an_error() -> None:
    """Every instance would give it."""
    flow = OWN.process(OfAll, keys="k", reads=("v", "w"), gives=GIVES, broadcast=EVERYONES).sink("out")
    answer(flow, (rows_of(0, [1], k=[1], v=[1]), rows_of(100, [], w=[])))
    with pytest.raises(ValueError, match="gave a result for a row of its broadcast input"):
        answer(flow, (rows_of(0, [1], k=[1], v=[1]), rows_of(100, [2], w=[1])))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"keys": (), "truth": None}, "must have keys and no identity; got 'no keys'"),
        ({"identity": "k", "truth": None}, "must have keys and no identity; got 'an identity'"),
        ({"keys": "w"}, "key 'w' must be in every input"),
    ],
)
def test_what_it_is_refused_for(more: dict[str, Any], message: str) -> None:
    """When the flow is built."""
    given_ = {"keys": "k", "reads": ("k", "v", "w"), "gives": GIVES, "broadcast": EVERYONES, "truth": TOTALS_TRUTH}
    given_ |= more
    assert_refused(message, OWN.process, Totals, **given_)
