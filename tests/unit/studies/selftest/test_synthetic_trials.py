"""Whole trials on the engine `known` with a fault in them that no proof of the self-test plants."""

import signal
from typing import Any

import psutil
import pytest

from streamgauge.core.clock import US
from streamgauge.results.run import Result
from streamgauge.results.verdict import Check
from streamgauge.studies.run.run import create_folder
from streamgauge.studies.selftest.testbed import SyntheticBench, start_bench
from streamgauge.system.child_processes import send_signal, wait_until
from streamgauge.trial.policies import JudgedTrial
from streamgauge.trial.progress import snapshots

pytestmark = pytest.mark.process

RATE_PER_S, SPAN_S = 5000.0, 4.0
LOAD = {"warmup": 0.5}


def check_of(result: Result, name: str) -> Check:
    return next(check for check in result.verdict.checks if check.name == name)


class Stopper:
    """Stops the recorder once, in the measured span, for so long by the test bed's clock."""

    def __init__(self, bench: SyntheticBench, length_us: int) -> None:
        self._testbed, self._length_us, self.done = bench._conductor.testbed, length_us, False

    def __call__(self, shown: Any) -> None:
        """At a look; the runner waits here, while generators and engine go on."""
        if self.done or shown.phase != "measured":
            return
        self.done = True
        recorder = self._testbed.pids("recorder")
        send_signal(signal.SIGSTOP, recorder)
        try:
            assert wait_until(lambda: psutil.Process(*recorder).status() == psutil.STATUS_STOPPED, 60)
            until_us = self._testbed.clock.now_us() + self._length_us
            assert wait_until(lambda: self._testbed.clock.now_us() >= until_us, 60)
        finally:
            send_signal(signal.SIGCONT, recorder)


def test_a_recorder_that_is_stopped_is_not_charged_to_the_system() -> None:
    """Results look a second late, and the system was not: the driver says that it is its own doing."""
    with start_bench("identity", RATE_PER_S, {"capacity": "400k"}, LOAD, {}) as bench:
        stopper = Stopper(bench, US)
        trial = JudgedTrial(
            bench.resolved, RATE_PER_S, fresh=False, duration_s=SPAN_S, may_extend=False, probe_batches=False
        )
        bench._conductor.observe = snapshots(stopper)
        result: Any = bench._conductor.run(create_folder(bench.resolved), trial).result
    driver = check_of(result, "driver")
    assert (stopper.done, result.verdict.value, driver.state) == (True, "invalid", "invalid")
    assert "the recorder stood still for" in driver.sentence
    assert result.driver.recorder_stood_still_us >= 0.8 * US


def test_results_without_an_event_time_end_as_wrong_answers() -> None:
    """Of every 997th it is null: each is counted, none is in a latency, and the trial is judged to its end."""
    options = {"capacity": "400k", "fault": "untime", "fault_every": "997"}
    with start_bench("identity", RATE_PER_S, options, LOAD, {}) as bench:
        result: Any = bench.trial(RATE_PER_S, 2.0).result
        planted = len(bench.engine.facts()["planted_us"])
    verification = result.verification
    assert (planted > 0, verification.judged) == (True, True)
    assert (verification.extra, verification.wrong, verification.duplicate) == (planted, 0, 0)
    assert 0 < verification.missing <= planted  # what lies in the tail need not be there
    assert check_of(result, "answers").state == "failed"
    assert any(f"{planted} results of the trial carry no event time" in note for note in result.latency.notes)
