"""A user job's function, as far as no Spark is needed to look at what it gives."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.streaming import DataStreamWriter

from streamgauge.core.errors import JobError, Problem
from streamgauge.dataflow.nodes import UserJobNode
from streamgauge.engines.spark.session.session import RUNNING, UP
from streamgauge.engines.spark.user_job import pyspark_job as user_function
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


def test_a_batch_frame_is_told_as_that(tmp_path: Path) -> None:
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
def test_several_results_are_told_to_be_one(tmp_path: Path, result: Any, way_out: str) -> None:
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
