"""Spark's refusals in a user job: each leads to an advice, or to Spark's reason and the place of the function."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pyspark
import pytest
from pyspark.errors import AnalysisException

from streamgauge.core.errors import JobError
from streamgauge.dataflow.nodes import UserJobNode
from streamgauge.engines.spark.user_job.error_advice import ADVICE, advice_for
from streamgauge.engines.spark.user_job.pyspark_job import PySparkJob

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


@pytest.mark.parametrize(("text", "said"), CASES)
def test_a_refusal_leads_to_what_can_be_done(text: str, said: list[str]) -> None:
    """By its class, and by its message where a class is a whole family."""
    found = str(advice_for(AnalysisException(text), "ts"))
    assert all(words in found for words in said), found
    assert "{time}" not in found


def job(path: Path) -> PySparkJob:
    return PySparkJob(UserJobNode((), ("ts",), str(path), "mine"), lambda spark, inputs: None)


def test_sessions_in_update_mode_are_told_to_use_append_mode(tmp_path: Path) -> None:
    """The job has update mode already, so it must not be told to set it."""
    with pytest.raises(JobError) as caught, job(tmp_path / "my_job.py").refusals():
        raise AnalysisException(SESSIONS)
    (problem,) = caught.value.problems
    assert problem.way_out.startswith("use append mode")
    assert 'mode="update", keys="..."' not in problem.way_out


def test_what_is_not_in_the_table_gets_sparks_reason_and_the_place(tmp_path: Path) -> None:
    """A guess would be worse than nothing."""
    with pytest.raises(JobError) as caught, job(tmp_path / "my_job.py").refusals():
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
