"""`characterize --apply`: runs the workload with the advised instances, if the engine has such a setting.

The advice comes down to one setting. The trial uses the profiled rate, and every answer is verified. Its run
folder lies in that of the profile, beside `applied.toml`, which repeats the trial.
"""

from __future__ import annotations

from pathlib import Path

from streamgauge.artifacts.run_folder import CHARACTERIZATION, OUT, write_study, write_text
from streamgauge.config.options_and_settings import Characterize, Experiment, build, to_toml
from streamgauge.dataflow import graph
from streamgauge.preflight.validate import check
from streamgauge.results.profile import AppliedAdvice, OperatorProfile
from streamgauge.studies.operator_profile.command import check_input, profiler_of
from streamgauge.trial.observers import OnResult, OnStudy, ignore
from streamgauge.trial.progress import Show, snapshots
from streamgauge.trial.run import run_single
from streamgauge.user_workloads.lookup import with_absolute_paths

APPLIED = "applied.toml"


def check_all(experiment: Experiment) -> None:
    """Raises InputError with every problem of a profile, and of the run with its advice if that is requested."""
    flow, profiler = check_input(experiment).flow, profiler_of(experiment)
    config = experiment.characterize or Characterize()
    if config.apply and any(profiler.parallelism_options(node).acts for node in graph.operators(flow)):
        check(trial_of(experiment, 1))


def trial_of(experiment: Experiment, instances: int) -> Experiment:
    """The run of the profiled experiment with so many instances, which replace an option of the user."""
    load = experiment.load
    return build(
        {
            "command": "run",
            "workload": experiment.workload,
            "engine": experiment.engine,
            "parameters": experiment.parameters,
            "options": {**experiment.options, profiler_of(experiment).parallelism_setting: str(instances)},
            "tuning": experiment.tuning,
            "load": {"rate": load.rate, "seed": load.seed, "duration": load.duration, "warmup": load.warmup},
        }
    )


def apply_advice(
    experiment: Experiment,
    profile: OperatorProfile,
    on_progress: Show,
    on_study: OnStudy = ignore,
    on_result: OnResult = ignore,
) -> OperatorProfile:
    """The profile with the outcome of its advice, `applied`, which is also stored in its folder.

    Unchanged if no advice acts on the engine. Errors are those of `run_single`.
    """
    value = profile.apply.value
    if value is None:
        return profile
    folder = Path(profile.folder)
    profiler, trial = profiler_of(experiment), with_absolute_paths(trial_of(experiment, value))
    setting = profiler.parallelism_setting
    default = profiler.default_parallelism(trial.parallelism, check(trial).partitions)
    before = experiment.options.get(setting) or str(default)
    write_text(folder / APPLIED, to_toml(trial), OUT)
    result = run_single(trial.model_copy(update={"out": str(folder)}), snapshots(on_progress), on_result)
    applied = AppliedAdvice(
        setting=setting,
        before=before,
        after=str(value),
        experiment=str(folder / APPLIED),
        run=result.folder,
        verdict=result.verdict.value,
        sentence=result.verdict.sentence,
    )
    whole = profile.model_copy(update={"applied": applied})
    write_study(folder, CHARACTERIZATION, whole)
    on_study(whole)
    return whole
