"""Refusals that new users met: each says what was meant, and contradicts no other."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamgauge.core.units import parse_rate
from streamgauge.workloads.registry import Parameters, get
from tests.unit.helpers_refusals import problem_of
from tests.unit.helpers_requests import checked

JOB = """
from streamgauge.jobs import Key, job, stream
@job(stream("purchases", Key("user_id", 1000)))
def all_of_them(spark, inputs):
    return inputs["purchases"]
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / "plain_job.py"
    path.write_text(JOB)
    return str(path)


@pytest.mark.parametrize(("text", "meant"), [("5m", "5M"), ("1.5m", "1.5M"), ("5 min", "5M"), ("5m/s", "5M")])
def test_minutes_are_no_rate(text: str, meant: str) -> None:
    """A small m is minutes in a duration, so it is not taken for millions."""
    problem = problem_of(parse_rate, text)
    assert problem.rule == f"{text} is not a rate; {meant} is {meant[:-1]} million events a second"
    assert problem.way_out == f"--rate {meant}"
    assert parse_rate(meant) == float(meant[:-1]) * 1e6


class NoParameters(Parameters):
    """Of a workload that takes none."""


def test_a_workload_without_parameters_says_so() -> None:
    problem = problem_of(replace(get("identity"), parameters=NoParameters).read, {"colour": "red"})
    assert (problem.rule, problem.way_out) == ("identity has no parameters", "leave --set out, except --set data=FILE")


@pytest.mark.parametrize(
    ("values", "setting", "rule", "way_out"),
    [
        ({"load": {"memory": "900TiB"}}, "load.memory", "to this machine's memory (", "leave --memory out: "),
        ({"parameters": {"data": ""}}, "set data", "must name a file", "--set data=FILE"),
        ({"workload": "JOB", "parameters": {"colour": "red"}}, "set colour", "plain_job has no parameters",
         "leave --set out, and change the values in its file"),
        ({"workload": "JOB", "parameters": {"data": "a.csv"}}, "set data",
         "plain_job is a user job, which names its own files", ""),
        # Kafka would be refused too, so only the engine is named.
        ({"workload": "JOB", "engine": "spark-rtm"}, "engine", "does not support user jobs: real-time mode",
         "--engine spark"),
    ],
)  # fmt: skip
def test_a_refusal_names_what_was_meant(
    job: str, values: dict[str, Any], setting: str, rule: str, way_out: str
) -> None:
    values = {"workload": "identity", **values}
    values |= {"workload": job} if values["workload"] == "JOB" else {}
    problem = problem_of(checked, values, new_folder=False)
    assert (problem.setting, rule in problem.rule) == (setting, True)
    assert problem.way_out.startswith(way_out)
