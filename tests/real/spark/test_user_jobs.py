"""Own jobs on a real Spark: the examples verified, wrong jobs caught and named, bad ones refused before measuring."""

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import build
from streamgauge.core.errors import JobError
from streamgauge.harness.start_processes import TestBed
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.settings_checks import check
from streamgauge.results.run import Result, Verification
from streamgauge.trial.conductor import TrialConductor
from streamgauge.trial.policies import JudgedTrial
from tests.helpers_broker_trials import check_results, check_right, running
from tests.helpers_verdicts import sentence_against

pytestmark = pytest.mark.spark

EXAMPLES = Path(__file__).parents[3] / "examples"
RATE, DURATION_S = 4000.0, 5.0
LONGER_S = 20.0
"""Spark drops what is late from the second batch on, and a fresh one begins with few and long ones."""
HEAD = """
from pyspark.sql import functions as F
from streamgauge.jobs import Integer, Key, job, stream

PURCHASES = stream("purchases", Key("user_id", 1000), Key("pack", 20), Integer("price", 1, 100),
                   Integer("delay", 0, 999))
"""


@contextmanager
def started(root: Path, file: Path, duration_s: float = DURATION_S) -> Iterator[tuple[ResolvedExperiment, TestBed]]:
    load = {"rate": RATE, "duration": duration_s, "warmup": "3s", "generators": 2}
    resolved = check(build({"workload": str(file), "load": load, "out": str(root)}))
    with running(resolved, root / "testbed") as testbed:
        yield resolved, testbed


def result_of(root: Path, file: Path, duration_s: float = DURATION_S) -> Result:
    """A short trial of a job, conducted and verified."""
    with started(root, file, duration_s) as (resolved, testbed):
        folder = RunFolder.create(root, str(file), "spark", datetime.now(UTC))
        settings = JudgedTrial(resolved, RATE, fresh=True, duration_s=duration_s, may_extend=False, keep_results=True)
        return TrialConductor(resolved, testbed).run(folder, settings).result


def trial_of(root: Path, body: str, duration_s: float = DURATION_S) -> Result:
    file = root / "wrong_job.py"
    file.write_text(textwrap.dedent(HEAD) + textwrap.dedent(body))
    return result_of(root, file, duration_s)


def answers_of(root: Path, body: str) -> Verification:
    found = trial_of(root, body).verification
    assert found is not None
    return found


def caught(result: Result, independent: bool, *kinds: str, besides: tuple[str, ...] = ()) -> Verification:
    """The answers, which have these faults, and perhaps some `besides`: each is named, and the rate is not called
    sustained.
    """
    found = result.verification
    assert found is not None
    assert found.independent == independent
    faults = {name: getattr(found, name) for name in ("missing", "extra", "duplicate", "wrong", "late")}
    assert {name for name, count in faults.items() if count} - {*besides} == {*kinds}, (faults, found.examples)
    sentence = sentence_against(result.verdict, "answers")
    for kind in kinds:
        assert f"{faults[kind]:,} {kind}" in sentence
    return found


# (example, whether its reference is its own, fewest results)
@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "independent", "rows_least"), [("enrich", False, 24_000), ("revenue", True, 700), ("rewards", True, 200)]
)
def test_each_example_is_verified(tmp_path: Path, name: str, independent: bool, rows_least: int) -> None:
    """The three files of examples/, as they stand."""
    result = result_of(tmp_path, EXAMPLES / f"{name}.py")
    check_right(result.verification, rows_least, independent)
    assert result.workload == name
    assert result.latency.event_time_us is not None
    assert result.latency.event_time_us.count > 0
    assert (result.latency.closing_delay_us is not None) == (name == "revenue")
    assert next(check.state for check in result.verdict.checks if check.name == "answers") == "ok"


@pytest.mark.long
def test_updates_are_compared_at_batches_ends(tmp_path: Path) -> None:
    """A running count in update mode: right in batch too, and at moments on the way."""
    body = """
    @job(PURCHASES, mode="update", keys="pack")
    def counts(spark, inputs):
        return inputs["purchases"].groupBy("pack").agg(F.count("*").alias("n"), F.max("event_time").alias("event_time"))
    """
    found = answers_of(tmp_path, body)
    check_right(found, 20, independent=False)
    assert "last values of pack at" in found.sentence


