"""Short trials of every case on every engine: right answers, restarts, kills, parallelism.

Cases share a trial where an engine has several sinks. In `make test`, Spark runs every node in one session instead
(`test_nodes.py`, `test_expressions.py`), and is killed and restarted with applications (`test_life_of_spark.py`,
`test_whole_path.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.options_and_settings import build
from streamgauge.core.clock import US
from streamgauge.dataflow.builder import flow as flow_of
from streamgauge.dataflow.nodes import Flow
from streamgauge.dataflow.reach import reach_us, tail_us
from streamgauge.engines.registry import entry
from streamgauge.harness.testbed import TestBed
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.validate import _engine_flow, check
from streamgauge.system.child_processes import wait_until
from tests.engine_conformance.helpers_cases import CASES, ENGINES, RESTART_GAPS, Case, gap
from tests.helpers_broker_trials import InMidTrial, check_answers, check_results, require_jars, running, trial
from tests.helpers_engine_plugin import ENGINE
from tests.helpers_restart import Restart
from tests.helpers_verdicts import sentence_against

pytestmark = [pytest.mark.process, pytest.mark.long, pytest.mark.usefixtures("example")]
OF_FLOWS = [name for name in ENGINES if name != "external"]
"""`external` runs no flow of ours but programs: `tests/real/broker/programs/test_external.py`."""
TOGETHER = 6
"""So many cases share a trial."""
OPTIONS = {"spark-dstream": {"batch_interval": "500ms"}, "spark-rtm": {"trigger": "5 seconds"}}
REPEATS_RESULTS = ("spark-rtm",)
"""Engines that deliver at least once: after a restart, what came since they kept how far they were comes again."""
OF_ONE_TASK = ("spark-rtm",)
"""Engines that refuse a shuffle with a parallelism of 1."""


def marks_of(engine: str) -> list[pytest.MarkDecorator]:
    """What a trial of the engine starts."""
    if engine == ENGINE or not entry(engine).capabilities.needs_java:
        return []
    return [pytest.mark.spark, *([pytest.mark.broker] if engine == "spark-rtm" else [])]


def of_engine(engine: str, *values: object, kind: str = "") -> object:
    """Parameters of a test; `kind`: of the gap that the engine has there."""
    words = [each[0] if isinstance(each, tuple) else str(each) for each in values]
    marks = marks_of(engine)
    if kind:
        marks.append(pytest.mark.xfail(reason=f"{kind}: {engine}", raises=AssertionError, strict=True))
    return pytest.param(engine, *values, marks=marks, id="-".join([engine, *words]).replace(" ", "_"))


def groups() -> Iterator[object]:
    """(engine, names of cases): several where an engine has several sinks; none that it refuses."""
    for engine in OF_FLOWS:
        size = TOGETHER if engine != ENGINE and entry(engine).capabilities.several_sinks else 1
        for streams in dict.fromkeys(case.streams for case in CASES.values()):
            names = [name for name, case in CASES.items() if case.streams == streams and not gap(engine, name)]
            for first in range(0, len(names), size):
                yield of_engine(engine, tuple(names[first : first + size]))


def together(names: Sequence[str]) -> Flow:
    """The flows of several cases as one, whose sinks are named after them."""
    renamed = [
        Flow(tuple(replace(sink, name=f"{name.replace(' ', '_')}.{sink.name}") for sink in CASES[name].flow.sinks))
        for name in names
    ]
    return flow_of(*renamed)


@contextmanager
def started(
    root: Path, engine: str, flow: Flow, of: Case, parallelism: int | None = None
) -> Iterator[tuple[ResolvedExperiment, TestBed, RunFolder]]:
    """Generators, recorder and engine, running a flow over the streams of a case at its rate; ended at the end."""
    capabilities = entry(engine).capabilities
    if "broker" in {mark.name for mark in marks_of(engine)}:
        require_jars(engine)
    # While an engine is restarted nothing is read, however long that takes: the queue must not fill meanwhile.
    load = {"rate": of.rate, "warmup": "4s", "generators": 1 if engine == "spark-rtm" else 2, "bound": "5m"}
    asked = {
        "workload": of.streams, "engine": engine, "transport": capabilities.transports[0], "load": load,
        "out": str(root), "options": OPTIONS.get(engine, {}), "parallelism": parallelism,
    }  # fmt: skip
    plain, flow = check(build(asked)), _engine_flow(flow, capabilities) or flow
    resolved = replace(plain, flow=flow, reach_us=reach_us(flow), tail_us=2 * US + tail_us(flow))
    folder = RunFolder.create(root, "conformance", engine, datetime.now(UTC))
    with running(resolved, folder.path) as testbed:
        yield resolved, testbed, folder


@pytest.mark.parametrize(("engine", "names"), list(groups()))
def test_every_answer_is_right(tmp_path: Path, engine: str, names: tuple[str, ...]) -> None:
    """Every result that the plan implies comes once, and every event is read once."""
    with started(tmp_path, engine, together(names), CASES[names[0]]) as running_:
        judged = trial(*running_)
    check_answers(judged, sum(CASES[name].least for name in names))
    assert judged.verified is not None
    for name in names:
        sinks = [each for each in judged.verified.sinks if each.name.startswith(f"{name.replace(' ', '_')}.")]
        assert sum(each.verification.matched for each in sinks) >= CASES[name].least, name


PARALLEL = [
    of_engine(engine, parallelism)
    for engine in OF_FLOWS
    for parallelism in (1, 4)
    if engine != ENGINE and entry(engine).capabilities.sets_parallelism
    if parallelism > 1 or engine not in OF_ONE_TASK
]


@pytest.mark.parametrize(("engine", "parallelism"), PARALLEL)
def test_answers_are_right_with_any_parallelism(tmp_path: Path, engine: str, parallelism: int) -> None:
    """Of windows, whose rows go from task to task; the result says how many it was started with."""
    case = CASES["hopping window"]
    with started(tmp_path, engine, case.flow, case, parallelism) as running_:
        judged = trial(*running_)
    check_answers(judged, case.least)
    assert judged.result.environment["parallelism"] == parallelism


@pytest.mark.parametrize(
    "engine", [of_engine(engine, kind=RESTART_GAPS.get(engine, "")) for engine in OF_FLOWS if engine != "spark"]
)
def test_answers_are_right_across_a_restart(tmp_path: Path, engine: str, restart: Restart) -> None:
    """The engine is killed in mid-trial and started again: nothing is lost or wrong, and only what an engine of at
    least once repeats comes twice. `spark`: `test_sinks.py`, `test_whole_path.py`.
    """
    case = CASES["source"]
    with started(tmp_path, engine, case.flow, case) as (resolved, testbed, folder):
        judged = trial(resolved, testbed, folder, on_progress=restart.once(testbed))
    restart.check(judged)
    if engine not in REPEATS_RESULTS:
        check_results(judged, case.least)
    found = judged.result.verification
    assert found is not None
    assert judged.record.drained
    assert found.judged
    assert (found.missing, found.extra, found.wrong, found.late) == (0, 0, 0, 0), found.examples
    assert found.matched == found.expected >= case.least


@pytest.mark.parametrize("engine", [of_engine(engine) for engine in OF_FLOWS if engine != "spark"])
def test_a_killed_engine_ends_the_trial_and_leaves_nothing(tmp_path: Path, engine: str) -> None:
    """`connected` fails with the exit code; no process of the system under test is left. `spark`:
    `test_life_of_spark.py`.
    """
    case = CASES["source"]
    with started(tmp_path, engine, case.flow, case) as (resolved, testbed, folder):
        pids = testbed.engine.pids()
        assert pids
        kill = InMidTrial(lambda: psutil.Process(pids[0]).kill())
        judged = trial(resolved, testbed, folder, on_progress=kill)
        assert kill.done
        assert "-9" in sentence_against(judged.result.verdict, "connected")
    assert wait_until(lambda: not any(map(_alive, pids)), 20)


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
