"""Flows drawn at random from whatever the builder accepts, with names that its rewrites may want for themselves."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from streamgauge.core.errors import InputError
from streamgauge.core.schema import Schema
from streamgauge.core.units import backquote
from streamgauge.dataflow.builder import Stream, count, flow, session, source, table, union
from streamgauge.dataflow.nodes import Flow, RunningAggregate, Window
from streamgauge.dataflow.operators.api import ROW, Processor

NAMES = (
    "k", "v", "rank", "window_start", "window_end", "Window_End", "event_ordinal_2", "event_branch_2",
    "left_event_time", "right_ingest_time", "id_k", "a_event_id", "order", "Odd name",
)  # fmt: skip
STREAMS = (
    source("a", Schema.from_types(k="int", v="int", text="string", bits="binary", at="timestamp")),
    source(
        "a b",
        Schema.from_types(**{"k": "string", "Odd name": "int", "order": "bigint", "Rank": "int", "real": "double"}),
    ),
    source("c", Schema.from_types(k="int", left_event_time="bigint", event_ordinal_2="boolean", id_k="int")),
)
TABLES = tuple(
    table("packs", {"k": [1, 2], name: ["x", None]}, Schema.from_types(**{"k": "int", name: "string"}))
    for name in ("rank", "window_start", "v", "id_k")
)
WINDOWS = st.tuples(st.integers(1, 10**13), st.integers(1, 10**13)).map(lambda two: Window(max(two), min(two)))


class PassThrough(Processor):
    """Gives rows as they are; it is never run."""

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        return batch.append_column(ROW, pa.array(range(batch.num_rows)))

    def snapshot(self) -> bytes:
        return b""

    def restore(self, state: bytes) -> None:
        return


Draw = Any
"""Hypothesis' function that draws from a strategy."""


def _column(draw: Draw, stream: Stream) -> str:
    chosen: str = draw(st.sampled_from(list(stream.columns)))
    return chosen


def _name(draw: Draw) -> str:
    chosen: str = draw(st.sampled_from(NAMES))
    return chosen


def _keys(draw: Draw, stream: Stream) -> list[str]:
    return draw(st.lists(st.sampled_from(list(stream.columns)), min_size=1, max_size=2, unique=True))


def _where(draw: Draw, stream: Stream) -> Stream:
    return stream.where(f"{backquote(_column(draw, stream))} is not null or {draw(st.integers(0, 99))} > 7")


def _select(draw: Draw, stream: Stream) -> Stream:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique_by=str.lower))
    texts = st.sampled_from(["1", "'x'", *map(backquote, stream.columns)])
    return stream.select({name: draw(texts) for name in names})


def _explode(draw: Draw, stream: Stream) -> Stream:
    column = backquote(_column(draw, stream))
    return stream.explode({_name(draw): draw(st.sampled_from([f"array({column})", "array(1, 2)"]))})


def _lookup(draw: Draw, stream: Stream) -> Stream:
    return stream.lookup(draw(st.sampled_from(TABLES)), on="k", how=draw(st.sampled_from(["inner", "left"])))


def _aggregate(draw: Draw, stream: Stream) -> Stream:
    numbers = [name for name, kind in stream.columns.items() if kind in ("int", "bigint", "double")]
    texts = ["count(*)", *(f"max({backquote(name)})" for name in numbers)]
    window = draw(st.one_of(WINDOWS, st.integers(1, 10**9).map(lambda gap: session(gap / 1e6)), st.just(count(3, 1))))
    return stream.window(window, keys=_keys(draw, stream)).aggregate({_name(draw): draw(st.sampled_from(texts))})


def _distinct(draw: Draw, stream: Stream) -> Stream:
    return stream.distinct(keys=_keys(draw, stream), window=draw(st.none() | WINDOWS))


def _top(draw: Draw, stream: Stream) -> Stream:
    keys = draw(st.sampled_from([(), tuple(_keys(draw, stream))]))
    return stream.top(2, by=backquote(_column(draw, stream)), keys=keys)


def _process(draw: Draw, stream: Stream) -> Stream:
    keys = draw(st.sampled_from([(), tuple(_keys(draw, stream))]))
    gives = Schema.from_types(**{_name(draw): "bigint"})
    return stream.process(PassThrough, keys=keys, gives=gives, several=draw(st.booleans()))


def _join(draw: Draw, stream: Stream) -> Stream:
    other = _walk(draw, draw(st.sampled_from(STREAMS)), 2)
    keys = draw(st.sampled_from(sorted(set(stream.columns) & set(other.columns)) or ["k"]))
    if draw(st.booleans()):
        return stream.join(other, window=draw(WINDOWS), on=keys)
    return stream.interval_join(other, on=keys, latest="1s")


def _union(draw: Draw, stream: Stream) -> Stream:
    if draw(st.booleans()):
        return union(stream, _where(draw, stream))
    other, name = _walk(draw, draw(st.sampled_from(STREAMS)), 2), _name(draw)
    return union(stream.select({name: "1"}), other.select({name: "2"}))


STEPS: tuple[Callable[[Draw, Stream], Stream], ...] = (
    _where, _select, _select, _explode, _lookup, _aggregate, _aggregate, _distinct, _distinct, _top, _process, _join,
    _union,
)  # fmt: skip


def _walk(draw: Draw, stream: Stream, most: int) -> Stream:
    """Some steps on; one that the builder refuses is left out."""
    for step in draw(st.lists(st.sampled_from(STEPS), max_size=most)):
        try:
            stream = step(draw, stream)
        except InputError:
            continue
    return stream


@st.composite
def flows(draw: st.DrawFn, most: int = 5) -> Flow:
    """One or two sinks, each after some random steps from a shared start."""
    start = _walk(draw, draw(st.sampled_from(STREAMS)), most)
    parts = []
    for number in range(draw(st.integers(1, 2))):
        end = _walk(draw, start, 2)
        try:
            ended = end.running(keys=_keys(draw, end), n="count(*)") if draw(st.integers(0, 4)) == 0 else end
            parts.append(ended.sink(f"sink_{number}"))
        except InputError:
            arrays = [name for name, kind in end.columns.items() if kind.startswith("array")]
            columns = {name: backquote(name) for name in end.columns if name not in arrays}
            parts.append((end.select(columns) if arrays and not isinstance(end.node, RunningAggregate) else end)
                         .sink(f"sink_{number}"))  # fmt: skip
    return flow(*parts)
