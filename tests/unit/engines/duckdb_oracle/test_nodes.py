"""The oracle's answer of each node against a plain Python statement of its semantics, on small random inputs."""

from collections import Counter

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.schema import Schema, event_id_base
from streamgauge.dataflow.builder import hop, session, source, table, tumble, union
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.dataflow.nodes import Flow, Window
from streamgauge.engines.duckdb_oracle import lowering
from tests.unit.engines.duckdb_oracle.helpers_oracle import (
    KEYS,
    OPEN,
    TIMES,
    VALUES,
    WINDOWS,
    Row,
    ask,
    database,
    holds,
    register,
    starts,
)

__all__ = ["database"]
LEFT, RIGHT = Schema.from_types(k="int", v="int", text="string"), Schema.from_types(k="int", w="int")
A, B = source("a", LEFT), source("b", RIGHT)
KINDS = table("kinds", {"k": [0, 1], "kind": ["none", None]}, Schema.from_types(k="int", kind="string"))
B_ID = event_id_base(1, 0)

TEXTS = st.one_of(st.none(), st.sampled_from(["", "x", "x y", " x", "y x x"]))
LEFT_ROWS = st.lists(st.tuples(KEYS, VALUES, TEXTS, TIMES), max_size=12)
RIGHT_ROWS = st.lists(st.tuples(KEYS, VALUES, TIMES), max_size=12)


def answer(flow: Flow, a: list[Row], b: list[Row] | None = None, requested: list[Row] | None = None) -> Counter[Row]:
    """The rows of a flow with lineage."""
    register("a_rows", LEFT, a)
    register("b_rows", RIGHT, b or [], B_ID)
    traced, relations = with_lineage(flow), {"a": "a_rows", "b": "b_rows"}
    text = lowering.sql(traced, relations)
    if requested is not None:
        keys, times = pa.array([p[0] for p in requested], pa.string()), pa.array([p[1] for p in requested], pa.int64())
        OPEN[0].register("requested", pa.table({"word": keys, "event_time": times}))
        text = lowering.at_points(traced, relations, "requested")
    return Counter(ask(text))


def words(rows: list[Row]) -> list[Row]:
    """(word, row, its place, its number), as the flow below explodes them."""
    return [
        (word, row, place, number)
        for number, row in enumerate(rows)
        if row[2] is not None
        for place, word in enumerate(row[2].split(" "))
    ]


WORDS = A.explode(word="split(text, ' ')")


@given(rows=LEFT_ROWS)
def test_explode(rows: list[Row]) -> None:
    """One row for each element, told apart by its place; none for null."""
    wanted = [(*row[:3], word, row[3], row[3] + 7, n, place) for word, row, place, n in words(rows)]
    assert answer(WORDS.sink("out"), rows) == Counter(wanted)


@given(rows=LEFT_ROWS, requested=st.lists(st.tuples(st.sampled_from(["x", "y", ""]), TIMES), max_size=6))
def test_running_after_explode(rows: list[Row], requested: list[Row]) -> None:
    """At every event time of a word: all its rows up to and with that time, several of one event among them."""
    flow = WORDS.running(keys="word", n="count(*)", most="max(v)").sink("out")
    whole = {}
    for key, time in {(word, row[3]) for word, row, _, _ in words(rows)}:
        values = [row[1] for word, row, _, _ in words(rows) if word == key and row[3] <= time]
        most = max((value for value in values if value is not None), default=None)
        whole[key, time] = (key, len(values), most, time, time + 7)
    assert answer(flow, rows) == Counter(whole.values())
    assert answer(flow, rows, requested=requested) == Counter(
        whole[place] for place in set(requested) if place in whole
    )


@given(rows=LEFT_ROWS)
def test_lookup(rows: list[Row]) -> None:
    """The table's row of the same key; without one a row goes, or stays with nulls."""
    kinds = {0: "none", 1: None}
    found = [(*row[:3], kinds.get(row[0]), row[3], row[3] + 7, n) for n, row in enumerate(rows)]
    assert answer(A.lookup(KINDS, on="k", how="left").sink("out"), rows) == Counter(found)
    assert answer(A.lookup(KINDS, on="k").sink("out"), rows) == Counter(row for row in found if row[0] in kinds)


@given(a=LEFT_ROWS, b=RIGHT_ROWS)
def test_union_of_two_streams(a: list[Row], b: list[Row]) -> None:
    """All rows of both; their ids differ by themselves."""
    flow = union(A.select(k="k", n="v"), B.select(n="w", k="k").select(k="k", n="n")).sink("out")
    wanted = [(row[0], row[1], row[3], row[3] + 7, n) for n, row in enumerate(a)]
    wanted += [(row[0], row[1], row[2], row[2] + 7, B_ID + n) for n, row in enumerate(b)]
    assert answer(flow, a, b) == Counter(wanted)


