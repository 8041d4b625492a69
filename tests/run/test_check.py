"""What was asked, checked before anything is started: each wrong input alone, and all of them together."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pyarrow as pa
import pytest

from streamgauge import experiment
from streamgauge.errors import InputError, MachineError, Problem
from streamgauge.events import US, Schema
from streamgauge.experiment import FLAGS
from streamgauge.flow.stream import flow, source
from streamgauge.load.plan import Plan
from streamgauge.run import check, single
from streamgauge.run.catalogue import capabilities
from streamgauge.run.check import check as check_experiment
from streamgauge.run.check import start_us
from streamgauge.system.machine import environment
from streamgauge.transports.flight.queue import FlightQueue
from streamgauge.transports.seam import Overflow

GOOD: dict[str, Any] = {"workload": "windowed_aggregation"}
TOO_MUCH = str(2**60)

# (what is asked beside GOOD, the setting that the message names, the value it shows)
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
    ({"workload": "windowed_join", "load": {"bound": "5s"}}, "load.bound", "5s"),
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
    ({"bind": "300.1.1.1"}, "bind", "300.1.1.1"),
    ({"bind": ""}, "bind", ""),
    ({"bind": "127.0.0.1\0"}, "bind", "\\x00"),
    ({"out": ""}, "out", ""),
    ({"out": "runs\0"}, "out", "\\x00"),
    ({"workload": "job\0.py"}, "workload", "\\x00"),
    ({"workload": "filter\0"}, "workload", "\\x00"),
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


@pytest.fixture(autouse=True)
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to stand in; at the end it is as empty, and no process was started."""

    def started(*arguments: Any, **_: Any) -> None:
        raise AssertionError(f"a process was started: {arguments}")

    stand = tmp_path / "stand"
    stand.mkdir()
    monkeypatch.chdir(stand)
    monkeypatch.setattr(subprocess, "Popen", started)
    yield stand
    assert list(stand.iterdir()) == []


def refused(values: dict[str, Any]) -> tuple[Problem, ...]:
    """The problems with which values are refused."""
    with pytest.raises(InputError) as caught:
        check_experiment(experiment.build(values))
    assert caught.value.exit_code == 2
    return caught.value.problems


@pytest.mark.parametrize(("asked", "setting", "got"), BAD, ids=lambda one: str(one)[:60])
def test_bad_input_is_refused(asked: dict[str, Any], setting: str, got: str) -> None:
    """One problem, which names the setting, the rule, the value and a way out."""
    (problem,) = refused(GOOD | asked)
    assert setting in problem.setting
    assert got in f"{problem.got!r} {problem.got}"
    assert problem.rule
    assert problem.way_out
    assert all(text in str(problem) for text in (problem.setting, problem.rule, problem.way_out))
    assert not re.search(r"input should|valid |unable to|value error|another kind", problem.rule.lower())


NO_OPTION = ("load.rte", "serach", "search.fast", "workload", "command", "load")
"""Settings that there are not, or that the command line has as words of their own."""


@pytest.mark.parametrize(("asked", "setting", "got"), BAD, ids=lambda one: str(one)[:60])
def test_the_way_out_is_one_for_the_command_line(asked: dict[str, Any], setting: str, got: str) -> None:
    """It names the option of the very setting, not only the file's key."""
    (problem,) = refused(GOOD | asked)
    head = problem.setting.partition(" ")[0].removeprefix("--")
    names = {
        "set": "parameters",
        "option": "options",
        "slide": "parameters",
    }
    known = [name for name in FLAGS if (names.get(head, head) + ".").startswith(name + ".")]
    assert known or problem.setting in NO_OPTION
    assert not known or FLAGS[known[0]] in problem.way_out or problem.way_out.startswith("one of ")


def test_good_input_is_ready() -> None:
    """The least that can be asked, and every default follows from it."""
    ready = check_experiment(experiment.build(GOOD))
    assert ready.generators >= 1
    assert ready.reach_us == 8 * US
    assert ready.tail_us == 9 * US
    assert (ready.driver_cpus, ready.sut_cpus) == (None, None)


