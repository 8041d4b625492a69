"""Each wrong input alone: refused before anything is started, in words that name it and a way out."""

import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from streamgauge.config.experiment import SETTINGS, build
from streamgauge.core.errors import Problem, attempt
from streamgauge.preflight.settings_checks import further_problems
from streamgauge.workloads.registry import Parameters, get
from tests.unit.helpers_refusals import problem_of
from tests.unit.helpers_requests import GOOD, checked, refused

pytestmark = pytest.mark.usefixtures("quiet")

TOO_MUCH = str(2**60)
STREAM_STREAM = {"lowering.join": "stream_stream"}

# (the values beside GOOD, the setting that the message names, the value it shows)
BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"load": {"rate": "fast"}}, "load.rate", "fast"),
    ({"load": {"rate": "0"}}, "load.rate", "0"),
    ({"load": {"rate": "-5k"}}, "load.rate", "-5k"),
    ({"load": {"rate": "1e999"}}, "load.rate", "1e999"),
    ({"load": {"rate": "1e5x"}}, "load.rate", "1e5x"),
    ({"load": {"rate": "1__0"}}, "load.rate", "1__0"),
    ({"load": {"rate": [1]}}, "load.rate", "[1]"),
    ({"load": {"profile": 3}}, "load.profile", "3"),
    ({"load": {"warmup": "1e999"}}, "load.warmup", "1e999"),
    ({"load": {"start": 3}}, "load.start", "3"),
    ({"search": {"start_rate": "none"}}, "search.start_rate", "none"),
    ({"search": {"quick": "perhaps"}}, "search.quick", "perhaps"),
    ({"search": {"tolerance": "wide"}}, "search.tolerance", "wide"),
    ({"parameters": 3}, "parameters", "3"),
    ({"options": {"buckets": 4}}, "options.buckets", "4"),
    ({"options": "buckets=4"}, "options", "buckets=4"),
    ({"limits": "p99<=2s"}, "limits", "p99<=2s"),
    ({"limits": [3]}, "limits.0", "3"),
    ({"workload": 3}, "workload", "3"),
    ({"load": {"rate": True}}, "load.rate", "True"),
    ({"load": {"rate": "2G"}}, "load.rate", "2000000000"),
    ({"load": {"duration": "soon"}}, "load.duration", "soon"),
    ({"load": {"duration": "60 parsecs"}}, "load.duration", "60 parsecs"),
    ({"load": {"duration": "-1s"}}, "load.duration", "-1s"),
    ({"load": {"duration": "500ms"}}, "load.duration", "0.5s"),
    ({"load": {"duration": "200h"}}, "load.duration", "720000s"),
    ({"load": {"warmup": "long"}}, "load.warmup", "long"),
    ({"load": {"warmup": "2h"}}, "load.warmup", "7200s"),
    ({"load": {"profile": "wave"}}, "load.profile", "wave"),
    ({"load": {"profile": "step:200k"}}, "load.profile", "step:200k"),
    ({"load": {"profile": "step:200k@90s"}}, "load.profile", "step:200k@90s"),
    ({"load": {"profile": "burst:2@50s+20s"}}, "load.profile", "burst:2@50s+20s"),
    ({"load": {"profile": "ramp:none"}}, "load.profile", "ramp:none"),
    ({"load": {"profile": "step:2G@30s"}}, "load.profile", "step:2G@30s"),
    ({"load": {"profile": "ramp:2G"}}, "load.profile", "ramp:2G"),
    ({"load": {"profile": "burst:1e5@30s+1s"}}, "load.profile", "burst:1e5@30s+1s"),
    ({"load": {"profile": "burst:1e300@30s+1s"}}, "load.profile", "burst:1e300@30s+1s"),
    ({"command": "sustain", "search": {"start_rate": "2G"}}, "search.start_rate", "2000000000"),
    ({"load": {"generators": 0}}, "load.generators", "0"),
    ({"load": {"generators": 4}, "partitions": 2}, "load.generators", "4"),
    ({"partitions": 0}, "partitions", "0"),
    ({"partitions": 4097}, "partitions", "4097"),
    ({"partitions": "few"}, "partitions", "few"),
    ({"transport": {"name": "kafka", "partitions": 0}}, "partitions", "0"),
    ({"parallelism": 0}, "parallelism", "0"),
    ({"parallelism": "all"}, "parallelism", "all"),
    ({"parallelism": 2, "master": "local[4]"}, "parallelism", "2"),
    ({"load": {"generators": 257}}, "load.generators", "257"),
    ({"load": {"generators": "two"}}, "load.generators", "two"),
    ({"load": {"seed": -1}}, "load.seed", "-1"),
    ({"load": {"seed": "lucky"}}, "load.seed", "lucky"),
    ({"load": {"seed": 1.5}}, "load.seed", "1.5"),
    ({"load": {"seed": 2**63}}, "load.seed", str(2**63)),
    ({"load": {"chunk": "0s"}}, "load.chunk", "0s"),
    ({"load": {"chunk": "2s"}}, "load.chunk", "2s"),
    ({"load": {"chunk": "big"}}, "load.chunk", "big"),
    ({"load": {"bound": "0s"}}, "load.bound", "0s"),
    ({"load": {"bound": "2h"}}, "load.bound", "7200s"),
    ({"load": {"bound": "4s"}}, "load.bound", "4s"),
    ({"options": {"trigger": "1 minute"}, "load": {"duration": "20m"}}, "load.bound", "30s"),
    ({"options": {"trigger": "30 minutes"}, "load": {"duration": "12h"}}, "load.bound", "30s"),
    ({"workload": "identity", "options": {"trigger": "11 seconds"}, "load": {"duration": "4m"}}, "load.bound", "30s"),
    ({"workload": "windowed_join", "options": STREAM_STREAM, "load": {"bound": "5s"}}, "load.bound", "5s"),
    ({"engine": "known", "options": {"batch": "2s"}, "load": {"bound": "5s"}}, "load.bound", "5s"),
    ({"parameters": {"range": "10m", "slide": "10m"}}, "load.duration", "60s"),
    ({"load": {"duration": "6s"}}, "load.duration", "6s"),
    ({"workload": "identity", "options": {"trigger": "10 seconds"}}, "load.duration", "60s"),
    ({"command": "sustain", "options": {"trigger": "5 seconds"}}, "load.duration", "30s"),
    ({"engine": "known", "options": {"batch": "10s"}}, "load.duration", "60s"),
    ({"load": {"memory": "much"}}, "load.memory", "much"),
    ({"load": {"memory": TOO_MUCH}}, "load.memory", TOO_MUCH),
    ({"load": {"memory": "1KiB"}}, "load.memory", "1KiB"),
    ({"load": {"frontier": "shared"}}, "load.frontier", "shared"),
    ({"load": {"start": "yesterday"}}, "load.start", "yesterday"),
    ({"load": {"rte": "100k"}}, "load.rte", "100k"),
    ({"load": "100k"}, "load", "100k"),
    ({"serach": {}}, "serach", "{}"),
    ({"search": {"tolerance": 0}}, "search.tolerance", "0"),
    ({"search": {"tolerance": 1.5}}, "search.tolerance", "1.5"),
    ({"search": {"trials_max": 1}}, "search.trials_max", "1"),
    ({"search": {"fast": True}}, "search.fast", "True"),
    ({"command": "runn"}, "command", "runn"),
    ({"workload": "windowed_agregation"}, "workload", "windowed_agregation"),
    ({"workload": ""}, "workload", "''"),
    ({"parameters": {"rang": "8s"}}, "rang", "8s"),
    ({"parameters": {"range": "wide"}}, "range", "wide"),
    ({"parameters": {"range": "4s", "slide": "8s"}}, "slide", "8"),
    ({"parameters": {"slide": "0s"}}, "slide", "0"),
    ({"parameters": {"packs": "0"}}, "packs", "0"),
    ({"parameters": {"packs": "many"}}, "packs", "many"),
    ({"parameters": {"distribution": "odd"}}, "distribution", "odd"),
    ({"parameters": {"payload_bytes": "-1"}}, "payload_bytes", "-1"),
    ({"engine": "sprak"}, "engine", "sprak"),
    ({"engine": "oracle"}, "engine", "oracle"),
    ({"transport": "pigeon"}, "transport", "pigeon"),
    ({"options": {"tirgger": "1 second"}}, "option tirgger", "1 second"),
    ({"options": {"lowering.aggregate": "fast"}}, "option lowering.aggregate", "fast"),
    ({"options": {"lowering.join": "packed"}}, "option lowering.join", "packed"),
    ({"options": {"spark.sql.shuffle.partitions": "few"}}, "option spark.sql.shuffle.partitions", "few"),
    ({"master": "yarm"}, "master", "yarm"),
    ({"master": "spark://host:7077"}, "bind", "127.0.0.1"),
    ({"engine": "known", "master": "local[2]"}, "master", "local[2]"),
    ({"engine": "known", "load": {"frontier": "free"}}, "load.frontier", "free"),
    ({"options": {"probes": "maybe"}}, "option probes", "maybe"),
    ({"options": {"buckets": "0"}}, "option buckets", "0"),
    ({"options": {"buckets": "eight"}}, "option buckets", "eight"),
    ({"options": {"max_per_trigger": "0"}}, "option max_per_trigger", "0"),
    ({"options": {"max_per_trigger": "all"}}, "option max_per_trigger", "all"),
    *(
        ({"options": {name: value}}, f"option {name}", value)
        for name, value in (
            ("trigger", "soon"),
            ("trigger", "5"),
            ("driver_memory", "9999g"),
            ("driver_memory", "lots"),
        )
    ),
    ({"isolation": "alone"}, "isolation", "alone"),
    ({"limits": ["p98 <= 2s"]}, "limits", "p98 <= 2s"),
    ({"limits": ["p99 <= fast"]}, "limits", "fast"),
    ({"limits": ["p99 <= 0s"]}, "limits", "p99 <= 0s"),
    ({"limits": ["p99 <= 5s"]}, "limits", "p99 <= 5s"),
    (
        {"command": "sustain", "limits": ["closing_delay_p95<=5s"], "load": {"duration": "24s"}},
        "limits",
        "closing_delay_p95<=5s",
    ),
    ({"load": {"profile": "step:200k@5s", "duration": "12s"}}, "load.duration", "12s"),
    ({"port": 80}, "port", "80"),
    ({"port": "any"}, "port", "any"),
    ({"port": 65500}, "port", "65500"),
    ({"prometheus": 80}, "prometheus", "80"),
    ({"prometheus": 65536}, "prometheus", "65536"),
    ({"command": "generate", "prometheus": 9464}, "prometheus", "9464"),
    ({"bind": "300.1.1.1"}, "bind", "300.1.1.1"),
    ({"bind": ""}, "bind", ""),
    ({"out": ""}, "out", ""),
    ({"load": {"profile": "step:nan@5s"}}, "load.profile", "step:nan@5s"),
    ({"limits": ["p99<=1e400s"]}, "limits", "1e400s"),
    ({"options": {"driver_memory": "٤g"}}, "option driver_memory", "٤g"),
    ({"options": {"buckets": "٤"}}, "option buckets", "٤"),
    ({"options": {"trigger": "٤ seconds"}}, "option trigger", "٤ seconds"),
    ({"options": {"spark.executor.cores": "1٤"}}, "option spark.executor.cores", "1٤"),
    ({"options": {"spark.=": "1"}}, "option spark.=", "1"),
    ({"options": {"spark.": "1"}}, "option spark.", "1"),
    ({"options": {"spark.a b": "1"}}, "option spark.a b", "1"),
    ({"master": "local[1٤]"}, "master", "local[1٤]"),
    ({"keep_results": "perhaps"}, "keep_results", "perhaps"),
]