FAULTS = """
import pyarrow as pa
from pyspark import TaskContext

def in_stream():
    return TaskContext.get().getLocalProperty("streaming.sql.batchId") is not None

def again(batches):
    for batch in batches:
        yield from [batch, batch] if in_stream() else [batch]

def one_in_ten_thousand_less(batches):
    for batch in batches:
        kept = [number % 10000 != 7 for number in batch.column("event_id").to_pylist()]
        yield batch.filter(pa.array(kept)) if in_stream() else batch
"""


def test_rows_dropped_doubled_and_leaked_are_named_each(tmp_path: Path) -> None:
    """One job with three faults, told apart: one row in ten thousand dropped, micro-batches counted twice, and of the
    rows that are 0.9 s late or more, which the rule drops, one in a hundred let through.
    """
    body = """
    @job(PURCHASES, reach="0s", reference="SELECT delay, event_time, event_id FROM purchases WHERE delay < 900")
    def faulty(spark, inputs):
        rows = inputs["purchases"].select("delay", "event_time", "event_id")
        kept = rows.where("delay < 900 OR event_id % 100 = 0").mapInArrow(one_in_ten_thousand_less, rows.schema)
        return kept.mapInArrow(again, rows.schema)
    """
    found = caught(trial_of(tmp_path, FAULTS + textwrap.dedent(body)), True, "missing", "duplicate", "extra")
    assert 1 <= found.missing <= 10
    assert found.extra > 10
    assert found.duplicate >= found.matched


@pytest.mark.long
def test_micro_batches_counted_twice_inside_an_aggregate_are_wrong(tmp_path: Path) -> None:
    """Found by the same function in batch, where there are no micro-batches. Windows that a starved machine has not
    closed by the deadline are missing besides: one large batch may take the rest of the load, and they come after it.
    """
    body = """
    @job(PURCHASES, reach="2s", keys="pack")
    def twice(spark, inputs):
        rows = inputs["purchases"].select("price", "pack", "event_time")
        doubled = rows.mapInArrow(again, rows.schema).withColumn("at", F.timestamp_micros("event_time"))
        return doubled.withWatermark("at", "0 seconds").groupBy(F.window("at", "1 second"), "pack").agg(
            F.sum("price").alias("revenue"), F.max("event_time").alias("event_time"))
    """
    found = caught(trial_of(tmp_path, FAULTS + textwrap.dedent(body)), False, "wrong", besides=("missing",))
    assert found.matched == 0
    assert any(_twice(example) for example in found.examples)


def _twice(example: dict[str, Any]) -> bool:
    """Whether a wrong sum is twice what it should be."""
    if example["fault"] != "wrong":
        return False
    return bool(example["received"][0]["revenue"] == 2 * example["expected"][0]["revenue"])


@pytest.mark.long
def test_windows_that_a_watermark_closes_a_slide_early_are_wrong(tmp_path: Path) -> None:
    """Beside each row goes one that counts nothing and is 8 s ahead, and takes the watermark with it: windows of 16 s
    every 8 s come 8 s before their end, and Spark drops what is still to come as late.
    """
    body = """
    TRUTH = (
        "SELECT make_timestamp(start) AS window_start, pack, sum(price) AS revenue, max(event_time) AS event_time "
        "FROM (SELECT *, event_time // 8000000 * 8000000 - back AS start "
        "FROM purchases, (VALUES (0), (8000000)) AS windows(back)) GROUP BY start, pack"
    )

    @job(PURCHASES, reach="24s", keys="pack", reference=TRUTH)
    def early(spark, inputs):
        rows = inputs["purchases"].select("*", F.explode(F.array(F.lit(0), F.lit(8))).alias("ahead"))
        moved = rows.withColumn("at", F.timestamp_micros(F.col("event_time") + F.col("ahead") * 1000000))
        price, now = (F.when(F.col("ahead") == 0, F.col(name)) for name in ("price", "event_time"))
        windows = moved.withWatermark("at", "0 seconds").groupBy(F.window("at", "16 seconds", "8 seconds"), "pack")
        return windows.agg(F.sum(price).alias("revenue"), F.max(now).alias("event_time"))
    """
    result = trial_of(tmp_path, body, LONGER_S)
    found = caught(result, True, "wrong")
    assert found.examples[0]["fault"] == "wrong"
    assert any("a window closed early" in note for note in result.latency.notes)