def test_all_that_cannot_be_built_is_said_at_once() -> None:
    """Types, bounds and unknown keys of every level in one answer."""
    load = {"rate": "fast", "duration": "soon", "seed": -1, "generators": 0, "rte": 1}
    problems = refused({"workload": "identity", "load": load, "search": {"x": 1}, "y": 2, "isolation": "alone"})
    settings = {problem.setting for problem in problems}
    assert settings == {
        "load.rate", "load.duration", "load.seed", "load.generators", "load.rte", "search.x", "y", "isolation",
    }  # fmt: skip


def test_all_that_cannot_be_run_is_said_at_once(tmp_path: Path) -> None:
    """Workload, engine, transport, limits, load and place in one answer."""
    (tmp_path / "file").touch()
    problems = refused(
        {
            "workload": "identiti", "engine": "sprak", "transport": "pigeon", "limits": ["p98<=1s", "p99<=0s"],
            "load": {"duration": "0.1s", "chunk": "5s", "bound": "0s", "memory": "1KiB", "start": "then",
                     "profile": "wave", "warmup": "2h"},
            "out": str(tmp_path / "file"),
        }
    )  # fmt: skip
    settings = [problem.setting for problem in problems]
    for setting in ("workload", "engine", "transport", "load.duration", "load.chunk", "load.bound", "load.memory",
                    "load.start", "load.profile", "load.warmup", "out"):  # fmt: skip
        assert setting in settings
    assert settings.count("limits") == 2
    assert str(InputError(problems)).count("try:") == len(problems)


def test_every_wrong_parameter_is_said() -> None:
    """Unknown and wrong ones together."""
    problems = refused(GOOD | {"parameters": {"packs": "0", "users": "none", "rang": "8s"}})
    assert {problem.setting.split()[-1] for problem in problems} == {"packs", "users", "rang"}


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ({"workload": "windowed_agregation"}, "windowed_aggregation "),
        ({"parameters": {"slid": "4s"}}, "slide"),
        ({"engine": "sprk"}, "--engine spark"),
        ({"options": {"tirgger": "1 second"}}, "--option trigger="),
        ({"transport": "flght"}, "--transport flight"),
    ],
)
def test_a_slip_of_the_pen_is_answered_with_the_nearest(asked: dict[str, Any], hint: str) -> None:
    """The way out is the word that was meant."""
    (problem,) = refused(GOOD | asked)
    assert hint in problem.way_out


def test_sparks_own_settings_are_sparks_business() -> None:
    """Any spark.* setting is passed on."""
    options = {"spark.sql.shuffle.partitions": "3", "lowering.aggregate": "window"}
    assert check_experiment(experiment.build(GOOD | {"options": options})).experiment.options == options


# --- the machine ---


@pytest.mark.parametrize("distance", [0, 1, 2])
def test_a_busy_port_is_named(distance: int) -> None:
    """Every port that will be needed is tried: the recorder's and one for each generator."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        asked = {"port": port - distance, "load": {"generators": 2}}
        (problem,) = refused(GOOD | asked)
    assert (problem.setting, problem.got) == ("port", port)
    assert "free" in problem.rule


def test_no_port_asked_for_binds_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Free ports are found by the system: a user without rights to low ports is not refused."""
    asked: list[int] = []

    def note(host: str, port: int) -> str:
        asked.append(port)
        return ""

    monkeypatch.setattr(check, "_port_problem", note)
    check_experiment(experiment.build(GOOD | {"load": {"generators": 4}}))
    assert asked == [0]


@pytest.mark.parametrize(("isolation", "generators"), [("shared", 8), ("pinned", 6)])
def test_as_many_ports_are_tried_as_there_will_be_generators(
    monkeypatch: pytest.MonkeyPatch, isolation: str, generators: int
) -> None:
    """Where their number was not given too: one per core of the SUT, at most eight."""
    asked: list[int] = []

    def note(host: str, port: int) -> str:
        asked.append(port)
        return ""

    monkeypatch.setattr(check, "_port_problem", note)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16 if isolation == "shared" else 8)))
    ready = check_experiment(experiment.build(GOOD | {"port": 5000, "isolation": isolation}))
    assert ready.generators == generators
    assert asked == [0, *range(5000, 5001 + generators)]


def of_memory(monkeypatch: pytest.MonkeyPatch, gib: float) -> None:
    """Makes this a machine with so much memory."""
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=int(gib * 2**30)))


