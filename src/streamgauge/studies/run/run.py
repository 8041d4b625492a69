"""The `run` command: one trial on a fresh test bed, with a run folder and a report."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.options_and_settings import Experiment
from streamgauge.core.clock import US
from streamgauge.core.errors import Rule, require_all
from streamgauge.core.formatting import format_rate
from streamgauge.dataflow.describe import describe
from streamgauge.engines.registry import starter_of
from streamgauge.loadgen.plan import MADE_US, measure_capacity
from streamgauge.preflight.machine import require_machine
from streamgauge.preflight.resolved_experiment import LEVEL_MAX_US, ResolvedExperiment, may_extend, spare_s
from streamgauge.preflight.sample_size import percentile_note
from streamgauge.preflight.trial_plan import (
    fetches,
    missing_on_machine,
    not_checked,
    planned_processes,
    start_s,
    trial_s,
    unavailable,
)
from streamgauge.preflight.validate import check
from streamgauge.results.codes import Cause
from streamgauge.results.plan import TrialPlan
from streamgauge.results.run import Result
from streamgauge.results.verdict import Verdict
from streamgauge.studies.run.prometheus import exported
from streamgauge.system.machine import cpus
from streamgauge.trial.conductor import TrialConductor, stores_engine_progress
from streamgauge.trial.events import Observer, OnResult, ignore
from streamgauge.trial.policies import JudgedTrial
from streamgauge.trial.trial_result import TrialResult
from streamgauge.user_workloads.lookup import with_absolute_paths

STOPPED_AT_START = "stopped at its start, before the measurement"


def create_folder(resolved: ResolvedExperiment) -> RunFolder:
    """Creates the run folder of an experiment and writes the experiment into it."""
    experiment = resolved.experiment
    folder = RunFolder.create(experiment.out or "runs", experiment.workload, experiment.engine, datetime.now(UTC))
    folder.write_experiment(experiment, resolved.workload.files)
    return folder


def ceiling_of(resolved: ResolvedExperiment, rate_per_s: float) -> float:
    """Events per second that all generators can produce on this machine.

    One process is measured alone and without a transport, with the batches of a trial of this rate. The generators that
    have a core each can produce as many times more, unless one of them has a larger share of the events.
    """
    plan, cores = resolved.plan(0, rate_per_s, 10.0), len(resolved.driver_cpus or cpus())
    shares = np.zeros(plan.partitions)
    for number, stream in enumerate(plan.streams):
        shares += stream.share * plan.partition_shares(number)
    largest = max(float(shares[first :: resolved.generators].sum()) for first in range(resolved.generators))
    rounds_per_s = resolved.partitions / resolved.generators * US / max(resolved.chunk_for(rate_per_s), MADE_US)
    return measure_capacity(plan, resolved.generated_columns, rounds_per_s) * min(1 / largest, cores)


def _ceiling_above_rate(resolved: ResolvedExperiment) -> float:
    """The generators' ceiling in events per second. Raises InputError if the rate is above it."""
    rate_per_s = resolved.experiment.load.rate
    ceiling = ceiling_of(resolved, rate_per_s)
    require_all(Rule(
        rate_per_s <= ceiling, "load.rate",
        f"must be at most the limit of the generators on this machine, {format_rate(ceiling)}", format_rate(rate_per_s),
        f"--rate {format_rate(ceiling / 2).replace(' ', '')}, or a longer --chunk if rows are wide",
    ))  # fmt: skip
    return ceiling


def plan_run(experiment: Experiment) -> TrialPlan:
    """What `run_single` would do. It starts and fetches nothing, and connects to nothing.

    Raises:
        InputError: with the problems for which the run would be refused.
    """
    resolved = check(with_absolute_paths(experiment))
    ceiling = _ceiling_above_rate(resolved)
    seconds = trial_s(resolved, fresh=True) + start_s(resolved)
    load = resolved.experiment.load
    longest_s = seconds + (spare_s(load.duration) if may_extend(load) else LEVEL_MAX_US / US)
    return trial_plan(resolved, ceiling, load.rate, trials=1, trials_max=1, seconds=seconds, seconds_max=longest_s)


def trial_plan(resolved: ResolvedExperiment, ceiling_per_s: float, rate_per_s: float | None, **size: Any) -> TrialPlan:
    """The plan of trials. `size`: their numbers and seconds, as `TrialPlan` has them."""
    experiment = resolved.experiment
    return TrialPlan(
        command=experiment.command, workload=experiment.workload, engine=experiment.engine, tuning=experiment.tuning,
        transport=experiment.transport, rate_per_s=rate_per_s, generator_ceiling_per_s=ceiling_per_s,
        starts=tuple(planned_processes(resolved)),
        warmup_s=resolved.warmup_s(True, experiment.load.duration), duration_s=experiment.load.duration,
        tail_s=resolved.tail_us / US,
        unavailable=tuple(unavailable(resolved)), fetches=fetches(resolved),
        missing=tuple(missing_on_machine(resolved)), not_checked=tuple(not_checked(resolved)), **size,
    )  # fmt: skip


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
    ceiling = _ceiling_above_rate(resolved)
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
        resolved, load.rate, fresh=True, duration_s=load.duration, may_extend=may_extend(load),
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
