"""A user job's function, as far as no Spark is needed to look at what it gives."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from streamgauge.core.errors import JobError
from streamgauge.dataflow.nodes import UserJobNode
from streamgauge.engines.spark.user_job.pyspark_job import PySparkJob

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