@pytest.mark.parametrize(("there", "queue"), [(2, 1), (6, 3), (8, 4), (24, 4)])
def test_nobody_is_refused_the_memory_they_did_not_ask_for(
    monkeypatch: pytest.MonkeyPatch, there: float, queue: float
) -> None:
    """The queue is bounded at 4 GiB, or at half of what there is; the other half is enough for Spark."""
    of_memory(monkeypatch, there)
    assert check_experiment(experiment.build(GOOD)).bytes_max == queue * 2**30


def test_more_memory_than_there_is_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it was asked for; what the way out names can be had on that very machine."""
    of_memory(monkeypatch, 2)
    (problem,) = refused(GOOD | {"load": {"memory": "4GiB"}})
    assert (problem.setting, problem.got) == ("load.memory", "4GiB")
    assert "(2.0 GiB)" in problem.rule
    assert problem.way_out == "leave --memory out: 1 GiB"


@pytest.mark.parametrize(
    ("memory", "options", "got"),
    [
        ("5GiB", {}, "3072m and 5 GiB"),
        ("5GiB", {"driver_memory": "2g"}, "2g and 5 GiB"),
        (None, {"driver_memory": "4g"}, "4g and 3 GiB"),
    ],
)
def test_queue_and_heap_must_fit_together(
    monkeypatch: pytest.MonkeyPatch, memory: str | None, options: dict[str, str], got: str
) -> None:
    """One message that names both, with a way out that holds; an engine without a JVM shares with nobody."""
    of_memory(monkeypatch, 6)
    asked = GOOD | {"load": {"memory": memory}, "options": options}
    (problem,) = refused(asked)
    assert (problem.setting, problem.got) == ("option driver_memory", got)
    assert "--memory" in problem.rule
    assert problem.way_out == "--option driver_memory=3072m --memory 3072MiB, or less"
    check_experiment(experiment.build(GOOD | {"load": {"memory": "3072MiB"}, "options": {"driver_memory": "3072m"}}))
    check_experiment(experiment.build(GOOD | {"load": {"memory": memory}, "engine": "known"}))


def test_an_address_that_is_not_this_machines() -> None:
    """TEST-NET addresses belong to nobody."""
    (problem,) = refused(GOOD | {"bind": "192.0.2.1"})
    assert (problem.setting, problem.got) == ("bind", "192.0.2.1")


def test_out_that_is_a_file(tmp_path: Path) -> None:
    """A run folder cannot be made inside a file, nor below one."""
    (tmp_path / "file").touch()
    for out in ("file", "file/below"):
        (problem,) = refused(GOOD | {"out": str(tmp_path / out)})
        assert problem.setting == "out"
        assert "file" in problem.rule


def test_out_below_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """Told with everything else, for a misspelt path; `generate` makes the whole way to its folder."""
    (problem,) = refused(GOOD | {"out": str(tmp_path / "no" / "such")})
    assert (problem.setting, problem.rule) == ("out", "the folder above it must exist")
    check_experiment(experiment.build(GOOD | {"command": "generate", "out": str(tmp_path / "no" / "such")}))


def test_out_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that stands is named."""
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    (problem,) = refused(GOOD | {"out": str(tmp_path / "new")})
    assert problem.setting == "out"
    assert str(tmp_path) in problem.rule


