"""`generate`: the planned input as Parquet, so that anyone can check an answer with a tool of their own."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config import reproduce
from streamgauge.config.experiment import Experiment, build
from streamgauge.core.clock import US
from streamgauge.core.errors import Problem, refuse
from streamgauge.loadgen.export import Progress, existing_parts, write_input
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import Piece, RateProfile, parse_profile
from streamgauge.preflight.settings_checks import check, start_us
from streamgauge.results.run import Input, Result
from streamgauge.user_workloads.data_files import files_read_otherwise, input_notes, replayed_data
from streamgauge.user_workloads.lookup import changed_files, with_absolute_paths
from streamgauge.workloads.registry import Workload

_OWN = ("out", "load.of")
"""Settings that are not the run's."""


def generate(experiment: Experiment, out: Path, progress: Progress | None = None) -> dict[str, Any]:
    """Write DIR/<stream>/part-<partition>.parquet.

    With `of`, a run's folder: what that run was offered, extensions included. With `start`, the start_time of a run:
    what a run of these settings is offered at least, so warm-up with its rising rate, measured span and tail. Without
    either: the profile asked for over exactly its duration, from now's whole second on. `progress` hears of events
    written and planned. `replaced`: so many files of an earlier input had these places. Notes are those of a run on
    this input.
    """
    of = experiment.load.of
    workload, plan, end_us = _planned(experiment) if of is None else _offered(experiment, of)
    replaced = len(existing_parts(plan, out))
    events = write_input(plan, out, plan.start_us, end_us, progress)
    return {
        "out": str(out), "start_us": plan.start_us, "end_us": end_us, "events": events, "replaced": replaced,
        "notes": list(input_notes(workload, replayed_data(plan, end_us))),
    }  # fmt: skip


def _planned(experiment: Experiment) -> tuple[Workload, Plan, int]:
    """The workload with its plan, and the event time at which its input ends."""
    resolved, load = check(experiment), experiment.load
    begin = start_us(experiment)
    if begin is None:
        # The profile from its first moment to its last, without what a trial puts before and after it.
        begin, profile = int(time.time()) * US, parse_profile(load.profile, load.rate, load.duration)
        plan = resolved.plan(begin, load.rate, load.duration, profile)
        return resolved.workload, plan, plan.end_us
    spans = resolved.spans(begin, True, load.duration)
    return resolved.workload, resolved.trial_plan(spans, load.rate, fresh=True), spans.end_us


def _offered(experiment: Experiment, of: str) -> tuple[Workload, Plan, int]:
    """The same of what a run was offered: its plan, made again from what its result says."""
    result = RunFolder.open(of).read_result()
    refuse(list(_problems(experiment, result, of)))
    assert result.input is not None
    resolved = check(_settings_of(result, result.input))
    way_out = "the file as it was then, or a run of the job as it is now"
    refuse(list(changed_files(resolved.workload, result.job_files, way_out)))
    load = resolved.experiment.load
    pieces = tuple(Piece(one.start_s, one.rate_per_s, one.slope_per_s2) for one in result.input.profile)
    plan = Plan(
        resolved.streams(load.rate), RateProfile(pieces), result.input.start_us,
        (result.input.end_us - result.input.start_us) / US, resolved.partitions, load.seed, result.input.keyed,
    )  # fmt: skip
    refuse(list(files_read_otherwise(replayed_data(plan, result.input.end_us), result)))
    return resolved.workload, plan, result.input.end_us


def _settings_of(result: Result, offered: Input) -> Experiment:
    """What decides the values of a run's events; nothing that has to do with the machine it ran on."""
    settings = result.experiment
    names = ("workload", "engine", "parameters", "transport")
    return build({
        "command": "generate",
        "load": {"rate": settings["load"]["rate"], "seed": settings["load"]["seed"], "generators": 1},
        "partitions": offered.partitions or offered.generators,
        **{name: settings[name] for name in names if name in settings},
    })  # fmt: skip


def _problems(experiment: Experiment, result: Result, of: str) -> Iterator[Problem]:
    """A run that says nothing of its input, and settings that contradict the run's."""
    if result.search is not None:
        yield Problem("load.of", "must be one run, and this is a search", of, f"--of {of}/trials/NN, one of its trials")
    elif result.input is None:
        rule = "must be a run that was offered something, by a version that wrote down what"
        yield Problem("load.of", rule, of, "--start with its start_time, and the arguments of the run")
    own, run_settings, rule = with_absolute_paths(experiment), result.experiment, "must be the run's own with --of"
    if run_settings and own.workload != run_settings["workload"]:
        yield Problem("workload", rule, experiment.workload, "leave WORKLOAD out")
    yield from reproduce.contradictions(own.model_dump(mode="json"), run_settings, rule, _OWN)
