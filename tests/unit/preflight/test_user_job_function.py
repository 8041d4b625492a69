"""Mistakes in a job's function that are said before Spark starts, and code that must not be refused."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

from streamgauge.core.errors import JobError
from streamgauge.preflight.user_job import user_job

HEAD = """\
from pyspark.sql import functions as F
from streamgauge.jobs import Key, job, stream
PURCHASES = stream("purchases", Key("user_id", 1000))
def helper(frame): return frame.where(lmit)
def unused(frame): return frame.where(nothing_of_that_name)
"""

MISTAKES = {
    "input": ('return inputs["purchase"]', "no input 'purchase'", 'try: inputs["purchases"]'),
    "name": ("return inputs['purchases'].where(limt)", "name 'limt' is not defined", "define or import limt"),
    "near name": ("return PURCHASE", "name 'PURCHASE' is not defined", "try: PURCHASES"),
    "function of Spark": ("return inputs['purchases'].select(F.windw('timestamp', '1 s'))", "'windw'", "try: F.window"),
    "import": ("import no_such_module_x\nreturn inputs['purchases']", "No module named 'no_such_module_x'", "install"),
    "imported name": ("from pyspark.sql.functions import windw\nreturn 1", "'windw'", "pyspark.sql.functions.window"),
    "helper": ("return helper(inputs['purchases'])", "name 'lmit' is not defined", "line 4, in helper"),
    "row function": (
        "def row(x):\n    return x + missing_here\nreturn inputs['purchases'].mapInPandas(row, 'x int')",
        "name 'missing_here' is not defined", "return x + missing_here",
    ),
    "no return": ("frame = inputs['purchases']", "it has no return", "end late() with return"),
    "own query": ("inputs['purchases'].writeStream.format('console').start()", "start no query", "leave writeStream"),
}  # fmt: skip

FINE = {
    "branch": "if len(inputs) > 5:\n    display(inputs)\nreturn inputs['purchases']",
    "early return": "if spark is None:\n    return inputs['purchases']\nreturn no_such_name",
    "handled": "try:\n    display(inputs)\nexcept NameError:\n    pass\nreturn inputs['purchases']",
    "after return": "return inputs['purchases']\nno_such_name",
    "own input": "inputs['extra'] = inputs['purchases']\nreturn inputs['extra']",
    "inputs elsewhere": "more(inputs)\nreturn inputs['extra']",
    "local": "frame = inputs['purchases']\nreturn [frame for frame in [frame]][0]",
    "or": "return inputs['purchases'] or no_such_name",
    "global": "global LATER\nLATER = 1\nreturn inputs['purchases'].where(LATER)",
    "computed name": "name = 'purchases'\nreturn inputs[name]",
    "submodule": "import xml\nimport xml.dom\nreturn inputs['purchases'].where(xml.dom)",
    "nested return": "def row(x):\n    return x\nreturn inputs['purchases'].map(row)",
    "only raises": "raise NotImplementedError",
    "raise": "if not inputs:\n    raise ValueError\nreturn inputs['purchases']",
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    more = "def more(frames): frames['extra'] = frames['purchases']\n"
    body = f"@job(PURCHASES)\ndef late(spark, inputs):\n{textwrap.indent(request.param, '    ')}\n"
    path = tmp_path / "late_job.py"
    path.write_text(HEAD + more + body)
    return path


@pytest.mark.parametrize(
    ("file", "got", "way_out"), MISTAKES.values(), ids=MISTAKES.keys(), indirect=["file"]
)  # fmt: skip
def test_a_certain_mistake_is_said_before_spark_starts(file: Path, got: str, way_out: str) -> None:
    """With the user's line and a way out."""
    with pytest.raises(JobError) as caught:
        user_job(file)
    (problem,) = caught.value.problems
    assert got in f"{problem.rule} {problem.got}"
    assert way_out in str(caught.value)
    assert f'File "{file}", line ' in problem.way_out


@pytest.mark.parametrize("file", FINE.values(), ids=FINE.keys(), indirect=True)
def test_code_that_may_run_is_not_refused(file: Path) -> None:
    assert user_job(file).name == "late_job"


def test_every_mistake_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / "two_job.py"
    path.write_text(HEAD + '@job(PURCHASES)\ndef two(spark, inputs):\n    return inputs["a"].where(unknown_x)\n')
    with pytest.raises(JobError) as caught:
        user_job(path)
    assert [problem.got for problem in caught.value.problems] == ["name 'unknown_x' is not defined", "no input 'a'"]
