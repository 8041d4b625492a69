"""Refusals that new users met: each says what was meant, and contradicts no other."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamgauge.config.options_and_settings import build
from streamgauge.core.errors import InputError, Problem
from streamgauge.core.units import parse_rate
from streamgauge.preflight.validate import check
from streamgauge.workloads.registry import Parameters, get

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


def problems(**values: Any) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        check(build(values), new_folder=False)
    return caught.value.problems


@pytest.mark.parametrize(("text", "meant"), [("5m", "5M"), ("1.5m", "1.5M"), ("5 min", "5M"), ("5m/s", "5M")])
def test_minutes_are_no_rate(text: str, meant: str) -> None:
    """A small m is minutes in a duration, so it is not taken for millions."""
    with pytest.raises(InputError) as caught:
        parse_rate(text)
    (problem,) = caught.value.problems
    assert problem.rule == f"{text} is not a rate; {meant} is {meant[:-1]} million events a second"
    assert problem.way_out == f"--rate {meant}"
    assert parse_rate(meant) == float(meant[:-1]) * 1e6


def test_a_size_above_this_machines_memory_is_refused_with_the_memory() -> None:
    (problem,) = problems(workload="identity", load={"memory": "900TiB"})
    assert "to this machine's memory (" in problem.rule
    assert problem.way_out.startswith("leave --memory out: ")


class NoParameters(Parameters):
    """Of a workload that takes none."""


def test_a_workload_without_parameters_says_so() -> None:
    with pytest.raises(InputError) as caught:
        replace(get("identity"), parameters=NoParameters).read({"colour": "red"})
    (problem,) = caught.value.problems
    assert (problem.rule, problem.way_out) == ("identity has no parameters", "leave --set out, except --set data=FILE")


def test_a_user_job_has_no_parameters_and_no_data(job: str) -> None:
    (problem,) = problems(workload=job, parameters={"colour": "red"})
    assert problem.rule == "plain_job has no parameters"
    assert problem.way_out == "leave --set out, and change the values in its file"
    (problem,) = problems(workload=job, parameters={"data": "a.csv"})
    assert "plain_job is a user job, which names its own files" in problem.rule
    assert (problem.got, 'sample="FILE"' in problem.way_out) == ("a.csv", True)


def test_an_empty_file_name_is_said_to_be_empty() -> None:
    (problem,) = problems(workload="identity", parameters={"data": ""})
    assert (problem.setting, problem.got, problem.way_out) == ("set data", "", "--set data=FILE")
    assert problem.rule.startswith("must name a file")


def test_an_engine_without_user_jobs_is_not_sent_to_another_transport(job: str) -> None:
    """Kafka would be refused too, so only the engine is named."""
    (problem,) = problems(workload=job, engine="spark-rtm")
    assert (problem.setting, problem.way_out) == ("engine", "--engine spark")
    assert problem.rule.startswith("does not support user jobs: real-time mode")
