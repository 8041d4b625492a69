"""Which processes hand their results on as blocks, and that every result comes to the bucket of its key; that answers
and counts stay right is seen on Spark (`tests/engine_conformance/spark_trials/test_whole_path.py`, with `spam_filter`).
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import Stream, flow, source, tumble
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.dataflow.nodes import Flow
from streamgauge.dataflow.operators.api import Processor
from streamgauge.engines.spark.lowering import arrow_blocks
from streamgauge.engines.spark.lowering.arrow_blocks import BLOCK, BUCKET, ROWS, TIME
from streamgauge.engines.spark.lowering.chaining import ChainSpec, chained_operators

FIELDS = Schema.from_types(k="int", s="string", d="double")
LINES, OTHERS = source("lines", FIELDS), source("others", FIELDS)


class Nothing(Processor):
    """Never called."""

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        raise NotImplementedError

    def snapshot(self) -> bytes:
        raise NotImplementedError

    def restore(self, state: bytes) -> None:
        raise NotImplementedError


def made(*streams: Stream, keys: str = "k", name: str, **more: Any) -> Stream:
    first, *others = streams
    return first.process(Nothing, *others, keys=keys, gives=FIELDS, name=name, **more)


FIRST = made(LINES, name="first")


def of(made_: Flow) -> set[str]:
    return {node.name for node in chained_operators([sink.input for sink in made_.sinks])}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (FIRST, set()),
        (made(FIRST, keys="s", name="second"), {"first"}),
        (made(made(FIRST, keys="s", name="second"), name="third").where("k > 1"), {"first", "second"}),
        (made(FIRST, keys="d", name="second"), set()),  # the bucket of a fraction is for Spark to tell
        (made(FIRST.select(k="k", s="s"), keys="s", name="second"), set()),
        (made(FIRST.where("k > 1"), name="second"), set()),
        (made(made(LINES, keys=(), name="stateless"), name="second"), set()),
        (made(FIRST, keys=(), name="stateless"), set()),
        (made(FIRST, made(OTHERS, name="other"), name="second"), set()),
        (made(FIRST, name="second", broadcast=OTHERS), set()),
        (FIRST.window(tumble("2s"), keys="k").aggregate(n="count(*)"), set()),
    ],
)
def test_who_hands_on(rows: Stream, expected: set[str]) -> None:
    """A keyed process, to one keyed process right behind it whose buckets Python can tell."""
    assert of(rows.sink("out")) == of(with_lineage(rows.sink("out"))) == expected


def test_a_process_that_two_take_hands_on_to_neither() -> None:
    """It would be done twice in one query."""
    second = made(FIRST, keys="s", name="second")
    third = made(FIRST, keys="s", name="third")
    assert of(flow(second.sink("one"), third.sink("other"))) == set()
    assert of(flow(second.sink("one"), FIRST.sink("other"))) == set()


def test_a_class_that_states_times_does_not_hand_on() -> None:
    """Its results come when the watermark does, and may be older than others of their block."""
    timed = LINES.process(Nothing, keys="k", gives=FIELDS, identity="k", name="first")
    assert of(made(timed, keys="s", name="second").sink("out")) == set()


NUMBERS, TEXTS = st.one_of(st.none(), st.integers(-5, 5)), st.one_of(st.none(), st.text(max_size=3))
KEYS = st.lists(st.tuples(NUMBERS, TEXTS), min_size=1)


@given(KEYS, st.integers(1, 9))
def test_every_result_comes_once_and_each_key_to_one_bucket(
    keys: list[tuple[int | None, str | None]], buckets: int
) -> None:
    """In their order within a bucket, with the columns that the next one takes, and counted."""
    numbers, texts = zip(*keys, strict=True)
    results = pa.table({
        "k": pa.array(numbers, pa.int32()), "s": pa.array(texts, pa.string()), "left out": pa.array(texts, pa.string()),
        "place": pa.array(range(len(keys))), TIME: pa.array(range(7, 7 + len(keys)), pa.int64()),
    })  # fmt: skip
    found = ChainSpec(("k", "s", "place", TIME), ("k", "s"), buckets).blocks(results)
    assert list(found.columns) == [BUCKET, TIME, BLOCK, ROWS]
    assert found[ROWS].sum() == len(keys)
    rows, bucket_of = [], dict[Any, int]()
    for bucket, time, block in zip(found[BUCKET], found[TIME], found[BLOCK], strict=True):
        opened = pa.ipc.open_stream(block).read_all()
        assert opened.column_names == ["k", "s", "place", TIME]
        assert 0 <= bucket < buckets
        assert time == max(opened.column(TIME).to_pylist())
        places = opened.column("place").to_pylist()
        assert places == sorted(places)
        rows += [(row["place"], (row["k"], row["s"])) for row in opened.to_pylist()]
        assert all(bucket_of.setdefault(keys[place], bucket) == bucket for place in places)
    assert len(rows) == len(keys)
    assert dict(rows) == dict(enumerate(keys))


def test_a_key_has_the_same_bucket_in_every_process() -> None:
    """Workers tell buckets apart from each other, and a restarted one as the one before it."""
    said = "import pyarrow as pa; from streamgauge.engines.spark.lowering import arrow_blocks as blocks; "
    said += "print(blocks.bucket_of([pa.chunked_array([['a', 'b', None, 'ä', 'ab']])], 97).tolist())"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    here = arrow_blocks.bucket_of([pa.chunked_array([["ab", "ä", None], ["b", "a"]])], 97).tolist()
    assert done.stdout.strip() == str(here[::-1])
    assert len(set(here)) > 1
