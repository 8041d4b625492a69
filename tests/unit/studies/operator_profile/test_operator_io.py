"""What the reference counts of each operator, on flows worked by hand."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.config.experiment import build
from streamgauge.core.clock import US
from streamgauge.core.schema import EVENT_TIME, Schema
from streamgauge.dataflow import graph
from streamgauge.dataflow.builder import Stream, source, tumble
from streamgauge.dataflow.builder import flow as flow_of
from streamgauge.dataflow.nodes import Flow, Source
from streamgauge.dataflow.operators.api import ROW, Processor
from streamgauge.preflight.settings_checks import check
from streamgauge.studies.operator_profile.operator_io import OperatorIO, Span, materialise, write_slices
from streamgauge.workloads.dspbench.text.word_count import WORDS

SPAN = Span(0, 20, 10)
TEXTS = source("lines", Schema.from_types(text="string"))
NUMBERS = source("numbers", Schema.from_types(key="int", value="int"))


class Given:
    """A plan whose events are given: stream name to its rows, with event times."""

    partitions = 1

    def __init__(self, **rows: pa.Table) -> None:
        self.streams = tuple(SimpleNamespace(name=name) for name in rows)
        self._rows = list(rows.values())

    def number_of(self, name: str) -> int:
        return [stream.name for stream in self.streams].index(name)

    def count_before(self, stream: int, partition: int, time_us: int) -> int:
        return int((self._rows[stream][EVENT_TIME].to_numpy() < time_us).sum())

    def batch(self, stream: int, partition: int, first: int, last: int, columns: Sequence[str]) -> pa.RecordBatch:
        rows = self._rows[stream].select(list(columns)).slice(first, last - first).combine_chunks()
        return pa.RecordBatch.from_arrays([column.combine_chunks() for column in rows.columns], names=list(columns))


def numbers(keys: Sequence[int | None], values: list[int | None], times: list[int]) -> pa.Table:
    return pa.table({"key": pa.array(keys, pa.int32()), "value": pa.array(values, pa.int32()), EVENT_TIME: times})


@pytest.fixture
def connection() -> Iterator[Any]:
    with duckdb.connect() as made:
        yield made


def counted(connection: Any, flow: Stream | Flow, plan: Any, span: Span = SPAN) -> dict[str, OperatorIO]:
    flow = flow.sink("out") if isinstance(flow, Stream) else flow
    return {one.node.name: one for one in materialise(connection, flow, plan, span)}


LINES = pa.table({"text": ["a b", "a", "b b", ""], EVENT_TIME: [0, 5, 10, 15]})


def test_word_count_by_hand(connection: Any) -> None:
    """Five words of four lines; updates: a and b in the first slice, b in the second.

    Bytes. Lines: offsets of 4 and 3 + 1 + 3 + 0 letters. Words beside their lines: 8 of offsets each, 13 letters of
    lines, 5 of words. Updates: 4 + 1 of the word, 8 of the count.
    """
    flow = TEXTS.explode(word=WORDS, name="splitter").running(keys="word", n="count(*)", name="counter")
    rows = counted(connection, flow, Given(lines=LINES))
    lines, splitter, counter = (rows[name] for name in ("lines", "splitter", "counter"))
    assert [(one.rows_in, one.rows_out, one.selectivity, one.tuple_bytes) for one in (lines, splitter, counter)] == [
        ((), 4, None, (16 + 7) / 4),
        ((4,), 5, 1.25, (40 + 13 + 5) / 5),
        ((5,), 3, 0.6, 13.0),
    ]
    assert (splitter.rule, counter.rule) == ("rows", "updates")
    updates = connection.execute('SELECT word, n FROM "rows_of_counter" ORDER BY word, n').fetchall()
    assert updates == [("a", 2), ("b", 1), ("b", 3)]


@pytest.mark.parametrize(
    ("keys", "times", "updates"),
    [
        # The mean of 1 and 3 in the first slice, then of 1, 3 and 5.
        ([7, 7, 7], [0, 9, 10], [(7, 2.0), (7, 3.0)]),
        # All rows without a key are one key.
        ([None, None, 7], [0, 9, 10], [(None, 2.0), (7, 5.0)]),
    ],
)
def test_an_average_has_the_same_updates(connection: Any, keys: Any, times: list[int], updates: Any) -> None:
    """What cannot be joined from parts is computed another way."""
    flow = NUMBERS.running(keys="key", mean="avg(value)", name="mean")
    assert counted(connection, flow, Given(numbers=numbers(keys, [1, 3, 5], times)))["mean"].rows_out == 2
    assert connection.execute('SELECT * FROM "rows_of_mean" ORDER BY mean').fetchall() == updates


def test_rows_outside_the_span_are_not_there(connection: Any) -> None:
    """Its end is not in it; an operator that nothing reaches has no selectivity and no size."""
    flow = NUMBERS.where("value > 100", name="dear").select(value="value", name="value")
    rows = counted(connection, flow, Given(numbers=numbers([1] * 3, [1, 2, 101], [0, 19, 20])))
    assert (rows["numbers"].rows_out, rows["dear"].rows_out, rows["dear"].selectivity) == (2, 0, 0.0)
    assert (rows["value"].selectivity, rows["value"].tuple_bytes) == (None, None)


def test_both_inputs_are_counted(connection: Any) -> None:
    """A union gives all rows of both; a self-join reads one table twice; open windows give what they hold."""
    dear = NUMBERS.where("value > 1", name="dear")
    both = dear.union(NUMBERS.where("key = 1", name="ours"), name="both").select(key="key", name="keys")
    joined = dear.select(key="key", name="left").join(
        dear.select(key="key", other="value", name="right"), window=tumble(1), on="key", name="join"
    )
    flow = flow_of(both.sink("both"), joined.sink("joined"))
    rows = counted(connection, flow, Given(numbers=numbers([1, 1, 2], [1, 2, 3], [0, 1, 2])))
    assert (rows["both"].rows_in, rows["both"].rows_out) == ((2, 2), 4)
    assert (rows["join"].rows_in, rows["join"].rows_out, rows["join"].selectivity) == ((2, 2), 2, 0.5)


def test_the_first_of_all_is_so_over_all_slices(connection: Any) -> None:
    """State is not forgotten between slices: key 1 comes in both, and counts once."""
    flow = NUMBERS.distinct(keys="key", name="first")
    rows = counted(connection, flow, Given(numbers=numbers([1, 2, 1], [1, 1, 1], [0, 5, 15])))
    assert (rows["first"].rows_in, rows["first"].rows_out) == ((3,), 2)


def test_arrays_go_with_what_reads_them(connection: Any) -> None:
    """No source has an array, so the operator after it is cut before it; its own figures stay its own.

    Bytes of the array's row: 4 of its offset, and of each of its words 4 and its letters.
    """
    words = TEXTS.select(words="split(text, ' ')", name="words").explode(word="words", name="each")
    rows = counted(connection, words.select(word="word", name="word"), Given(lines=LINES.slice(0, 2)))
    assert rows["words"].tuple_bytes == (2 * 4 + 3 * 4 + 3) / 2
    assert [(rows[name].rows_in, rows[name].rows_out) for name in ("each", "word")] == [((2,), 3), ((3,), 3)]
    assert [node.name for node in graph.walk(rows["word"].isolated) if isinstance(node, Source)] == ["rows_of_lines"]


@pytest.mark.parametrize(("type_", "values", "size"), [
    ("int", [1, 1], 4), ("bigint", [1, 1], 8), ("double", [1.0, 1.0], 8), ("boolean", [True, True], 1 / 8),
    ("string", ["äb", "äb"], 4 + 3), ("binary", [b"abc", b"abc"], 4 + 3), ("string", ["abc", None], (8 + 3) / 2),
])  # fmt: skip
def test_bytes_of_each_type(connection: Any, type_: str, values: list[Any], size: float) -> None:
    """As Arrow has them; letters count by their bytes, and a null text takes its offset alone."""
    kinds = {"int": pa.int32(), "binary": pa.binary()}
    rows = pa.table({"v": pa.array(values, kinds.get(type_)), EVENT_TIME: [0, 1]})
    flow = source("s", Schema.from_types(v=type_)).sink("out")
    assert counted(connection, flow, Given(s=rows))["s"].tuple_bytes == size


class Even(Processor):
    """Keeps rows whose value is even."""

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        rows = np.flatnonzero(batch.column("value").to_numpy() % 2 == 0)
        return pa.RecordBatch.from_arrays([batch.column("value").take(pa.array(rows)), pa.array(rows)], ["value", ROW])

    def snapshot(self) -> bytes:
        return b""

    def restore(self, state: bytes) -> None:
        pass


def even(keys: str | tuple[str, ...], truth: str | None = None) -> Stream:
    return NUMBERS.process(Even, keys=keys, gives=Schema.from_types(value="int"), truth=truth, name="even")


@pytest.mark.parametrize("truth", [None, "SELECT value, _row FROM input WHERE value % 2 = 0"])
def test_a_class_is_counted_by_its_truth_or_by_itself(connection: Any, truth: str | None) -> None:
    """Both give the two even rows of three."""
    rows = counted(connection, even("key", truth), Given(numbers=numbers([1] * 3, [2, 3, 4], [0, 1, 2])))
    assert (rows["even"].rows_out, rows["even"].tuple_bytes) == (2, 4.0)


def parts_of(folders: dict[str, Path], source: str = "numbers") -> dict[int, list[int]]:
    """Number of a part to the event times of its rows, as they lie there."""
    paths = sorted(folders[f"rows_of_{source}"].glob("*/*.parquet"))
    return {
        int(path.parent.name.partition("=")[2]): pq.ParquetFile(path).read()[EVENT_TIME].to_pylist() for path in paths
    }


def test_slices_have_equal_numbers_of_rows_in_order(connection: Any, tmp_path: Path) -> None:
    """Ten rows in three parts, in the order of time as a stream would bring them, whatever order the reference found
    them in.
    """
    flow = NUMBERS.window(tumble(1), keys="key").aggregate(n="count(*)", name="n")
    rows = counted(connection, flow, Given(numbers=numbers([1] * 10, [1] * 10, [3, 0, 19, 0, 1, 0, 4, 0, 2, 0])))
    folders = write_slices(connection, rows["n"], tmp_path, 3)
    assert list(folders) == ["rows_of_numbers"]
    assert parts_of(folders) == {0: [0, 0, 0, 0], 1: [0, 1, 2], 2: [3, 4, 19]}


def test_slices_hold_what_is_read(connection: Any, tmp_path: Path) -> None:
    """A column that the operator does not read would be read for nothing in the run that is taken off."""
    rows = counted(connection, NUMBERS.select(value="value", name="value"), Given(numbers=numbers([1], [2], [0])))
    (folder,) = write_slices(connection, rows["value"], tmp_path, 1).values()
    (file,) = folder.glob("*/*.parquet")
    assert pq.ParquetFile(file).schema_arrow.names == ["value"]


def test_a_ranking_gets_the_ends_of_its_windows(connection: Any, tmp_path: Path) -> None:
    """It ranks within them, and no column that it reads has them: two windows of a second, of two keys each."""
    windows = NUMBERS.window(tumble(1), keys="key").aggregate(n="count(*)", name="n")
    flow = windows.top(1, by="n", name="top").sink("out")
    plan = Given(numbers=numbers([1, 2, 1, 2], [1] * 4, [0, 1, US, US + 1]))
    rows = counted(connection, flow, plan, Span(0, 2 * US, US))
    parts = parts_of(write_slices(connection, rows["top"], tmp_path, 1), "n")
    assert parts == {0: [US - 1, US - 1, 2 * US - 1, 2 * US - 1]}


def test_both_inputs_are_cut_at_the_same_times(connection: Any, tmp_path: Path) -> None:
    """Parts are of both sides' rows together, or pairs would be torn apart: 2 and 4 rows in two parts."""
    other = source("others", Schema.from_types(key="int"))
    flow = NUMBERS.join(other, window=tumble(1), on="key", name="join").sink("out")
    ours = numbers([1, 1], [1, 1], [0, 10])
    theirs = pa.table({"key": pa.array([1] * 4, pa.int32()), EVENT_TIME: [1, 2, 11, 12]})
    rows = counted(connection, flow, Given(numbers=ours, others=theirs))
    folders = write_slices(connection, rows["join"], tmp_path, 2)
    assert [parts_of(folders, name) for name in ("numbers", "others")] == [
        {0: [0], 1: [10]}, {0: [1, 2], 1: [11, 12]},
    ]  # fmt: skip


