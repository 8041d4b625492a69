"""Columns of a user's may have any name: on Spark, in messages, and where answers are compared."""

import csv
import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

from streamgauge.core.errors import InputError
from streamgauge.core.schema import EVENT_ID, EVENT_TIME, INGEST_TIME, Schema
from streamgauge.dataflow.builder import source, tumble
from streamgauge.dataflow.nodes import Source, UserJobNode
from streamgauge.diff import compare as answers
from streamgauge.engines.spark.io.event_batching import pack, unpack
from streamgauge.engines.spark.io.kafka import messages, types_of
from streamgauge.engines.spark.lowering.dataframe import Lowering
from streamgauge.engines.spark.user_job.pyspark_job import PySparkJob
from streamgauge.jobs import Integer, job, stream
from streamgauge.loadgen.fields import StreamSpec
from streamgauge.loadgen.replay.fit_sample import fit
from streamgauge.transports.kafka.encodings.avro import Avro
from streamgauge.transports.kafka.encodings.json import Json
from streamgauge.transports.kafka.result_messages import table_of
from streamgauge.user_workloads.reference import job_columns
from streamgauge.verification.user_job_rows import COPY, expect, identity, numbered

NAMES = [
    "fare.amount ($)", "Trip ID", "a b/c", 'said "yes"', "it's", "tick`tick", "`quoted`", "Größe", "数", "select", "*",
    "1st", "a,b;c", "{x}", "x=1", "back\\slash", "50 %", "[0]", "(n)", "a..b", "input.n", "_place", "place", "-",
]  # fmt: skip
ROWS = 3
ANY = st.text(st.sampled_from("aB1 .`\"'ß$()[]{}%,;:=\\/*-_數"), min_size=1, max_size=6).filter(
    lambda name: re.search("[aB`ß數]", name)
)
DISTINCT = st.lists(ANY, min_size=1, max_size=5, unique_by=lambda name: name.strip().lower())


def values_of(name: str) -> list[int]:
    return [100 * NAMES.index(name) + row for row in range(ROWS)]


def batch_of(names: list[str], **more: list[int]) -> pa.RecordBatch:
    columns = {name: pa.array(values_of(name), pa.int32()) for name in names}
    columns |= {name: pa.array(values, pa.int64()) for name, values in more.items()}
    return pa.RecordBatch.from_pydict(columns)


LINEAGE = {EVENT_TIME: [0, 1_000_000, 2_000_000], INGEST_TIME: [5, 5, 5], EVENT_ID: [1, 2, 3]}


def rows_of(frame: Any) -> list[dict[str, Any]]:
    return sorted((row.asDict() for row in frame.collect()), key=lambda row: row[EVENT_TIME])


@pytest.mark.spark
def test_a_users_columns_go_through_spark(spark: Any) -> None:
    """Out of bundles, through a function that keeps a window, to messages and back."""
    batch = batch_of(NAMES, **LINEAGE)
    frame = unpack(spark.createDataFrame(pa.Table.from_batches(pack([batch]))))
    whole = UserJobNode((Source("trips", Schema(())),), ("timestamp",), "my_job.py", "whole")
    window = F.window("timestamp", "5 seconds")
    windowed = PySparkJob(whole, lambda _, inputs: inputs["trips"].withColumn("window", window))
    found = windowed.batch(spark, [frame]).drop("timestamp")
    assert {*NAMES, "window_start", "window_end"} <= {*found.columns}
    expected = batch.to_pylist()
    assert [{name: row[name] for name in batch.schema.names} for row in rows_of(found)] == expected
    types = types_of(found, ["results"])
    sent = [bytes(row.value, "utf-8") for row in messages(found, types, "q0", 1).collect()]
    came = table_of(sent, types, [9] * len(sent))["results"].select(batch.schema.names).sort_by(EVENT_TIME)
    assert came.to_pylist() == expected


@pytest.mark.spark
def test_a_flows_columns_go_through_spark(spark: Any) -> None:
    """Keys and fields of odd names, through each lowering that has either."""
    key, field = "tick`tick", "fare.amount ($)"
    taken = {"of.it": "sum(`fare.amount ($)`)"}
    rows = source("trips", Schema.from_types(**{key: "int", field: "int"}))
    batch = batch_of([key, field], **{EVENT_TIME: LINEAGE[EVENT_TIME]})
    read = lambda _: spark.createDataFrame(pa.Table.from_batches([batch]))  # noqa: E731
    for stream_, name in (
        (rows.window(tumble("5s"), keys=key).aggregate(taken), "of.it"),
        (rows.running(taken, keys=key), "of.it"),
        (rows.distinct(keys=key), field),
        (rows.distinct(keys=key, window=tumble("5s")), field),
    ):
        flow = stream_.sink("out")
        frame = Lowering(read, read, {}, 1).lower(flow.sink.input)
        assert sorted(row[name] for row in frame.select(F.col("*")).collect()) == values_of(field)


