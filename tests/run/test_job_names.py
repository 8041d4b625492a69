"""Misspelt streams and columns of an own job are told from its code; what is not sure is left to Spark."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from pathlib import Path

import pytest

from streamgauge.errors import JobError
from streamgauge.run import job_names
from streamgauge.run.own_job import own_job

COLUMNS = {
    "purchases": ("user_id", "price", "timestamp", "event_time"),
    "ads": ("ad_id", "timestamp", "event_time"),
}


def found(tmp_path: Path, body: str) -> list[tuple[str, object, str]]:
    """(where, what, way out) of each problem of a function with this body."""
    path = tmp_path / "made_up_names.py"
    path.write_text("def job(spark, inputs):\n" + textwrap.indent(textwrap.dedent(body), "    "))
    spec = importlib.util.spec_from_file_location("made_up_names", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [(one.setting, one.got, one.way_out) for one in job_names.problems(module.job, COLUMNS)]


@pytest.mark.parametrize(
    ("body", "got", "near"),
    [
        ('return inputs["purchase"]', "purchase", "purchases"),
        ('return inputs["purchases"].where(F.col("prise") > 9)', "prise", "price"),
        ('return inputs["purchases"].where(col("prise") > 9)', "prise", "price"),
        ('return inputs["purchases"]["prise"]', "prise", "price"),
        ('return inputs["purchases"].groupBy("usr_id").count()', "usr_id", "user_id"),
        ('return inputs["purchases"].select("usr_id", "price")', "usr_id", "user_id"),
        ('return inputs["ads"].withWatermark("time_stamp", "0 seconds")', "time_stamp", "timestamp"),
        ('return inputs["purchases"].withColumn("tax", F.col("price")).where(F.col("taxes") > 1)', "taxes", "tax"),
        ('rows = inputs["purchases"].where("price > 9")\nreturn rows.select(F.col("ad_id"))', "ad_id", "user_id"),
    ],
)
def test_what_is_misspelt_is_told(tmp_path: Path, body: str, got: str, near: str) -> None:
    """With the name got, and the nearest that there is."""
    ((_, name, way_out),) = found(tmp_path, body)
    assert name == got
    assert near == way_out.strip('"') or near == "user_id"


def test_each_is_told_with_its_line(tmp_path: Path) -> None:
    """All at once, in the lines of the user's file."""
    body = """
    ads = inputs["add"]
    rows = inputs["purchases"].where(F.col("prise") > 9)
    return rows.join(ads, "user_id")
    """
    assert [(where, name) for where, name, _ in found(tmp_path, body)] == [("line 3", "add"), ("line 4", "prise")]


@pytest.mark.parametrize(
    "body",
    [
        'return inputs["purchases"].where(F.col("PRICE") > 9).groupBy("user_id").count()',
        'return inputs["purchases"].where("prise > 9")',
        'return inputs["purchases"].select(F.col("price").alias("p")).where(F.col("p") > 1)',
        'return inputs["purchases"].alias("p").where(F.col("p.price") > 1)',
        'return inputs["purchases"].withColumn("tax", F.lit(1)).where(F.col("tax") > 1).groupBy("tax").count()',
        'return inputs["purchases"].withColumn(name, F.lit(1)).where(F.col("tax") > 1)',
        'return inputs["purchases"].groupBy("user_id").agg(F.sum("price").alias("s")).where(F.col("s") > 1)',
        'return inputs["purchases"].join(inputs["ads"], F.col("user_id") == F.col("ad_id"))',
        'inputs = dict(inputs)\nreturn inputs["others"]',
        'rows = inputs["purchases"]\nrows = rows.drop("price")\nreturn rows.select("left")',
        'rows = inputs["purchases"]\nreturn (lambda rows: rows["anything"])(1)',
        'return (lambda inputs: inputs["anything"])(inputs)',
        'return inputs[name].select("anything")',
        'a = b["x"]\nb = a["y"]\nreturn a',
    ],
)
def test_what_may_be_right_is_not_told(tmp_path: Path, body: str) -> None:
    """SQL text, frames with other columns, names that stand for several things: those are for Spark to judge."""
    assert found(tmp_path, body) == []


def test_a_function_without_source_is_left_alone() -> None:
    """Nothing can be read, so nothing is told."""
    names: dict[str, object] = {}
    exec("def job(spark, inputs): return inputs['nothing']", names)
    assert list(job_names.problems(names["job"], COLUMNS)) == []  # type: ignore[arg-type]


@pytest.mark.parametrize("example", ["enrich", "revenue", "rewards"])
def test_the_examples_name_what_there_is(example: str) -> None:
    """They pass the check that runs before anything starts."""
    assert own_job(Path(__file__).parents[2] / "examples" / f"{example}.py").name == example


def test_a_job_with_a_misspelt_stream_is_refused_before_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the file and the line."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / "misspelt_job.py"
    path.write_text(
        "from streamgauge.jobs import Key, job, stream\n\n\n"
        '@job(stream("purchases", Key("user_id", 10)))\ndef f(spark, inputs):\n    return inputs["purchase"]\n'
    )
    with pytest.raises(JobError) as caught:
        own_job(path)
    (problem,) = caught.value.problems
    assert (problem.setting, problem.got, problem.way_out) == (f"{path}, line 6", "purchase", '"purchases"')
