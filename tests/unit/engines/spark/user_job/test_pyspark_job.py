"""A user job's function, as far as no Spark is needed to look at what it gives, and what Spark's refusals lead to."""

from __future__ import annotations

import importlib
import json
import sys
import zipfile
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.streaming import DataStreamWriter

from streamgauge.core.errors import JobError, Problem
from streamgauge.dataflow.nodes import UserJobNode
from streamgauge.engines.spark.session.session import RUNNING, UP
from streamgauge.engines.spark.user_job import pyspark_job as user_function
from streamgauge.engines.spark.user_job.error_advice import ADVICE, advice_for
from streamgauge.engines.spark.user_job.pyspark_job import NO_QUERY, PySparkJob, no_query, reported

MISMATCH = (
    'Cannot resolve "window(event_time, 5000000, 5000000, 0)" due to data type mismatch: The first parameter requires '
    'the ("(TIMESTAMP OR TIMESTAMP WITHOUT TIME ZONE)") type, however "event_time" has the type "BIGINT".'
)


class BatchFrame(DataFrame):
    """As `spark.range(10)` gives one."""

    def __new__(cls) -> BatchFrame:
        return object.__new__(cls)

    isStreaming = False
    columns = ("id",)


def test_a_batch_frame_is_reported_as_that(tmp_path: Path) -> None:
    """That it lacks event_time as well is no help: what is wrong is where it comes from."""
    job = UserJobNode((), (), str(tmp_path / "my_job.py"), "mine")
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[1]"))
    with pytest.raises(JobError) as caught:
        PySparkJob(job, lambda spark, inputs: BatchFrame()).streaming(session, [], tmp_path)
    (problem,) = caught.value.problems
    assert (problem.rule, problem.got) == ("must return a streaming DataFrame", "a batch DataFrame")
    assert 'inputs["..."]' in problem.way_out


@pytest.mark.parametrize(("result", "way_out"), [
    ((1, 2), "a file for each result"), ({"a": 1}, "unionByName"), (None, "end mine() with return"),
])  # fmt: skip
def test_several_results_are_refused(tmp_path: Path, result: Any, way_out: str) -> None:
    """Where the text did not show them."""
    job = UserJobNode((), (), str(tmp_path / "my_job.py"), "mine")
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[1]"))
    with pytest.raises(JobError) as caught:
        PySparkJob(job, lambda spark, inputs: result).streaming(session, [], tmp_path)
    assert caught.value.problems[0].got == type(result).__name__
    assert way_out in caught.value.problems[0].way_out


def test_a_window_of_event_time_is_pointed_to_the_timestamp() -> None:
    """By the name that the job has for it; any other refusal of Spark is the user's to mend."""
    user_job = PySparkJob(UserJobNode((), ("ts",), "my_job.py", "mine"), lambda spark, inputs: BatchFrame())
    advised = user_job._advice(AnalysisException(MISMATCH))
    assert advised is not None
    assert advised.startswith('F.window("ts", ...)')
    assert user_job._advice(AnalysisException("column prize cannot be resolved")) is None
    assert user_job._advice(ValueError(MISMATCH)) is None


@pytest.mark.parametrize(
    "text", ["Queries with streaming sources must be executed with writeStream.start();", "[WRITE_STREAM_NOT_ALLOWED]"]
)
def test_an_action_on_a_stream_is_advised_to_be_left_out(text: str) -> None:
    """Spark's own advice, writeStream.start(), would be refused next."""
    user_job = PySparkJob(UserJobNode((), ("ts",), "my_job.py", "mine"), lambda spark, inputs: BatchFrame())
    assert "leave actions (collect, show, write) and writeStream out" in str(user_job._advice(AnalysisException(text)))


STARTING = """
def starts(writer):
    return writer.start()

def handles(writer):
    try:
        return writer.toTable("t")
    except Exception:
        return None

def waits(event):
    return event.wait(60)
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A user's module."""
    (tmp_path / "starting_job.py").write_text(STARTING)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("starting_job")
    del sys.modules["starting_job"]


def refusal(rule: str, got: object, way_out: str) -> JobError:
    return JobError(Problem("job", rule, got, way_out))