NO_OPTION = ("load.rte", "serach", "search.fast", "workload", "command", "load")
"""Settings that there are not, or that the command line has as words of their own."""


@pytest.mark.parametrize(("values", "setting", "got"), BAD, ids=lambda one: str(one)[:60])
def test_bad_input_is_refused(values: dict[str, Any], setting: str, got: str) -> None:
    """One problem, which names the setting, the rule, the value and a way out: the option of the very setting, not only
    the file's key.
    """
    (problem,) = refused(GOOD | values)
    assert (setting in problem.setting, got in f"{problem.got!r} {problem.got}") == (True, True)
    assert problem.rule
    assert all(text in str(problem) for text in (problem.setting, problem.rule, problem.way_out))
    assert not re.search(r"input should|valid |unable to|value error|another kind", problem.rule.lower())
    head = problem.setting.partition(" ")[0].removeprefix("--")
    head = {"set": "parameters", "option": "options", "slide": "parameters"}.get(head, head)
    known = [name for name in SETTINGS if f"{head}.".startswith(f"{name}.")]
    assert known or problem.setting in NO_OPTION
    flag = SETTINGS[known[0]].flag if known else problem.way_out
    assert problem.way_out.startswith("one of ") or flag in problem.way_out != ""


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


class NoParameters(Parameters):
    """Of a workload that takes none."""


def test_a_workload_without_parameters_says_so() -> None:
    problem = problem_of(replace(get("identity"), parameters=NoParameters).read, {"colour": "red"})
    assert (problem.rule, problem.way_out) == ("identity has no parameters", "leave --set out, except --set data=FILE")


@pytest.mark.parametrize(
    ("values", "setting", "rule", "way_out"),
    [
        ({"load": {"memory": "900TiB"}}, "load.memory", "to this machine's memory (", "leave --queue-memory out: "),
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


def test_a_value_of_no_right_type_gives_one_problem_only() -> None:
    """What stands in for it is not refused; a setting of another command is refused as such."""
    unbuilt = {}
    for number, (more, _, _) in enumerate(BAD):
        attempt(partial(build, GOOD | more), problems := list[Problem]())
        if problems:
            further = further_problems(GOOD | more, problems)
            unbuilt[number] = {one.setting for one in further} - {one.setting for one in problems}
    assert len(unbuilt) > 20
    assert not [each for each in unbuilt.values() if each]
