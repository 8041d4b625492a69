"""Mistakes in a job's function that are refused before Spark starts, and code that must not be refused."""

import sys
import textwrap
from pathlib import Path

import pytest

from streamgauge.core.errors import JobError
from streamgauge.user_workloads.user_job import user_job

HEAD = """\
from pyspark.sql import functions as F
from streamgauge.jobs import Key, job, stream
PURCHASES = stream("purchases", Key("user_id", 1000))
"""

MISTAKES = {
    "no return": ("frame = inputs['purchases']", "it has no return", "end late() with return"),
    "return in a nested function only": ("def row(x):\n    return x", "it has no return", "end late() with return"),
    "returns nothing": ("inputs['purchases']\nreturn None", "it has no return", "end late() with return"),
    "two results": ("return {'a': inputs['purchases'], 'b': inputs['purchases']}", "a dictionary", "a file for each"),
    "a pair": ("both = inputs['purchases']\nreturn both, both", "a tuple", "unionByName"),
    "own query": ("inputs['purchases'].writeStream.format('console').start()", "start no query", "leave writeStream"),
}  # fmt: skip

FINE = {
    "names are left to Python": "return inputs['purchase'].where(F.windw(limt))",
    "a query in a branch": "if spark:\n    inputs['purchases'].writeStream.start()\nreturn inputs['purchases']",
    "a query after an early return": "if spark:\n    return 1\ninputs['purchases'].writeStream.start()",
    "a query in a nested function": "def later(x):\n    x.writeStream.start()\nreturn inputs['purchases']",
    "a pair in a branch": "if spark:\n    return spark, 1\nreturn inputs['purchases']",
    "a return in a branch": "if inputs:\n    return inputs['purchases']",
    "only raises": "raise NotImplementedError",
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    body = f"@job(PURCHASES)\ndef late(spark, inputs):\n{textwrap.indent(request.param, '    ')}\n"
    path = tmp_path / "late_job.py"
    path.write_text(HEAD + body)
    return path


@pytest.mark.parametrize(
    ("file", "got", "way_out"), MISTAKES.values(), ids=MISTAKES.keys(), indirect=["file"]
)  # fmt: skip
def test_a_certain_mistake_is_refused_before_spark_starts(file: Path, got: str, way_out: str) -> None:
    """With the user's line and a way out."""
    with pytest.raises(JobError) as refusal:
        user_job(file)
    (problem,) = refusal.value.problems
    assert got in f"{problem.rule} {problem.got}"
    assert (way_out in str(refusal.value), f'File "{file}", line ' in problem.way_out) == (True, True)


@pytest.mark.parametrize("file", FINE.values(), ids=FINE.keys(), indirect=True)
def test_code_that_may_run_is_not_refused(file: Path) -> None:
    assert user_job(file).name == "late_job"
