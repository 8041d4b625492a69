"""cli: `doctor` shows what a machine has and lacks."""

import json
import resource
from pathlib import Path
from typing import Any

import pytest

from streamgauge.core.errors import Problem
from streamgauge.core.machine_check import MachineCheck
from streamgauge.report.terminal.catalogue import show_machine
from streamgauge.transports.kafka import topics
from tests.unit.cli.helpers_commands import Invoke, assert_one_refusal

KEYS = ["name", "status", "found", "problems", "needed_with"]


@pytest.fixture(autouse=True)
def java(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java that only says its version."""
    program = tmp_path_factory.mktemp("java") / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(program.parents[1]))


def test_the_json_has_every_check(invoke: Invoke, stand: Path) -> None:
    """With the same keys for each; nothing is made."""
    done = invoke("doctor", "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, done.stderr, list(answer)) == (0, "", ["can_start", "checks"])
    assert answer["can_start"] is True
    assert [list(one) for one in answer["checks"]] == [KEYS] * len(answer["checks"])
    statuses = {one["name"]: one["status"] for one in answer["checks"]}
    assert [statuses[name] for name in ("java", "open_files", "temporary_folder", "default_run")] == ["good"] * 4
    assert list(stand.iterdir()) == []


def test_a_machine_that_lacks_java_is_exit_code_5(monkeypatch: pytest.MonkeyPatch, invoke: Invoke, stand: Path) -> None:
    """With what to do, on the screen as in the JSON."""
    for name in ("JAVA_HOME", "PATH"):
        monkeypatch.setenv(name, str(stand / "nowhere"))
    done = invoke("doctor", "--json")
    answer = json.loads(done.stdout)
    (found,) = (one for one in answer["checks"] if one["name"] == "java")
    assert (done.returncode, answer["can_start"], found["status"]) == (5, False, "missing")
    shown = invoke("doctor")
    assert (shown.returncode, shown.stderr) == (5, "")
    assert found["problems"][0]["way_out"] in shown.stdout


def test_a_warning_does_not_change_the_exit_code(monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
    """A default run could start."""
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (60, 60) if kind == resource.RLIMIT_CPU else (-1, -1))
    done = invoke("doctor", "--json")
    (limits,) = (one for one in json.loads(done.stdout)["checks"] if one["name"] == "process_limits")
    assert (done.returncode, limits["status"]) == (0, "warning")


@pytest.mark.parametrize("flag", ["--brokers", "--bootstrap-servers"])
def test_brokers_that_are_none_are_refused(invoke: Invoke, flag: str) -> None:
    assert_one_refusal(invoke("doctor", flag, "there"), "transport option brokers")


def test_a_default_run_needs_no_brokers_that_are_named(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code says that they are silent."""
    monkeypatch.setattr(topics, "ANSWER_TIMEOUT_S", 0.1)
    done = invoke("doctor", "--brokers", "127.0.0.1:9", "--json")
    answer = json.loads(done.stdout)
    (found,) = (one for one in answer["checks"] if one["name"] == "brokers")
    assert (done.returncode, answer["can_start"]) == (5, True)
    assert (found["status"], found["needed_with"]) == ("missing", "--brokers 127.0.0.1:9")


def answer_of(*checks: MachineCheck) -> dict[str, Any]:
    return {"can_start": True, "checks": [one.to_json() for one in checks]}


def test_what_is_not_good_is_followed_by_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    """Below what was found."""
    problem = Problem("wheel", "must be there", None, "buy one")
    show_machine(answer_of(MachineCheck("spare_wheel", "none", (problem,), False), MachineCheck("clock", "tsc")))
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[1:] == ["warning spare wheel none", "do: buy one", "good clock tsc"]