def test_pinned_needs_two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """One core cannot be shared out."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    (problem,) = refused(GOOD | {"isolation": "pinned"})
    assert problem.setting == "isolation"
    assert "shared" in problem.way_out


def test_missing_java_is_the_machines_lack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is made before Java is found, and the message says how to get it."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(MachineError, match="Java 17 or later is needed") as caught:
        single.run_single(experiment.build(GOOD))
    assert caught.value.exit_code == 3
    assert "install" in str(caught.value)


def test_java_is_asked_for_by_engines_that_need_it_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result then says that there is none."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    single.require_machine(check_experiment(experiment.build(GOOD | {"engine": "known"})))
    assert environment()["java"] == "not installed"
    with pytest.raises(MachineError):
        single.require_machine(check_experiment(experiment.build(GOOD)))


def test_a_transport_that_the_engine_cannot_read_is_refused() -> None:
    """By what its capabilities say."""
    engine = replace(capabilities()["known"], transports=("pigeon",))
    (problem,) = check._transport_problems(experiment.build(GOOD), engine, 1)
    assert (problem.rule, problem.way_out) == ("is none that known can read", "--transport pigeon")


@pytest.mark.parametrize(
    ("command", "asked", "settings", "takers"),
    [
        ("sustain", {"load": {"rate": "1k", "profile": "step:200k@15s"}}, {"load.rate", "load.profile"},
         "run and generate"),
        ("run", {"search": {"quick": True, "start_rate": "1k"}}, {"search.quick", "search.start_rate"}, "sustain"),
        ("run", {"load": {"start": "2026-01-31T12:00:00", "of": "x"}}, {"load.start", "load.of"}, "generate"),
        ("generate", {"limits": ["p99<=2s"], "load": {"chunk": "20ms"}}, {"limits", "load.chunk"}, "run and sustain"),
    ],
)  # fmt: skip
def test_what_a_command_does_not_take_is_not_passed_over(
    command: str, asked: dict[str, Any], settings: set[str], takers: str
) -> None:
    """A file may say it, and the answer would be to another question; at its default it asks nothing."""
    problems = refused(GOOD | {"command": command} | asked)
    assert {problem.setting for problem in problems} == settings
    assert all(problem.rule == f"is no setting of {command}, only of {takers}" for problem in problems)
    plain = {"search": {"quick": False}, "load": {"profile": "constant", "rate": "100k", "bound": "30s"}}
    check_experiment(experiment.build(GOOD | {"command": command} | plain))


@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        ({"load": {"rate": "1G", "duration": "2700s"}}, False),
        ({"load": {"rate": "1G", "duration": "2500s"}}, True),
        ({"load": {"rate": "1G", "duration": "2900s", "profile": "step:900M@1s"}}, True),
        ({"load": {"rate": "1G", "duration": "8700s"}, "command": "generate"}, True),
        ({"load": {"rate": "1G", "duration": "8800s"}, "command": "generate"}, False),
        ({"load": {"duration": "1h"}, "search": {"start_rate": "1G"}, "command": "sustain"}, False),
    ],
)  # fmt: skip
def test_a_plan_must_hold_the_longest_extension(asked: dict[str, Any], fits: bool) -> None:
    """Else a trial would fail when it begins, after everything was started."""
    if fits:
        check_experiment(experiment.build(GOOD | asked))
    else:
        (problem,) = refused(GOOD | asked)
        assert "events" in problem.rule


# --- files ---


@pytest.mark.parametrize(
    ("text", "setting", "got"),
    [
        ('workload = "identity"\nenginee = "spark"\n', "enginee", "spark"),
        ('workload = "identity"\n[load]\nrat = 5\n', "load.rat", "5"),
        ('workload = "identity"\n[search]\nquik = true\n', "search.quik", "True"),
        ('engine = "spark"\n', "workload", "engine"),
        ('workload = "identity"\n[load]\nrate = "fast"\n', "load.rate", "fast"),
        ('workload = "identity"\nlimits = "p99<=2s"\n', "limits", "p99<=2s"),
        ("workload = identity\n", "FILE", "experiment.toml"),
        ('workload = "identity\n', "FILE", "experiment.toml"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, text: str, setting: str, got: str) -> None:
    """Unknown keys of every level, wrong values, and what is no TOML at all."""
    path = tmp_path / "experiment.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        experiment.read(path)
    (problem,) = caught.value.problems
    assert problem.setting == setting
    assert got in str(problem.got)
    assert problem.way_out


@pytest.mark.parametrize(
    "make", [lambda path: None, lambda path: path.mkdir(), lambda path: path.write_bytes(b"\xff\xfe")]
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, make: Any) -> None:
    """Missing, a folder, or not text."""
    path = tmp_path / "experiment.toml"
    make(path)
    with pytest.raises(InputError, match="FILE"):
        experiment.read(path)


def test_a_file_says_what_the_command_says(tmp_path: Path) -> None:
    """`--print-toml`, read again, is the same experiment, every setting included."""
    values = GOOD | {
        "load": {"rate": "1.5M", "duration": "2m", "warmup": "10s", "generators": 3, "chunk": "20ms"},
        "parameters": {"range": "10s"}, "options": {"spark.sql.shuffle.partitions": "4"}, "limits": ["p99<=2s"],
        "search": {"quick": True}, "keep_results": True, "port": 5000,
    }  # fmt: skip
    asked = experiment.build(values)
    path = tmp_path / "experiment.toml"
    path.write_text(experiment.to_toml(asked))
    assert experiment.read(path) == asked


# --- what follows from good input ---


def test_start_is_read_as_utc() -> None:
    """With and without a zone, to the microsecond."""

    def at(text: str) -> int | None:
        return start_us(experiment.build(GOOD | {"load": {"start": text}}))

    assert at("1970-01-01T00:00:01") == at("1970-01-01T01:00:01+01:00") == US
    assert at("2026-01-31T12:00:00.000001+00:00") == 1_769_860_800_000_001
    assert start_us(experiment.build(GOOD)) is None
    with pytest.raises(InputError, match=r"load\.start"):
        at("noon")


def test_spans_follow_from_what_was_asked() -> None:
    """A fresh engine warms up 45 s at least, a warm one a quarter of the events; the tail is the flow's reach."""
    ready = check_experiment(experiment.build(GOOD))
    fresh, warm = ready.spans(0, True, 60.0), ready.spans(0, False, 60.0)
    assert (fresh.measured_from_us, warm.measured_from_us) == (45 * US, 22.4 * US)
    assert fresh.end_us - fresh.measured_to_us == 9 * US
    assert ready.spans(0, True, 300.0).measured_from_us == pytest.approx(121.6 * US)
    asked = check_experiment(experiment.build(GOOD | {"load": {"warmup": "3s"}}))
    assert asked.spans(0, True, 60.0).measured_from_us == 3 * US