def test_a_keyed_process_gets_rows_of_one_time_together(connection: Any, tmp_path: Path) -> None:
    """It is promised that; a stateless one is not."""
    keyed = counted(connection, even("key"), Given(numbers=numbers([1] * 6, [2] * 6, [0, 0, 0, 0, 5, 6])))["even"]
    assert parts_of(write_slices(connection, keyed, tmp_path, 3)) == {0: [0, 0, 0, 0], 2: [5, 6]}


def test_a_generated_input_is_counted_as_plain_python_does(connection: Any) -> None:
    """Word Count over its own generator: ten words a line, and as many updates as a slice has words."""
    resolved = check(build({"command": "generate", "workload": "word_count", "load": {"rate": 1000, "generators": 1}}))
    span = Span(0, 2 * US, US // 4)
    plan = resolved.plan(0, 1000.0, 2.0)
    rows = counted(connection, resolved.flow, plan, span)
    events = plan.batch(0, 0, 0, plan.count_before(0, 0, span.end_us))
    words = Counter(
        (time // span.slice_us, word)
        for text, time in zip(events["text"].to_pylist(), events[EVENT_TIME].to_pylist(), strict=True)
        for word in text.split()
    )
    counter = rows["counter"]
    assert rows["splitter"].selectivity == 10.0
    assert (counter.rows_in, counter.rows_out) == ((sum(words.values()),), len(words))