@pytest.mark.long
def test_late_rows_that_a_watermark_drops_make_wrong_windows(tmp_path: Path) -> None:
    """One row in ten is 8 s late, and the watermark waits for none of them: the batch run has them. Of windows that lie
    before the trial, which late rows alone are in, some are missing.
    """
    body = """
    @job(PURCHASES, reach="12s", keys="pack")
    def impatient(spark, inputs):
        late = F.when(F.col("delay") < 100, 8000000).otherwise(0)
        happened = F.timestamp_micros(F.col("event_time") - late)
        rows = inputs["purchases"].withColumn("at", happened).withWatermark("at", "0 seconds")
        return rows.groupBy(F.window("at", "1 second"), "pack").agg(
            F.count("*").alias("n"), F.max("event_time").alias("event_time"))
    """
    caught(trial_of(tmp_path, body, LONGER_S), False, "wrong", besides=("missing",))


@pytest.mark.long
def test_an_exception_in_a_row_function_is_shown_as_the_users_own(tmp_path: Path) -> None:
    """The query dies: not sustained, and the reason is the user's line, with nothing of Spark's or ours around it."""
    file = tmp_path / "raising_job.py"
    body = """
    from pyspark.sql.functions import udf
    from pyspark.sql.types import IntegerType

    @udf(IntegerType())
    def risky(price):
        return 100 // (price - 50)

    @job(PURCHASES, reach="0s")
    def raising(spark, inputs):
        return inputs["purchases"].withColumn("risk", risky("price"))
    """
    file.write_text(textwrap.dedent(HEAD) + textwrap.dedent(body))
    sentence = sentence_against(result_of(tmp_path, file).verdict, "connected")
    assert "ZeroDivisionError" in sentence
    assert f'File "{file}", line 13, in risky' in sentence
    assert "return 100 // (price - 50)" in sentence
    assert "streamgauge/engines" not in sentence
    assert "pyspark/" not in sentence


NESTED = """
    @job(PURCHASES, reach="6s")
    def nested(spark, inputs):
        purchases = inputs["purchases"].withWatermark("timestamp", "0 seconds")
        kept = purchases.groupBy(F.window("timestamp", "2 seconds").alias("span"), "pack").agg(
            F.avg("price").alias("mean"), F.sum(F.col("price").cast("decimal(10,2)")).alias("sum"),
            F.max("timestamp").alias("last"), F.count("*").alias("n"),
            F.max("event_time").alias("event_time"), F.max("ingest_time").alias("ingest_time"))
        local, none = F.col("last").cast("timestamp_ntz").alias("local"), F.lit(None).cast("int").alias("none")
        inside = F.struct("mean", "sum", local, none)
        return kept.select("span", "pack", F.array(inside, F.lit(None)).alias("list"), F.array("last").alias("times"),
                           F.create_map(F.lit("b"), inside, F.lit("a"), F.lit(None)).alias("map"),
                           (F.col("last") - F.col("span.start")).alias("since"), "event_time", "ingest_time")
"""


@pytest.mark.long
def test_nested_results_are_compared_with_their_batch_run(tmp_path: Path) -> None:
    """A struct of times as a window is, and averages, decimals, times and nulls in arrays and maps."""
    found = answers_of(tmp_path, NESTED)
    assert (found.judged, found.right) == (True, True), (found.sentence, found.examples)
    assert found.matched
    assert "identified by span, pack" in found.sentence