def test_chunks_are_short_where_the_rate_is_low() -> None:
    """50 ms at high rates, and where batches are a second apart or more; 10 ms at low ones, else what was asked."""
    for workload, options, low in (
        ("identity", {}, 10_000), ("windowed_aggregation", {}, 50_000),
        ("windowed_aggregation", {"trigger": "999 milliseconds"}, 10_000),
        ("identity", {"trigger": "1 second"}, 50_000),
    ):  # fmt: skip
        ready = check_experiment(experiment.build({"workload": workload, "options": options}))
        assert (ready.chunk_for(1e6), ready.chunk_for(1e5)) == (50_000, low), (workload, options)
    asked = check_experiment(experiment.build(GOOD | {"load": {"chunk": "25ms"}}))
    assert (asked.chunk_for(1e6), asked.chunk_for(1e5)) == (25_000, 25_000)


OF_SIZES: list[dict[str, Any]] = [
    {"workload": "identity"},
    {"workload": "identity", "parameters": {"payload_bytes": "100"}},
    {"workload": "filter"},
    {"workload": "count"},
    {"workload": "windowed_aggregation"},
    {"workload": "windowed_join", "parameters": {"payload_bytes": "50"}},
    {"workload": "spike_detection"},
]


@pytest.mark.parametrize("asked", OF_SIZES, ids=str)
def test_memory_cuts_the_bound_to_what_the_queue_holds(asked: dict[str, Any]) -> None:
    """The bound is in seconds of the rate; what is said of a memory it holds, and hardly more."""
    ready = check_experiment(experiment.build(asked | {"load": {"memory": "64MiB", "generators": 1, "rate": "1M"}}))
    assert ready.bound_s(1000.0) == (30.0, False)
    seconds, cut = ready.bound_s(1e6)
    assert cut
    assert held_s(ready, 1e6) == pytest.approx(1.01 * seconds, rel=0.005)


