"""Runs trials on the synthetic engine: one start, many warm trials, in a temporary folder."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from streamgauge.config.experiment import build
from streamgauge.core.errors import DriverError, Interrupted
from streamgauge.core.trial import TrialSnapshot
from streamgauge.engines.synthetic.engine import SyntheticEngine
from streamgauge.engines.synthetic.plugin import SyntheticPlugin
from streamgauge.harness.start_processes import TestBed
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.settings_checks import check
from streamgauge.studies.run.run import create_folder
from streamgauge.system.child_processes import wait_until
from streamgauge.system.disk import Scratch
from streamgauge.trial.conductor import TrialConductor
from streamgauge.trial.events import Observer, Progress
from streamgauge.trial.phases import poll
from streamgauge.trial.policies import JudgedTrial
from streamgauge.trial.progress import snapshots
from streamgauge.trial.trial_result import TrialResult

ENGINE = SyntheticPlugin.capabilities.name
DRAIN_TIMEOUT_S = 30.0
HELD_TIMEOUT_S = 10.0
DISTURBED_MAX = 2
"""How often a trial is repeated if background load made it invalid."""


@dataclass(frozen=True)
class View:
    """Shows a self-test: permanent lines of progress, the state of the running trial, and finished items."""

    line: Callable[[str], None] = lambda _: None
    trial: Callable[[TrialSnapshot], None] = lambda _: None
    item: Callable[[str], None] = lambda _: None


SILENT = View()


class HeldBackTrial(JudgedTrial):
    """A trial that is judged after the engine has sent the rows that it delays beyond the deadline."""

    def __init__(
        self, resolved: ResolvedExperiment, rate_per_s: float, duration_s: float, engine: SyntheticEngine
    ) -> None:
        super().__init__(
            resolved, rate_per_s, fresh=False, duration_s=duration_s, may_extend=False, probe_batches=False
        )
        self.interval_s, self.closes_late = 0.0, ()
        self._engine = engine

    def before_judging(self, testbed: TestBed, record: TrialRecord, observe: Observer) -> None:
        def all_released() -> bool:
            observe(Progress(record, testbed.clock.now_us(), "waiting for the rows that the engine delays"))
            return not self._engine.facts()["held"]

        if not wait_until(all_released, HELD_TIMEOUT_S, 0.1):
            raise DriverError(f"the engine had not sent its delayed rows after {HELD_TIMEOUT_S:g} s")
        poll(testbed, record.trial_log)


class SyntheticBench:
    """A started test bed with a synthetic engine. `disturbed` counts the repeated trials."""

    def __init__(self, conductor: TrialConductor, engine: SyntheticEngine, view: View) -> None:
        self.resolved, self._conductor, self.engine, self._view = conductor.resolved, conductor, engine, view
        self.disturbed = 0

    def trial(self, rate_per_s: float, duration_s: float, may_extend: bool = False) -> TrialResult:
        """One warm trial, judged; then its backlog is drained."""
        judged = self._judged(
            JudgedTrial(
                self.resolved,
                rate_per_s,
                fresh=False,
                duration_s=duration_s,
                may_extend=may_extend,
                probe_batches=False,
            )
        )
        if not self._conductor.drain(DRAIN_TIMEOUT_S):
            raise DriverError("the backlog of a trial could not be drained, so no other trial can follow")
        return judged

    def undisturbed(self, rate_per_s: float, duration_s: float) -> TrialResult:
        """A trial that may be extended, and is repeated if background load disturbed the driver."""
        for _ in range(DISTURBED_MAX):
            judged = self.trial(rate_per_s, duration_s, may_extend=True)
            if judged.result.verdict.value != "invalid":
                return judged
            self.disturbed += 1
            self._view.line(f"repeated: {judged.result.verdict.sentence}")
        return self.trial(rate_per_s, duration_s, may_extend=True)

    def trial_with_held_back_rows(self, rate_per_s: float, duration_s: float) -> TrialResult:
        """One trial that is judged after the engine has sent its delayed rows."""
        return self._judged(HeldBackTrial(self.resolved, rate_per_s, duration_s, self.engine))

    def _judged(self, trial: JudgedTrial) -> TrialResult:
        judged = self._conductor.run(create_folder(self.resolved), trial)
        if judged.result.verdict.value == "interrupted":
            raise Interrupted("the self-test was stopped; it proves nothing")
        return judged


@contextmanager
def start_bench(
    workload: str,
    rate_per_s: float,
    options: dict[str, str],
    load: dict[str, Any],
    parameters: dict[str, Any],
    view: View = SILENT,
    tail_us: int | None = None,
    recorder_skew_us: int = 0,
) -> Iterator[SyntheticBench]:
    """A bench for a workload; `load`: further settings of the experiment's load.

    `view` shows its start and its trials. `tail_us` replaces the tail that the flow's reach needs.
    `recorder_skew_us` is how far the recorder's clock is ahead.
    """
    with Scratch("selftest") as folder:
        resolved = check(
            build({
                "workload": workload, "engine": ENGINE, "parameters": parameters, "options": options, "out": folder,
                "load": {"chunk": "50ms", "generators": 1, "duration": "10s", **load, "rate": rate_per_s},
            })
        )  # fmt: skip
        resolved = resolved if tail_us is None else replace(resolved, tail_us=tail_us)
        engine = SyntheticEngine(resolved.sut_cpus)
        with TrialConductor.on_test_bed(
            resolved, lambda: engine, Path(folder) / "testbed", snapshots(view.trial)
        ) as conductor:
            conductor.testbed.settings = replace(conductor.testbed.settings, recorder_skew_us=recorder_skew_us)
            conductor.start(rate_per_s, "starting the synthetic engine")
            yield SyntheticBench(conductor, engine, view)
