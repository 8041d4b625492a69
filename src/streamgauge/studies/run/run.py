"""The `run` command: one trial on a fresh test bed, with a run folder and a report."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import Experiment
from streamgauge.dataflow.describe import describe
from streamgauge.engines.registry import starter_of
from streamgauge.preflight.generator_ceiling import ceiling_above_rate
from streamgauge.preflight.machine_requirements import require_machine
from streamgauge.preflight.resolved_experiment import ResolvedExperiment, may_extend
from streamgauge.preflight.sample_size import percentile_note
from streamgauge.preflight.settings_checks import check
from streamgauge.results.codes import Cause
from streamgauge.results.run import Result
from streamgauge.results.verdict import Verdict
from streamgauge.studies.run.prometheus import exported
from streamgauge.trial.conductor import TrialConductor, stores_engine_progress
from streamgauge.trial.events import Observer, OnResult, ignore
from streamgauge.trial.policies import JudgedTrial
from streamgauge.trial.trial_result import TrialResult
from streamgauge.user_workloads.lookup import with_absolute_paths

STOPPED_AT_START = "stopped at its start, before the measurement"


def create_folder(resolved: ResolvedExperiment, lock: Callable[..., None] = ignore) -> RunFolder:
    """Creates the run folder of an experiment, which it locks, and writes the experiment into it."""
    experiment = resolved.experiment
    folder = RunFolder.create(experiment.out or "runs", experiment.workload, experiment.engine, datetime.now(UTC))
    lock(folder.path)
    folder.write_experiment(experiment, resolved.workload.files)
    return folder


def run_single(experiment: Experiment, observe: Observer = ignore, on_result: OnResult = ignore) -> Result:
    """Checks, starts, runs, verifies, judges and reports. Raises the errors of `run_judged`."""
    return run_judged(experiment, observe, on_result=on_result)[0]


def run_judged(
    experiment: Experiment,
    observe: Observer = ignore,
    beside: Mapping[str, str] | None = None,
    on_result: OnResult = ignore,
) -> tuple[Result, TrialResult | None]:
    """The same, with what the trial left to judge; None if it was stopped before.

    `beside`: engine options that are not part of the experiment.

    Raises:
        InputError, MachineError: before anything was started, for example a rate above the generators' ceiling.
        EngineError, DriverError: the engine or the driver never started; the folder says so.
    """
    resolved = check(with_absolute_paths(experiment))
    require_machine(resolved)
    ceiling = ceiling_above_rate(resolved)
    judged: TrialResult | None = None
    with exported(resolved.experiment, observe) as observe_all:
        folder = create_folder(resolved)
        try:
            judged = _conducted(resolved, folder, observe_all, ceiling, beside or {})
            result = judged.result
        except KeyboardInterrupt:
            result = interrupted_result(folder, "Run it again: there are no figures here.")
        on_result(folder, describe(resolved.flow))
    return result, judged


def _conducted(
    resolved: ResolvedExperiment, folder: RunFolder, observe: Observer, ceiling_per_s: float, beside: Mapping[str, str]
) -> TrialResult:
    """One trial on its own test bed."""
    experiment, load = resolved.experiment, resolved.experiment.load
    trial = JudgedTrial(
        resolved, load.rate, fresh=True, duration_s=load.duration,
        may_extend=may_extend(load) and not experiment.is_quick_look,
        keep_results=experiment.keep_results, probe_batches=stores_engine_progress(experiment),
        recheck_missing=not resolved.workload.declares_truth,
    )  # fmt: skip
    engine = starter_of(experiment.engine, resolved.sut_cpus, experiment.parallelism)
    with TrialConductor.on_test_bed(
        resolved, engine, folder.path, observe, options=beside, ceiling_per_s=ceiling_per_s
    ) as conductor:
        note = f"; {text}" if (text := percentile_note(resolved)) else ""
        conductor.start(load.rate, f"starting {experiment.engine} and {resolved.generators_in_words}{note}", folder)
        return conductor.run(folder, trial)


def interrupted_result(folder: RunFolder, advice: str) -> Result:
    """The result of a run that Ctrl-C ended outside its trial, so that its last lines name its folder.

    Before the trial there is no result, and one is written with `advice`. An existing result stays.
    """
    result = folder.read_result()
    if result.verdict.cause != Cause.UNFINISHED:
        return result
    verdict = Verdict(value="interrupted", cause=Cause.STOPPED_AT_START, sentence=STOPPED_AT_START, advice=advice)
    result = result.model_copy(update={"verdict": verdict})
    folder.write_result(result)
    return result