@pytest.mark.spark
def test_events_in_messages_are_read_by_spark(spark: Any) -> None:
    """As JSON objects, whatever their columns are called."""
    layout = Json(tuple((name, "int") for name in NAMES))
    batch = batch_of(NAMES)
    values = spark.createDataFrame([(each,) for each in layout.messages(layout.encode(batch))], "value binary")
    opened = values.select(F.expr(layout.opened("value")).alias("event"))
    texts = layout.expressions("event")
    found = opened.select(*[F.expr(texts[name]).alias(name) for name in NAMES]).collect()
    assert sorted((row.asDict() for row in found), key=lambda row: row[NAMES[0]]) == batch.to_pylist()


def test_avro_names_what_it_cannot_spell_by_number() -> None:
    """Other names stay."""
    names = lambda *columns: [  # noqa: E731
        field["name"] for field in json.loads(Avro(tuple((name, "int") for name in columns)).schema)["fields"]
    ]
    assert names("user_id", "n") == ["user_id", "n"]
    assert names("user_id", "fare.amount ($)") == ["column_0", "column_1"]
    assert Avro((("it's", "int"),)).expressions("event") == {"it's": "event.column_0"}


@given(DISTINCT.filter(lambda names: "".join(names).count(";") < 2))
@example(NAMES)
@settings(deadline=None, max_examples=30)
def test_a_sample_keeps_its_names(names: list[str]) -> None:
    """Those of a CSV, without the blanks around them. DuckDB takes several semicolons for delimiters."""
    stripped = [name.strip() for name in names]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "sample.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL)
            writer.writerows([["t", *names], *([row, *range(1, 1 + len(names))] for row in range(ROWS))])
        assert [field.name for field in fit(path, "t", named=True).fields] == stripped


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_names_that_spark_takes_for_one_are_refused(tmp_path: Path, kind: str) -> None:
    """DuckDB would rename the second."""
    rows = pa.table({"fee.x": [1, 2], "Fee.X": [3, 4], "other": [5, 6]})
    path = tmp_path / f"sample.{kind}"
    if kind == "parquet":
        pq.write_table(rows, path)
    elif kind == "csv":
        path.write_text("fee.x,Fee.X,other\n1,3,5\n2,4,6\n")
    else:
        path.write_text("\n".join(json.dumps(row) for row in rows.to_pylist()))
    with pytest.raises(InputError, match=r"differ by more than case, .*'Fee.X, fee.x'\n  try: rename one of them"):
        fit(path, "timestamp")


@given(DISTINCT)
@example(NAMES)
@settings(deadline=None, max_examples=30)
def test_references_and_answers_take_any_name(names: list[str]) -> None:
    """A reference's columns are found, tell rows apart, and are compared; a wrong value is shown by its name."""

    @job(stream("trips", *(Integer(name, 0, 9) for name in names)), reference="SELECT * FROM trips", keys=names[0])
    def whole(spark: Any, inputs: Any) -> Any:
        return inputs["trips"]

    described = whole.__streamgauge__  # type: ignore[attr-defined]
    streams = (StreamSpec("trips", described.inputs[0].fields, 1.0),)
    assert {*names} <= {*dict(job_columns(Path("my_job.py"), described, streams))}
    right = pa.table({**{name: [1, 2, 3] for name in names}, EVENT_TIME: [10, 20, 30]})
    wrong = right.set_column(len(names) - 1, names[-1], [[1, 2, 4]]) if len(names) > 1 else right
    with duckdb.connect() as connection:
        connection.register("_result_rows", wrong)
        kinds = expect(connection, connection.from_arrow(right))
        ids, unique = identity(connection, kinds, (names[0],))
        assert (ids, unique) == ((names[0],), True)
        assert connection.sql(numbered("_expected_rows", ids, kinds, kinds, False)).columns == [
            *names,
            EVENT_TIME,
            COPY,
        ]
        found = answers.compare(connection, "_expected_rows", "_result_rows", ids, names[1:], "true")
    assert found.wrong == (1 if len(names) > 1 else 0)
    assert found.matched == ROWS - found.wrong