def test_the_ceiling_is_of_the_columns_that_generators_make(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of fields that the flow does not read, and of ids where it needs them."""
    asked: list[Any] = []
    monkeypatch.setattr(single, "measure_ceiling", lambda plan, columns: asked.append(columns) or 1.0)
    single.ceiling_of(check_experiment(experiment.build(GOOD)), 1000.0)
    assert asked == [{"purchases": ("gem_pack_id", "price", "event_time")}]


def held_s(ready: check.Ready, rate_per_s: float) -> float:
    """Seconds of a rate that a queue holds which nobody reads, in chunks of a millisecond."""
    plan, chunk_us, full_us = ready.plan(0, rate_per_s, 30.0), 1000, 30 * US
    queue = FlightQueue(tuple(ready.columns), full_us, ready.bytes_max, lambda: 0)
    try:
        for from_us in range(0, full_us, chunk_us):
            queue.offer(from_us, from_us + chunk_us, made(ready, plan, from_us, from_us + chunk_us), 0)
    except Overflow:
        return from_us / US
    raise AssertionError("the queue was never full")


def made(ready: check.Ready, plan: Plan, from_us: int, to_us: int) -> dict[str, pa.RecordBatch]:
    """What a generator makes of that time."""
    events = [(plan.count_before(i, 0, from_us), plan.count_before(i, 0, to_us)) for i in range(len(plan.streams))]
    return {
        stream.name: plan.batch(i, 0, *events[i], ready.made_columns[stream.name])
        for i, stream in enumerate(plan.streams)
    }


def test_a_profile_begins_where_the_warm_up_ends() -> None:
    """Until then the first rate holds; a fresh engine's warm-up rises towards it in its first four fifths, another's in
    its first 4 s.
    """
    asked = {
        "workload": "identity",
        "load": {"rate": "1k", "duration": "20s", "warmup": "10s", "profile": "step:3k@5s"},
    }
    ready = check_experiment(experiment.build(GOOD | asked))
    seconds = (0, 7, 8, 14, 16, 29)
    for fresh, expected in (
        (False, [175, 1000, 1000, 1000, 3000, 3000]),
        (True, [137.5, 662.5, 1000, 1000, 3000, 3000]),
    ):
        plan = ready.trial_plan(ready.spans(0, fresh, 20.0), 1000.0, fresh)
        per_s = [plan.planned_events(second * US, (second + 1) * US) for second in seconds]
        assert per_s == pytest.approx(expected, abs=1)


@pytest.mark.parametrize(
    ("name", "value"),
    [("trigger", "soon"), ("trigger", "5"), ("driver_memory", "9999g"), ("driver_memory", "lots"), ("buckets", "0")],
)
def test_an_option_that_spark_would_choke_on_is_refused_before_the_start(name: str, value: str) -> None:
    """Spark says so itself only half a minute later, and in its own words."""
    with pytest.raises(InputError) as refused:
        check_experiment(experiment.build({"workload": "identity", "options": {name: value}}))

    assert [problem.setting for problem in refused.value.problems] == [f"option {name}"]
    assert refused.value.problems[0].got == value


@pytest.mark.parametrize("duration_s", [30.0, 100.0, 600.0])
def test_a_warm_up_has_a_quarter_of_the_events(duration_s: float) -> None:
    """[K], fresh engine or not; a rising rate makes fewer events, so such a warm-up is longer."""
    ready = check_experiment(experiment.build(GOOD | {"load": {"rate": "1k", "duration": f"{duration_s}s"}}))
    for fresh in (False, True):
        spans = ready.spans(0, fresh, duration_s)
        plan = ready.trial_plan(spans, 1000.0, fresh)
        before = plan.planned_events(0, spans.measured_from_us)
        assert before >= 0.2499 * plan.planned_events(0, spans.measured_to_us)


def test_an_engine_of_one_sink_refuses_several() -> None:
    """Before anything starts, with the sinks by name; spark takes them."""
    bought = source("purchases", Schema.of(price="int"))
    several = flow(bought.sink("all"), bought.where("price > 90").sink("dear"))
    (problem,) = check._capability_problems(several, capabilities()["known"])
    assert (problem.rule, problem.got) == ("known writes to one sink only", "all, dear")
    assert list(check._capability_problems(several, capabilities()["spark"])) == []
    assert list(check._capability_problems(several.each()[0], capabilities()["known"])) == []


@pytest.mark.parametrize(
    "asked",
    [
        {"load": {"bound": "4.2s"}},
        {"workload": "identity", "load": {"bound": "1s"}},
        {"options": {"trigger": "10 seconds"}, "load": {"duration": "200s"}},
        {"workload": "windowed_join", "options": {"lowering.join": "packed"}, "load": {"bound": "5s"}},
    ],
)
def test_a_queue_that_holds_three_batches_is_enough(asked: dict[str, Any]) -> None:
    """By the interval that is in force for this flow; back to back batches need none."""
    check_experiment(experiment.build(GOOD | asked))


def test_the_way_out_of_a_queue_too_small_for_its_trigger_is_one() -> None:
    """The bound that is named passes."""
    (problem,) = refused(GOOD | {"options": {"trigger": "12 seconds"}, "load": {"duration": "240s"}})
    assert "trigger: 12 s" in problem.rule
    assert problem.way_out.startswith("--bound 36s, or ")
    options, load = {"trigger": "12 seconds"}, {"duration": "240s", "bound": "36s"}
    check_experiment(experiment.build(GOOD | {"options": options, "load": load}))


def test_a_span_that_can_only_be_undecided_is_refused_with_one_that_can_be_decided() -> None:
    """Windows and batches alike, the longer of both is named; it passes."""
    options, parameters = {"trigger": "10 seconds"}, {"range": "100s", "slide": "100s"}
    (problem,) = refused(GOOD | {"options": options, "parameters": parameters})
    assert "even extended to 180 s" in problem.rule
    assert "1 windows (slide: 100 s) where a verdict needs 5" in problem.rule
    assert "18 batches (trigger: 10 s) where a verdict needs 20" in problem.rule
    assert problem.way_out == "--duration 500s"
    check_experiment(
        experiment.build(GOOD | {"options": options, "parameters": parameters, "load": {"duration": "500s"}})
    )


def test_a_span_is_refused_only_where_no_extension_helps() -> None:
    """Three times 10 s hold five windows of 6 s, and 20 batches; input that is only written is not judged."""
    check_experiment(experiment.build(GOOD | {"load": {"duration": "10s"}, "parameters": {"slide": "6s"}}))
    check_experiment(experiment.build(GOOD | {"command": "generate", "load": {"duration": "2s"}}))


def test_a_level_that_no_span_carries_is_refused_with_one_that_can_be_decided() -> None:
    """60 s, extended to 180 s, hold 45 windows of 4 s; p99 needs 100. What is named instead passes."""
    (problem,) = refused(GOOD | {"limits": ["p99<=5s"]})
    assert (problem.setting, problem.got) == ("limits", "p99<=5s")
    assert "p99 needs 100 windows (slide: 4 s), and even extended to 180 s" in problem.rule
    assert problem.rule.endswith("holds 45")
    assert problem.way_out == '--limit "event_time_max<=5s", or p50, or --duration 400s'
    for asked in ({"load": {"duration": "400s"}, "limits": ["p99<=5s"]}, {"limits": ["p50<=5s", "event_time_max<=5s"]}):
        check_experiment(experiment.build(GOOD | asked))


def test_a_level_of_what_has_no_windows_is_carried_by_rows() -> None:
    """Row by row there are results enough in a second."""
    check_experiment(experiment.build({"workload": "identity", "limits": ["p99_9<=5s"]}))


def test_a_span_whose_rate_changes_gets_no_extension() -> None:
    """12 s hold three windows of 4 s; a constant rate may have nine."""
    load = {"rate": "100k", "duration": "12s"}
    (problem,) = refused(GOOD | {"load": load | {"profile": "step:200k@5s"}})
    assert "a span of 12 s (a rate that changes is not extended) holds 3 windows" in problem.rule
    check_experiment(experiment.build(GOOD | {"load": load}))
    (level,) = refused(GOOD | {"load": {"duration": "150s", "profile": "step:200k@5s"}, "limits": ["p99<=5s"]})
    assert level.rule.endswith("holds 37")


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[2] / "experiments").glob("*.toml")), ids=lambda p: p.stem
)
def test_the_experiments_there_are_pass(path: Path) -> None:
    """Bounds and spans of all of them."""
    check_experiment(experiment.read(path))


@pytest.mark.parametrize(("window", "warm_s", "fresh_s"), [("8s", 12.4, 45.0), ("60s", 64.0, 96.0)])
def test_a_warm_up_lasts_until_windows_have_filled_once(window: str, warm_s: float, fresh_s: float) -> None:
    """At the whole rate: an engine with half of its state is faster than it will be."""
    ready = check_experiment(experiment.build(GOOD | {"parameters": {"range": window, "slide": "4s"}}))
    assert ready.warmup_s(False, 30.0) == pytest.approx(warm_s)
    assert ready.warmup_s(True, 30.0) == pytest.approx(fresh_s)