# What is wrong with what a function gives, its body, and what the one message must say.
REFUSED = [
    ("batch", "return spark.range(5).withColumnRenamed('id', 'event_time')", ["a batch DataFrame", 'inputs["..."]']),
    ("nothing", "inputs['purchases'].where('price > 3')", ["must return a DataFrame", "NoneType", "return"]),
    (
        "a query of its own",
        "inputs['purchases'].writeStream.format('memory').queryName('q').start().awaitTermination()",
        ["start no query", "awaitTermination", "line 10, in f", "return the DataFrame"],
    ),
    (
        "no event time",
        "return inputs['purchases'].withWatermark('timestamp', '0 seconds').groupBy(F.window('timestamp', '1 second'))"
        ".count()",
        ["must keep event_time", 'F.max("event_time").alias("event_time")'],
    ),
    (
        "a stamp of its own",
        "return inputs['purchases'].withColumn('emission_time', F.col('event_time') + 1000)",
        ["must have no column emission_time", "rename it"],
    ),
    ("its own error", "return {}['sales']", ["KeyError: 'sales'", "line 10, in f", "return {}['sales']"]),
    ("spark's error", "return inputs['purchases'].select(F.expr('prize + 1'))", ["UNRESOLVED_COLUMN", "line 10, in f"]),
    (
        "a type that cannot be compared",
        "return inputs['purchases'].withColumn('both', F.struct('price', F.lit(None).alias('none')))",
        ["f()", "both.none", "void", 'drop("both")'],
    ),
    (
        "a value that varies",
        "return inputs['purchases'].withColumn('handled', F.current_timestamp())",
        ["must give the same results again", "handled", "current_timestamp()", "reference="],
    ),
    (
        "groups of a batch",
        "return inputs['purchases'].groupBy('pack').applyInPandas(lambda rows: rows, 'pack int, event_time bigint')",
        ["in each micro-batch", "applyInPandas", "transformWithStateInPandas"],
    ),
    ("several", "return tuple([inputs['purchases']] * 2)", ["one DataFrame", "tuple", "a file for"]),
    (
        "mode",
        "return inputs['purchases'].groupBy('pack').agg(F.max('event_time').alias('event_time'))",
        ["must be a query that Spark can stream", 'mode="update"'],
    ),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("body", "message"), [bad[1:] for bad in REFUSED], ids=[bad[0] for bad in REFUSED])
def test_a_bad_result_gets_one_message_before_anything_is_measured(
    tmp_path: Path, body: str, message: list[str]
) -> None:
    """Spark looks at the function when it starts: an input error, never a traceback of ours."""
    file = tmp_path / "bad_job.py"
    file.write_text(textwrap.dedent(HEAD) + f"\n@job(PURCHASES)\ndef f(spark, inputs):\n    {body}\n")
    with pytest.raises(JobError) as caught, started(tmp_path, file):
        pass
    shown = str(caught.value)
    assert len(caught.value.problems) == 1
    for words in message:
        assert words in shown
    assert "streamgauge/engines" not in shown
    assert "Traceback" not in shown


@pytest.mark.long
def test_a_job_may_use_an_input_twice_and_what_lies_beside_its_file(tmp_path: Path) -> None:
    """Reading it again in every batch is no retry; a row function of another file reaches the workers."""
    (tmp_path / "taxes_beside.py").write_text("RATE = 0.19\n\ndef tax(price):\n    return price * RATE\n")
    body = """
    from taxes_beside import tax

    @job(PURCHASES, reach="0s")
    def twice(spark, inputs):
        rows = inputs["purchases"].select("price", "event_time", "ingest_time", "event_id")
        taxed = rows.withColumn("tax", F.udf(tax, "double")("price"))
        return taxed.unionByName(rows.where("price > 90").withColumn("tax", F.lit(0.0)))
    """
    file = tmp_path / "twice_job.py"
    file.write_text(textwrap.dedent(HEAD) + textwrap.dedent(body))
    result = result_of(tmp_path, file)
    check_right(result.verification, 24_000, independent=False)
    assert next(check.state for check in result.verdict.checks if check.name == "connected") == "ok"


@pytest.mark.long
def test_a_job_is_searched_on_a_warm_test_bed(tmp_path: Path) -> None:
    """Two trials on one Spark, as a search makes them: each is verified by a batch run of its own input."""
    with started(tmp_path, EXAMPLES / "enrich.py") as (resolved, testbed):
        folder = RunFolder.create(tmp_path, "enrich", "spark", datetime.now(UTC))
        settings = JudgedTrial(resolved, RATE, fresh=False, duration_s=DURATION_S, may_extend=False)
        for number in (1, 2):
            trial = folder.trial(number, datetime.now(UTC))
            check_results(TrialConductor(resolved, testbed).run(trial, settings), 16_000, independent=False)
