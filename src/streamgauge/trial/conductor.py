"""The life of one trial on a started test bed: conduct it, verify the answers, judge, and write the run folder.

`TrialConductor` does these steps in order:

1. `start`: the processes of the test bed.
2. `conduct`: `trial.phases.PhaseRunner` runs warm-up, span, tail and drain. The trial's `TrialPolicy` decides whether a
   phase is extended or ended early. The outcome is a `TrialRecord`.
3. `trial.conclusion.conclude` verifies, judges and writes. The outcome is a `TrialResult`.

`run` is steps two and three. `drain` empties the engine before the next trial.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import Experiment
from streamgauge.core.clock import US, Clock
from streamgauge.core.errors import DriverError, EngineError, InputError, MachineError, StreamgaugeError
from streamgauge.core.trial import ProgressText, TrialSpans
from streamgauge.engines.spi import Engine
from streamgauge.harness.start_processes import TestBed, TestBedSettings
from streamgauge.loadgen.plan import Plan
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.results.codes import Cause
from streamgauge.results.text.sentences import ADVICE
from streamgauge.results.verdict import Verdict
from streamgauge.stats.bootstrap import prepare
from streamgauge.system.cpu_pinning import pin_threads
from streamgauge.system.process_limits import LimitWatch
from streamgauge.trial.conclusion import EngineReport, conclude, engine_report
from streamgauge.trial.events import Draining, Observer, VerdictReached, ignore
from streamgauge.trial.phases import PhaseRunner, TrialPolicy, drain_backlog
from streamgauge.trial.policies import JudgedTrial
from streamgauge.trial.progress import report_start_progress
from streamgauge.trial.trial_result import TrialResult

START_LEAD_US = 700_000
"""Time that the generators need for their first chunk."""


def testbed_settings(resolved: ResolvedExperiment) -> TestBedSettings:
    """The test bed that an experiment needs."""
    experiment, port = resolved.experiment, resolved.experiment.port
    return TestBedSettings(
        flow=resolved.lineage_flow, columns=resolved.columns, generators=resolved.generators,
        partitions=resolved.partitions, bound_us=round(resolved.queue_s * US), bytes_max=resolved.bytes_max,
        frontier=experiment.load.frontier, options=resolved.engine_options, master=experiment.master,
        driver_cpus=resolved.driver_cpus, transport=experiment.transport,
        transport_options=resolved.transport_options, keys=resolved.keys, host=experiment.bind,
        ports=tuple(range(port, port + resolved.partitions + 1)) if port else (),
        program=resolved.workload.program_topics,
    )  # fmt: skip


def stores_engine_progress(experiment: Experiment) -> bool:
    """Whether the run folder stores the engine's own progress; `--option probes=off` turns it off."""
    return experiment.options.get("probes") != "off"


def next_start(testbed: TestBed, gap_us: int = 0) -> int:
    """The next whole second that leaves the generators time for their first chunk.

    `gap_us`: event time since the last event that the test bed offered. See `JudgedTrial.gap_us`.
    """
    earliest_us = max(testbed.clock.now_us() + START_LEAD_US, testbed.reached_us + gap_us)
    return -(-earliest_us // US) * US


class TrialConductor:
    """Owns the life of the trials on one test bed: start, warm up, conduct, drain, verify, judge, write."""

    def __init__(
        self,
        resolved: ResolvedExperiment,
        testbed: TestBed,
        observe: Observer = ignore,
        ceiling_per_s: float | None = None,
    ) -> None:
        self.resolved, self.testbed, self.observe, self.ceiling_per_s = resolved, testbed, observe, ceiling_per_s
        self.last_log: TrialLog | None = None
        """Log of the last trial, whose backlog is drained before the next one."""

    @classmethod
    @contextmanager
    def on_test_bed(
        cls,
        resolved: ResolvedExperiment,
        make_engine: Callable[[], Engine],
        folder: Path,
        observe: Observer = ignore,
        *,
        options: Mapping[str, str] | None = None,
        ceiling_per_s: float | None = None,
    ) -> Iterator[TrialConductor]:
        """A conductor with its own test bed, not yet started. `options`: engine options beside the experiment's."""
        settings = testbed_settings(resolved)
        settings = replace(settings, options={**settings.options, **(options or {})})
        with TestBed(settings, make_engine, folder, Clock.fixed_now()) as testbed:
            try:
                yield cls(resolved, testbed, observe, ceiling_per_s)
            except StreamgaugeError:
                raise
            except Exception as defect:
                # The command line keeps the traceback there.
                vars(defect).setdefault("folder", str(folder))
                raise

    def start(self, rate_per_s: float, note: str, folder: RunFolder | None = None) -> None:
        """Starts the processes, and loads what the verdict needs. If that fails, `folder` gets the reason."""
        stage, limits = ProgressText(""), LimitWatch()
        with (
            record_start_failure(folder),
            report_start_progress(self.observe, note, lambda: stage() or self.testbed.stage()),
        ):
            try:
                self.testbed.start(self.resolved.plan(next_start(self.testbed) - START_LEAD_US, rate_per_s, 1.0))
            except (EngineError, DriverError) as error:
                if limit := limits.reached(str(error)):
                    raise MachineError(f"{limit}. Raise that limit ({error})") from None
                raise
            stage.set("loading the statistics of the verdict")
            prepare()

    def conduct(self, plan: Plan, spans: TrialSpans, rate_per_s: float, policy: TrialPolicy) -> TrialRecord:
        """Offers a plan to its end, or until the policy stops it, without a verdict."""
        runner = PhaseRunner(self.testbed, plan, spans, self.resolved.chunk_for(rate_per_s), policy, self.observe)
        with pin_threads(self.resolved.driver_cpus):
            record = runner.conduct()
        self.last_log = record.trial_log
        return record

    def run(self, folder: RunFolder, trial: JudgedTrial) -> TrialResult:
        """Conducts, verifies and judges one trial; the folder is complete when this returns."""
        prepare()
        spans = trial.spans(next_start(self.testbed, trial.gap_us))
        record = self.conduct(trial.plan(spans), spans, trial.rate_per_s, trial)
        trial.before_judging(self.testbed, record, self.observe)
        asks_engine = trial.probe_batches and not record.engine_failed
        report = engine_report(self.testbed, record) if asks_engine else EngineReport()
        if record.interrupted:
            # Stop first: verdict and report take long beside a busy engine, and the user waits.
            self.testbed.stop()
        result = conclude(
            self.resolved, self.testbed, self.observe, self.ceiling_per_s, folder, trial, record, report
        )  # fmt: skip
        self.observe(VerdictReached(result, self.testbed))
        return result

    def drain(self, timeout_s: float) -> bool:
        """Drains the last trial's backlog. Returns whether everything is committed within `timeout_s`."""
        self.observe(Draining())
        return self.last_log is None or drain_backlog(self.testbed, self.last_log, timeout_s)


@contextmanager
def record_start_failure(folder: RunFolder | None) -> Iterator[None]:
    """Writes the reason of a failed start into the run folder."""
    try:
        yield
    except StreamgaugeError as error:
        if folder is not None:
            ways_out = [problem.way_out for problem in error.problems] if isinstance(error, InputError) else []
            advice = "; ".join(ways_out) or ADVICE[Cause.START_FAILED]
            sentence = str(error).splitlines()[0]
            verdict = Verdict(value="invalid", cause=Cause.START_FAILED, sentence=sentence, advice=advice)
            error.folder = str(folder.path)
            folder.write_result(folder.read_result().model_copy(update={"verdict": verdict, "folder": error.folder}))
        raise
