"""A user job's function while it runs; no Spark is needed to see what it calls."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyspark.sql.streaming import DataStreamWriter

from streamgauge.core.errors import JobError, Problem
from streamgauge.engines.spark.session.session import RUNNING, UP
from streamgauge.engines.spark.user_job import user_function as user_function
from streamgauge.engines.spark.user_job.user_function import NO_QUERY, no_query, reported

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
