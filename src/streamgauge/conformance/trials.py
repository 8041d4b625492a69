"""An engine under test, the trials that the suite runs on it, and what every one of them must show."""

import pkgutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import Experiment, build
from streamgauge.conformance.cases import CASES, WORKLOAD, sink_of
from streamgauge.core.errors import InputError, MachineError, Problem, nearest
from streamgauge.engines import registry
from streamgauge.engines.conformance import TestConf
from streamgauge.engines.spi import Capabilities, EnginePlugin
from streamgauge.harness.start_processes import TestBed
from streamgauge.preflight.machine_requirements import require_machine
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.settings_checks import check
from streamgauge.system.child_processes import is_running, send_signal
from streamgauge.trial.conductor import TrialConductor
from streamgauge.trial.events import PhaseBegan, Progress, TrialEvent
from streamgauge.trial.policies import JudgedTrial
from streamgauge.trial.trial_result import TrialResult
from streamgauge.workloads.registry import added

WARMUP, DURATION_S = "4s", 6.0
DRAIN_S = 240.0
"""How long results may be waited for: after a restart, on a slow machine."""
QUEUE = "5m"
"""Nothing is read while an engine is started again, and the driver's queue must not fill meanwhile."""


@dataclass(frozen=True)
class Subject:
    """An engine under test."""

    engine: str
    conf: TestConf

    @cached_property
    def plugin(self) -> EnginePlugin:
        return registry.entry(self.engine)

    @property
    def capabilities(self) -> Capabilities:
        return self.plugin.capabilities

    @property
    def transports(self) -> tuple[str, ...]:
        """The transports to try; most cases run over the first."""
        return self.conf.transports or self.capabilities.transports[:1]

    @property
    def cases(self) -> list[str]:
        """The names of the cases that it must run."""
        return [name for name in CASES if not self.conf.gap(name)]

    def problems(self, *cases: str, parallelism: int | None = None) -> Sequence[Problem]:
        """What the checks before a run say against a flow."""
        try:
            with added(WORKLOAD):
                check(self.experiment(*cases, parallelism=parallelism), new_folder=False)
        except InputError as error:
            return error.problems
        return ()

    def experiment(
        self, *cases: str, transport: str = "", encoding: str = "", parallelism: int | None = None, out: str = ""
    ) -> Experiment:
        """A run of cases over the same streams."""
        load = {"rate": CASES[cases[0]].rate, "warmup": WARMUP, "generators": self.conf.generators, "bound": QUEUE}
        values: dict[str, Any] = {
            "workload": WORKLOAD.name, "parameters": {"cases": ",".join(cases)}, "engine": self.engine, "load": load,
            "transport": transport or self.transports[0], "options": dict(self.conf.options),
            "parallelism": parallelism, "transport_options": {"encoding": encoding} if encoding else {},
        }  # fmt: skip
        return build(values | ({"out": out} if out else {}))


def subject(engine: str) -> Subject:
    """An engine with its `TestConf`. Raises InputError if it does not exist or runs no streams."""
    names = registry.streaming_engines()
    if engine not in names:
        rule, way_out = f"must be one of {', '.join(names)}", f"--streamgauge-engine {nearest(engine, names)}"
        raise InputError(Problem("engine", rule, engine, way_out))
    at = registry.entry(engine).conformance
    return Subject(engine, pkgutil.resolve_name(at) if at else TestConf())


@dataclass(frozen=True)
class Started:
    """A started test bed with the engine on it."""

    resolved: ResolvedExperiment
    conductor: TrialConductor
    folder: RunFolder

    def trial(self) -> TrialResult:
        """A short trial: conducted, verified by the oracle, judged and written as one of `run`."""
        trial = JudgedTrial(
            self.resolved, self.resolved.experiment.load.rate, fresh=True, duration_s=DURATION_S, may_extend=False,
            drain_s=DRAIN_S,
        )  # fmt: skip
        return self.conductor.run(self.folder, trial)