@given(rows=LEFT_ROWS)
def test_union_of_one_stream_on_two_ways(rows: list[Row]) -> None:
    """An event that comes on both ways gives two rows, told apart by the way, and by the place where there is one."""
    flow = union(WORDS.select(k="k", x="word"), A.where("v > 0").select(k="k", x="text")).sink("out")
    wanted: list[Row] = [(row[0], word, row[3], row[3] + 7, n, place, 0) for word, row, place, n in words(rows)]
    wanted += [
        (row[0], row[2], row[3], row[3] + 7, n, None, 1)
        for n, row in enumerate(rows)
        if row[1] is not None and row[1] > 0
    ]
    assert answer(flow, rows) == Counter(wanted)


@given(rows=LEFT_ROWS, gap=st.integers(1, 12))
def test_session(rows: list[Row], gap: int) -> None:
    """Events of a key belong together until one is more than the gap after the one before."""
    flow = A.window(session(f"{gap}us"), keys="k").aggregate(n="count(*)", total="sum(v)").sink("out")
    wanted = []
    for key in {row[0] for row in rows}:
        mine = sorted((row for row in rows if row[0] == key), key=lambda row: row[3])
        sessions: list[list[Row]] = []
        for row in mine:
            if sessions and row[3] - sessions[-1][-1][3] <= gap:
                sessions[-1].append(row)
            else:
                sessions.append([row])
        for each in sessions:
            values = [row[1] for row in each if row[1] is not None]
            last = each[-1][3]
            wanted.append((key, each[0][3], last + gap, len(each), sum(values) if values else None, last, last + 7))
    assert answer(flow, rows) == Counter(wanted)


@given(rows=LEFT_ROWS, window=WINDOWS)
def test_distinct(rows: list[Row], window: Window) -> None:
    """The first event of each key, by time and then by id: of all, and of each window."""
    order = sorted(enumerate(rows), key=lambda pair: (pair[1][3], pair[0]))
    first = {row[0]: (*row, row[3] + 7, n) for n, row in reversed(order)}
    assert answer(A.distinct(keys="k").sink("out"), rows) == Counter(first.values())
    windowed: dict[Row, Row] = {}
    for n, row in reversed(order):
        for start in starts(window):
            if holds(window, start, row[3]):
                windowed[row[0], start] = (*row[:3], start, start + window.range_us, row[3], row[3] + 7, n)
    assert answer(A.distinct(keys="k", window=window).sink("out"), rows) == Counter(windowed.values())


@given(a=LEFT_ROWS, b=RIGHT_ROWS, bounds=st.tuples(st.integers(-9, 9), st.integers(-9, 9)))
def test_interval_join(a: list[Row], b: list[Row], bounds: tuple[int, int]) -> None:
    """Pairs of equal keys whose times lie within the bounds, both included."""
    earliest, latest = min(bounds), max(bounds)
    text = [f"{'-' if us < 0 else ''}{abs(us)}us" for us in (earliest, latest)]
    flow = A.interval_join(B, on="k", earliest=text[0], latest=text[1]).sink("out")
    wanted = [
        (*left[:3], right[1], max(left[3], right[2]), max(left[3], right[2]) + 7, i, B_ID + j)
        for i, left in enumerate(a)
        for j, right in enumerate(b)
        if left[0] is not None and left[0] == right[0] and earliest <= right[2] - left[3] <= latest
    ]
    assert answer(flow, a, b) == Counter(wanted)


@given(rows=LEFT_ROWS, n=st.integers(1, 4))
def test_top(rows: list[Row], n: int) -> None:
    """The greatest of each window; equal ones by key; nulls are not ranked, and all of them make its time."""
    flow = A.window(tumble("5us"), keys="k").aggregate(total="sum(v)").top(n, by="total", ties="k").sink("out")
    wanted = []
    for start in range(-30, 30, 5):
        inside = [row for row in rows if start <= row[3] < start + 5 and row[1] is not None]
        totals = {key: sum(row[1] for row in inside if row[0] == key) for key in {row[0] for row in inside}}
        best = sorted(totals, key=lambda key: (-totals[key], key is not None, key or 0))
        # a key's time is that of its last event, even one without a value
        last = max((row[3] for row in rows if start <= row[3] < start + 5 and row[0] in totals), default=0)
        wanted += [
            (start, start + 5, rank, key, totals[key], last, last + 7) for rank, key in enumerate(best[:n], start=1)
        ]
    assert answer(flow, rows) == Counter(wanted)


def test_hopping_windows_are_ranked_apart() -> None:
    """By hand: of each window and key its best word, the lesser word first where they are even."""
    ranked = (
        WORDS.window(hop("4us", "2us"), keys=("k", "word"))
        .aggregate(n="count(*)")
        .top(1, by="n", ties="word", keys="k")
        .sink("out")
    )
    assert answer(ranked, [(1, 0, "b a", 1), (1, 0, "b", 3), (2, 0, "z", 3)]) == Counter(
        [
            (1, -2, 2, 1, "a", 1, 1, 8),
            (1, 0, 4, 1, "b", 2, 3, 10),
            (2, 0, 4, 1, "z", 1, 3, 10),
            (1, 2, 6, 1, "b", 1, 3, 10),
            (2, 2, 6, 1, "z", 1, 3, 10),
        ]
    )