@pytest.mark.parametrize(("name", "line"), [("starts", "return writer.start()"), ("handles", 'writer.toTable("t")')])
def test_a_query_is_refused_at_the_users_line(job: Any, name: str, line: str) -> None:
    """Whether the function handles the error or not; afterwards the writer starts queries again."""
    before, path = DataStreamWriter.start, Path(job.__file__)
    writer = DataStreamWriter.__new__(DataStreamWriter)
    with pytest.raises(JobError) as caught, no_query(path, refusal):
        getattr(job, name)(writer)
    (problem,) = caught.value.problems
    assert problem.rule == NO_QUERY
    assert line in str(problem.got)
    assert "awaitTermination() out, and return the DataFrame" in problem.way_out
    assert f'File "{path}"' in problem.way_out
    assert "test_user_function.py" not in problem.way_out
    assert DataStreamWriter.start is before


def test_a_function_that_starts_no_query_is_left_alone(job: Any) -> None:
    """Its own error goes through."""
    with pytest.raises(KeyError), no_query(Path(job.__file__), refusal):
        raise KeyError("own")


def test_where_a_function_runs_is_reported(job: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it returns: what follows is not its own."""
    heard, waiting = [], Event()

    def hear(stage: str) -> None:
        heard.append(stage)
        if "line 12" in stage:
            waiting.set()

    monkeypatch.setattr(user_function, "announce", hear)
    monkeypatch.setattr(user_function, "REPORT_S", 0.001)
    with reported(Path(job.__file__), "waits"):
        assert job.waits(waiting)
    assert f"{RUNNING}: waits(): starting_job.py, line 12: return event.wait(60)" in heard
    assert heard[-1] == UP


SESSIONS = (
    "[STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION] Invalid streaming output mode: update. This output mode is not "
    "supported for session window streaming aggregations on streaming DataFrames/DataSets."
)
RANK = (
    "[NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING] Window function is not supported in ROW_NUMBER() (as column `place`) "
    "on streaming DataFrames/Datasets."
)
CASES = [
    (SESSIONS, ["append mode", 'take mode="update"']),
    (
        "[STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION] This output mode is not supported for streaming aggregations "
        "without watermark on streaming DataFrames/DataSets.",
        ['mode="update", keys="..."', 'withWatermark("ts", "0 seconds")'],
    ),
    (RANK, ['mode="update", keys="KEY"', 'groupBy("KEY")', "transformWithStateInPandas"]),
    ("Sorting is not supported on streaming DataFrames/Datasets, unless it is on", ["leave orderBy and sort out"]),
    (
        "Inner join between two streaming DataFrames/Datasets is not supported in Update output mode, only in Append "
        "output mode",
        ["append mode"],
    ),
    (
        "Stream-stream LeftOuter join between two streaming DataFrame/Datasets is not supported without a watermark in "
        "the join keys, or a watermark on the nullable side",
        ["BETWEEN a_time AND"],
    ),
    ("[CALL_ON_STREAMING_DATASET_UNSUPPORTED] The method `foreach` can not be called", ["leave actions"]),
]


@pytest.mark.parametrize(("text", "message"), CASES)
def test_a_refusal_leads_to_what_can_be_done(text: str, message: list[str]) -> None:
    """By its class, and by its message where a class is a whole family."""
    found = str(advice_for(AnalysisException(text), "ts"))
    assert all(words in found for words in message), found
    assert "{time}" not in found


def job_in(path: Path) -> PySparkJob:
    return PySparkJob(UserJobNode((), ("ts",), str(path), "mine"), lambda spark, inputs: None)


def test_sessions_in_update_mode_must_use_append_mode(tmp_path: Path) -> None:
    """The job has update mode already, so it must not be told to set it."""
    with pytest.raises(JobError) as caught, job_in(tmp_path / "my_job.py").refusals():
        raise AnalysisException(SESSIONS)
    (problem,) = caught.value.problems
    assert problem.way_out.startswith("use append mode")
    assert 'mode="update", keys="..."' not in problem.way_out


def test_what_is_not_in_the_table_gets_sparks_reason_and_the_place(tmp_path: Path) -> None:
    """A guess would be worse than nothing."""
    with pytest.raises(JobError) as caught, job_in(tmp_path / "my_job.py").refusals():
        raise AnalysisException("[NEW_IN_SPARK_9] The thing is not a thing.")
    (problem,) = caught.value.problems
    assert "NEW_IN_SPARK_9" in str(problem.got)
    assert "my_job.py, line " in problem.way_out
    assert problem.way_out.endswith("mine()")


def test_every_class_of_the_table_is_one_of_spark() -> None:
    """A class that Spark renames would lose its advice unnoticed."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-common-utils_*.jar")
    with zipfile.ZipFile(jar) as opened:
        conditions = json.loads(opened.read("error/error-conditions.json"))
    for name in ADVICE:
        whole, _, part = name.partition(".")
        assert whole in conditions, name
        assert not part or part in conditions[whole]["subClass"], name