@contextmanager
def started(
    of: Subject, out: Path, *cases: str, transport: str = "", encoding: str = "", parallelism: int | None = None
) -> Iterator[Started]:
    """Generators, recorder and engine, running; ended at the end. Skips the test if this machine lacks a library."""
    with added(WORKLOAD):
        resolved = check(
            of.experiment(*cases, transport=transport, encoding=encoding, parallelism=parallelism, out=str(out))
        )
        try:
            require_machine(resolved)
        except MachineError as error:
            pytest.skip(str(error))
        folder, rate = RunFolder.create(out, WORKLOAD.name, of.engine, datetime.now(UTC)), resolved.experiment.load.rate
        make = registry.starter_of(of.engine, resolved.sut_cpus, parallelism)
        with TrialConductor.on_test_bed(resolved, make, folder.path) as conductor:
            conductor.start(rate, f"starting {of.engine}", folder)
            yield Started(resolved, conductor, folder)


class Kill:
    """An observer that kills the first process of the SUT once, as the measured span begins."""

    def __init__(self, testbed: TestBed) -> None:
        self.pids = testbed.engine.pids()
        self.done = False

    def __call__(self, event: TrialEvent) -> None:
        if isinstance(event, PhaseBegan) and event.phase == "measured" and not self.done:
            self.done = True
            send_signal(signal.SIGKILL, self.pids[:1])

    def alive(self) -> list[int]:
        """The processes of the SUT that are left."""
        return [pid for pid in self.pids if is_running(pid)]


class Restart:
    """An observer that kills the engine and starts it again once, when every sink has results and the engine, if it
    keeps any, a checkpoint; or when the recorder has reported `commits_since` more commits.
    """

    def __init__(self, testbed: TestBed, commits_since: int = 0) -> None:
        self._testbed, self._commits_since = testbed, commits_since
        self._until = float("inf")
        self.killed_us = 0

    def __call__(self, event: TrialEvent) -> None:
        if self.killed_us or not isinstance(event, Progress):
            return
        commits = event.record.trial_log.commits
        if {commit.sink for commit in commits} >= set(self._testbed.sinks) and self._testbed.engine_can_restart():
            self._until = min(self._until, len(commits) + self._commits_since)
        if len(commits) >= self._until:
            self.killed_us = self._testbed.clock.now_us()
            self._testbed.restart_engine()

    def check(self, judged: TrialResult) -> None:
        """Results came before the restart and after it. A restart that did not happen is no known gap either."""
        if not self.killed_us:
            pytest.fail("it gave no results that could be lost by a restart, or no checkpoint")
        assert judged.record.engine_failed == ""
        commits = judged.record.trial_log.commits
        assert any(commit.committed_us > self.killed_us for commit in commits), "no results came after the restart"


def check_answers(judged: TrialResult, cases: Sequence[str]) -> None:
    """Every result that the plan implies came once and is right; every event was read and committed once."""
    check_results(judged, sum(CASES[name].least for name in cases))
    assert judged.verified is not None
    if len(cases) > 1:
        matched = {each.name: each.verification.matched for each in judged.verified.sinks}
        for name in cases:
            of_case = sum(count for sink, count in matched.items() if sink.startswith(sink_of(name)))
            assert of_case >= CASES[name].least, f"{name}: only {of_case} results"
    driver = judged.result.driver
    assert driver is not None
    assert driver.events_planned == driver.events_offered == driver.events_handed_out == driver.events_committed


def check_results(judged: TrialResult, least: int) -> None:
    """Every result is right by the oracle, as far as the promised delivery goes."""
    found = judged.result.verification
    assert found is not None
    assert judged.record.engine_failed == ""
    assert (judged.record.drained, found.judged, found.independent) == (True, True, True)
    assert found.fault_count == 0, f"{found.faults}, such as {found.examples}"
    assert found.matched == found.expected - found.allowed.get("missing", 0) >= least
