"""Short trials of every case on the engines that need no Java: all answers right, and a kill leaves nothing behind.

Spark's engines run every node in one session (`test_nodes.py`) and in trials of their own (the other modules here).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.options_and_settings import build
from streamgauge.core.clock import US
from streamgauge.dataflow.reach import reach_us, tail_us
from streamgauge.engines.registry import capabilities
from streamgauge.harness.testbed import TestBed
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.validate import check
from streamgauge.system.child_processes import wait_until
from tests.engine_conformance.helpers_cases import CASES, ENGINES, Case, gap
from tests.helpers_broker_trials import InMidTrial, check_answers, running, trial
from tests.helpers_engine_plugin import ENGINE
from tests.helpers_verdicts import sentence_against

pytestmark = [pytest.mark.process, pytest.mark.long, pytest.mark.usefixtures("example")]
WITHOUT_JAVA = [name for name in ENGINES if name == ENGINE or not capabilities()[name].needs_java]
PAIRS = [(engine, case) for engine in WITHOUT_JAVA for case in CASES if not gap(engine, case)]


@contextmanager
def started(root: Path, engine: str, case: Case) -> Iterator[tuple[ResolvedExperiment, TestBed, RunFolder]]:
    """Generators, recorder and engine, running the flow of a case; ended at the end."""
    load = {"rate": "5k", "warmup": "2s", "generators": 2}
    plain = check(build({"workload": case.streams, "engine": engine, "load": load, "out": str(root)}))
    tail = 2 * US + tail_us(case.flow)
    resolved = replace(plain, flow=case.flow, reach_us=reach_us(case.flow), tail_us=tail)
    folder = RunFolder.create(root, "conformance", engine, datetime.now(UTC))
    with running(resolved, folder.path) as testbed:
        yield resolved, testbed, folder


@pytest.mark.parametrize(("engine", "case"), PAIRS, ids=lambda word: word.replace(" ", "_"))
def test_every_answer_is_right(tmp_path: Path, engine: str, case: str) -> None:
    """Every result that the plan implies comes once, and every event is read once."""
    with started(tmp_path, engine, CASES[case]) as running_:
        judged = trial(*running_)
    check_answers(judged, CASES[case].least)


@pytest.mark.parametrize("engine", [engine for engine, case in PAIRS if case == "source"])
def test_a_killed_engine_ends_the_trial_and_leaves_nothing(tmp_path: Path, engine: str) -> None:
    """`connected` fails with the exit code; no process of the system under test is left."""
    with started(tmp_path, engine, CASES["source"]) as (resolved, testbed, folder):
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
