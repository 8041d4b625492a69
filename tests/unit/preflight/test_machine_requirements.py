"""What this machine has and lacks, collected from the packages, and the refusal of runs by it."""

import resource
import tempfile
from pathlib import Path
from unittest.mock import Mock

import pytest

from streamgauge.config.experiment import build
from streamgauge.core.errors import MissingOnMachine, Problem
from streamgauge.core.machine_check import MachineCheck
from streamgauge.engines.spi import EnginePlugin
from streamgauge.preflight import machine_requirements
from streamgauge.preflight.settings_checks import check
from streamgauge.workloads.registry import Workload
from tests.unit.helpers_refusals import problem_of
from tests.unit.helpers_requests import GOOD, checked

PROBLEM = Problem("wheel", "must be there", None, "buy one")


@pytest.fixture
def faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A machine that lacks Java, open files and a temporary folder: the settings that its refusal names."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (100, 100) if kind == resource.RLIMIT_NOFILE else (-1, -1))
    monkeypatch.setattr(tempfile, "gettempdir", Mock(side_effect=FileNotFoundError("none")))
    return ["JAVA_HOME", "ulimit -n", "TMPDIR"]


def test_a_run_is_refused_with_everything_that_is_missing(faults: list[str]) -> None:
    """At once, before any jar is fetched. An engine without Java needs no Java."""
    resolved = [check(build({"command": "run", "workload": "identity", "engine": name})) for name in ("spark", "known")]
    with pytest.raises(MissingOnMachine) as refused:
        machine_requirements.require_machine(*resolved)
    assert [one.setting for one in refused.value.problems] == faults
    with pytest.raises(MissingOnMachine) as refused:
        machine_requirements.require_machine(resolved[1])
    assert [one.setting for one in refused.value.problems] == faults[1:]


def test_what_refuses_a_run_is_missing(faults: list[str]) -> None:
    """By the same settings."""
    checks = machine_requirements.machine_checks()
    assert not machine_requirements.can_start(checks)
    missing = [one.setting for each in checks if each.status == "missing" for one in each.problems]
    assert missing == faults


def test_every_check_has_a_name_of_its_own() -> None:
    """Which scripts look for."""
    names = [one.name for one in machine_requirements.machine_checks()]
    assert len(names) == len(set(names))
    assert {"java", "memory", "processors", "default_run", "clock", "background_load", "flink_jars"} <= set(names)


@pytest.mark.parametrize(("missing", "starts"), [
    (MachineCheck("a", "all"), True), (MachineCheck("a", "few", (PROBLEM,), prevents_start=False), True),
    (MachineCheck("a", "none", (PROBLEM,), needed_with="--engine flink"), True),
    (MachineCheck("a", "none", (PROBLEM,)), False),
])  # fmt: skip
def test_only_what_every_run_needs_keeps_a_default_run_from_its_start(missing: MachineCheck, starts: bool) -> None:
    """No warning does, and nothing that only other runs need."""
    assert machine_requirements.can_start([MachineCheck("b", "good"), missing]) is starts


def test_a_default_run_must_be_accepted_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the folder in which the command runs: it takes the run folder."""
    monkeypatch.chdir(tmp_path)
    experiment = build(machine_requirements.DEFAULT_RUN)
    assert machine_requirements.default_run_check(experiment).status == "good"
    (tmp_path / "runs").touch()
    refused = machine_requirements.default_run_check(experiment)
    assert (refused.status, [one.setting for one in refused.problems]) == ("missing", ["out"])


def test_brokers_are_looked_at_where_they_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the broker that a run would start. One that does not answer is missing."""
    monkeypatch.setattr("streamgauge.transports.kafka.topics.ANSWER_TIMEOUT_S", 0.5)
    checks = {one.name: one for one in machine_requirements.machine_checks("127.0.0.1:9")}
    assert (checks["brokers"].status, checks["brokers"].needed_with) == ("missing", "--brokers 127.0.0.1:9")
    assert "broker_jars" in checks


@pytest.mark.parametrize("brokers", ["", "no-port", "a:b"])
def test_a_text_that_names_no_brokers_is_refused(brokers: str) -> None:
    """Before anything is looked at."""
    assert problem_of(machine_requirements.machine_checks, brokers).setting == "transport option brokers"


def test_the_commit_is_that_of_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is committed, or changed, while a trial runs is not what it ran."""
    monkeypatch.setattr(machine_requirements.machine, "commit", commit := Mock())
    machine_requirements.require_machine(checked(GOOD | {"engine": "known"}))
    commit.assert_called_once_with()


def test_jars_are_had_before_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for all trials on an engine over a transport, with the options of both."""
    monkeypatch.setattr(machine_requirements.engines, "require", require := Mock())
    plugin = type(machine_requirements.engines.entry("spark"))
    monkeypatch.setattr(plugin, "require_master", master := Mock())
    trials = [checked(GOOD | {"options": {"trigger": trigger}}) for trigger in ("1 second", "2 seconds")]
    machine_requirements.require_machine(*trials)
    require.assert_called_once_with("spark", "memory", {})
    assert [call.args[1]["trigger"] for call in master.call_args_list] == ["1 second", "2 seconds"]


def test_every_trial_of_a_study_needs_its_resources(monkeypatch: pytest.MonkeyPatch) -> None:
    """A level that the cluster cannot give is refused before the first trial, and each level is looked at once."""
    monkeypatch.setattr(EnginePlugin, "require_master", require := Mock())
    machine_requirements.require_machine(
        *(checked(GOOD | {"engine": "known", "parallelism": number}) for number in (1, 2, 2))
    )
    assert [call.args for call in require.call_args_list] == [(None, {}, 1), (None, {}, 2)]


def test_what_a_workload_needs_is_looked_for_before_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for all trials of it, such as the jars that a program's file names."""
    calls: list[str] = []
    monkeypatch.setattr(Workload, "require", lambda workload: calls.append(workload.name))
    machine_requirements.require_machine(
        *(checked(GOOD | {"engine": "known", "parallelism": number}) for number in (1, 2))
    )
    assert calls == [GOOD["workload"]]
