"""`anatomy`: a latency breakdown, stage by stage, preferably from evidence outside the query.

It makes one trial, on an engine of its own, for each rate, batch interval and record size. It decomposes each trial
result by result (`studies.latency_breakdown.decompose`): by the plan, by the driver's timestamps, and by evidence that
depends on the engine's execution mode (`engines.latency_probe`).
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from streamgauge.artifacts.run_folder import ANATOMY, new_folder, write_study
from streamgauge.config import reproduce
from streamgauge.config.experiment import Anatomy, Experiment, Matrix
from streamgauge.config.limits import EXTENSION_SHARE_MAX, EXTENSIONS_MAX
from streamgauge.config.matrix import expand
from streamgauge.core.clock import US, Clock
from streamgauge.core.errors import DriverError, EngineError, Rule, broken, first_broken, refuse, require
from streamgauge.core.exit_codes import VERDICT_CODES, ExitCode, worst
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Explode, Flow, Lookup, Select, Source, Where
from streamgauge.engines.latency_probe import LatencyProbe, ProbeRequest
from streamgauge.engines.registry import entry, streaming_engines
from streamgauge.preflight.machine_requirements import require_machine
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.settings_checks import check, refuse_program
from streamgauge.results.breakdown import BreakdownTrial, Decomposition, LatencyBreakdown, TrialConditions
from streamgauge.studies.latency_breakdown.decompose import TrialEvidence, decompose
from streamgauge.studies.run.run import run_judged
from streamgauge.system.disk import Scratch
from streamgauge.system.machine import environment
from streamgauge.trial.events import OnResult, OnStudy, ignore, to_each
from streamgauge.trial.progress import Show, show_one_of_several, snapshots

RECORD_SIZE = "record_bytes"
"""The parameter of a workload that has records of a chosen size."""
RECORDS_MAX = 10_000_000
"""Most records of a trial's span, because each takes about 300 bytes of memory."""
LONGEST = 1 + EXTENSIONS_MAX * EXTENSION_SHARE_MAX
"""Longest span, as a multiple of the requested one."""
CLOCK_MOVED_US_MAX = 2000
"""Most drift within a trial between the machine's clock, which broker and engine use, and the driver's clock."""
_ROW_BY_ROW = (Source, Select, Where, Lookup, Explode)
PUBLISHED = (
    "one receiver took at most about 30 MB/s, or 1.5 M records/s",
    "batches of less than 10 ms were unstable",
    "with batches of 10 ms at 90 MB/s: at most 11 % of the time was useful work, about 20 % waiting for the wire, more "
    "than a third between making a block and telling the driver, about 11 ms scheduling",
)
"""Findings of the published latency study of Spark Streaming, with DStreams on other machines."""
PUBLISHED_WORK_SHARE = 0.11
"""The useful work among it."""


def anatomy(
    experiment: Experiment,
    on_progress: Show = lambda _: None,
    on_study: OnStudy = ignore,
    on_result: OnResult = ignore,
) -> LatencyBreakdown:
    """The latency breakdown, which is also written to a folder of its own.

    Raises:
        InputError, MachineError: before anything was started, except for a rate above the generators' ceiling.
    """
    trials = check_trials(experiment)
    require_machine(trials[0])
    first, probe, now = trials[0].experiment, probe_of(experiment.engine), datetime.now(UTC)
    folder = new_folder(experiment.out or "runs", first.workload, "anatomy", now)
    breakdown = LatencyBreakdown(
        workload=experiment.workload, engine=experiment.engine,
        quick=experiment.is_quick_look, transport=experiment.transport, transport_options=experiment.transport_options,
        parameters=experiment.parameters, options=first.options, tuning=first.tuning,
        load=first.load.model_dump(mode="json"),
        environment=environment(), start_time=now.isoformat(timespec="seconds"), folder=str(folder),
        stages=dict(probe.stages), published=PUBLISHED, published_work_share=PUBLISHED_WORK_SHARE,
    )  # fmt: skip
    _write(folder, breakdown, on_study)
    for number, resolved in enumerate(trials, 1):
        which = f"trial {number} of {len(trials)}, {_trial_name(resolved.experiment, probe)}"
        trial = _trial(resolved, probe, folder, partial(show_one_of_several, on_progress, which), on_result)
        breakdown = breakdown.model_copy(update={"trials": (*breakdown.trials, trial)})
        _write(folder, breakdown, on_study)
        if trial.verdict == "interrupted":
            return breakdown
    breakdown = breakdown.model_copy(update={"finished": True})
    _write(folder, breakdown, on_study)
    return breakdown


def exit_code(breakdown: LatencyBreakdown) -> ExitCode:
    """That of the worst trial whose figures must not be used. A rate that is not sustained is a result here."""
    return worst(
        VERDICT_CODES[trial.verdict] if trial.exit_code is None else ExitCode(trial.exit_code)
        for trial in breakdown.trials
        if trial.verdict in ("invalid", "interrupted")
    )


def _write(folder: Path, breakdown: LatencyBreakdown, on_study: OnStudy) -> None:
    """Stores the breakdown with the trials so far."""
    write_study(folder, ANATOMY, breakdown)
    on_study(breakdown)


def check_trials(experiment: Experiment) -> list[ResolvedExperiment]:
    """Every trial, ready to start. All have the same chunk length, which is part of the latency.

    Raises:
        InputError: with every problem of a trial, or why it cannot be decomposed.
    """
    refuse_program(experiment)
    config, probe = experiment.anatomy or Anatomy(), probe_of(experiment.engine)
    _refuse(experiment, config, probe)
    update = {"command": "run", "anatomy": None, "keep_results": True, "matrix": _matrix(config, probe)}
    trials = [_resolved(cell.experiment, probe) for cell in expand(experiment.model_copy(update=update))]
    chunk_s = min(resolved.chunk_for(resolved.experiment.load.rate) for resolved in trials) / US
    return [replace(resolved, experiment=_with_chunk(resolved.experiment, chunk_s)) for resolved in trials]


def _matrix(config: Anatomy, probe: LatencyProbe) -> Matrix:
    """The trials of an anatomy, as the matrix of their settings."""
    axes: dict[str, list[Any]] = {
        f"options.{probe.interval}": [probe.option_value(window) for window in config.batch_windows],
        f"parameters.{RECORD_SIZE}": list(config.record_sizes),
        "load.rate": list(config.rates),
    }
    return Matrix.model_validate({name: values for name, values in axes.items() if values})


def probe_of(engine: str) -> LatencyProbe:
    """The latency probe of an engine. Raises InputError if it has none."""
    probes = {name: probe for name in streaming_engines() if (probe := entry(name).latency_probe()) is not None}
    rule = f"must be {' or '.join(probes)}, because other engines have no latency probe"
    require(engine in probes, "engine", rule, engine, f"--engine {next(iter(probes))}")
    return probes[engine]


def _with_chunk(trial: Experiment, chunk_s: float) -> Experiment:
    return trial.model_copy(update={"load": trial.load.model_copy(update={"chunk": chunk_s})})


def request_of(trial: Experiment) -> ProbeRequest:
    return ProbeRequest(trial.options, trial.transport, trial.load.frontier)


def _refuse(experiment: Experiment, config: Anatomy, probe: LatencyProbe) -> None:
    """Refuses settings that are given in two ways, or have no effect in this execution mode."""
    windows, interval, parameters = config.batch_windows, probe.interval, experiment.parameters
    one_of_both = "leave one of the two out"
    refuse([
        *reproduce.unsupported_settings(experiment),
        *broken(
            Rule(
                not windows or interval is not None, "anatomy.batch_windows",
                f"must not be given with {experiment.engine}, which has no batches", windows,
                "leave --batch-windows out",
            ),
            Rule(
                not windows or interval not in experiment.options, f"option {interval}",
                "is also set by --batch-windows", experiment.options.get(interval or ""), one_of_both,
            ),
            Rule(
                not config.record_sizes or RECORD_SIZE not in parameters, f"set {RECORD_SIZE}",
                "is also set by --record-sizes", parameters.get(RECORD_SIZE), one_of_both,
            ),
        ),
    ])  # fmt: skip


def _interval(options: Mapping[str, str], probe: LatencyProbe) -> str:
    """The batch interval among options or settings, as written there; empty without one."""
    return options.get(probe.interval or "", "")


def _trial_name(trial: Experiment, probe: LatencyProbe) -> str:
    window = f", batches {interval}" if (interval := _interval(trial.options, probe)) else ""
    size = f", {trial.parameters[RECORD_SIZE]} bytes" if RECORD_SIZE in trial.parameters else ""
    return f"{trial.load.rate:g}/s{window}{size}"


def _resolved(trial: Experiment, probe: LatencyProbe) -> ResolvedExperiment:
    """A trial, ready to start; InputError with its problems, or with why it cannot be decomposed."""
    events = trial.load.rate * trial.load.duration * LONGEST
    few = Rule(
        events <= RECORDS_MAX, "--rates",
        f"must give at most {RECORDS_MAX:,} events a trial, even if its span is extended to its longest",
        f"{events:,.0f}", "a lower rate, or a shorter --duration",
    )  # fmt: skip
    refuse([*probe.problems(request_of(trial)), *broken(few)])
    resolved, way_out = check(trial), "stamped_text, identity, filter or throughput"
    refuse(first_broken(
        Rule(
            resolved.workload.operators_known, "workload",
            "must be a built-in workload, because the operators of a user job are not visible", trial.workload, way_out,
        ),
        Rule(
            _row_by_row(resolved.flow), "workload",
            "must turn each row of one stream into rows of one sink: a window's result belongs to no single row",
            trial.workload, way_out,
        ),
    ))  # fmt: skip
    return resolved


def _row_by_row(flow: Flow) -> bool:
    nodes = tuple(graph.operators(flow))
    sources = [node for node in nodes if isinstance(node, Source)]
    return len(flow.sinks) == len(sources) == 1 and all(isinstance(node, _ROW_BY_ROW) for node in nodes)


def _trial(
    resolved: ResolvedExperiment, probe: LatencyProbe, folder: Path, on_progress: Show, on_result: OnResult
) -> BreakdownTrial:
    """Runs one trial and decomposes its results; a trial that could not start has its reason."""
    trial, before = resolved.experiment, Clock.fixed_now()
    window = _interval(trial.options, probe)
    conditions = TrialConditions(
        rate_per_s=trial.load.rate, record_bytes=getattr(resolved.parameters, RECORD_SIZE, None),
        chunk_us=round((trial.load.chunk or 0.0) * US), batch_window=window,
        batch_window_s=probe.seconds(window) if window else None, verdict="invalid",
    )  # fmt: skip
    with Scratch("anatomy") as private:
        evidence = TrialEvidence(probe.evidence(request_of(trial), Path(private)))
        try:
            result, judged = run_judged(
                trial.model_copy(update={"out": str(folder)}), to_each(snapshots(on_progress), evidence.collect),
                evidence.probe.options, on_result,
            )  # fmt: skip
        except (EngineError, DriverError) as error:
            return BreakdownTrial.from_parts(
                conditions.model_copy(update={"sentence": str(error), "exit_code": error.exit_code}),
                Decomposition(reason="it did not start"),
            )
        moved_us = Clock.fixed_now().offset_us - before.offset_us
        conditions = conditions.model_copy(update={
            "batch_window": _interval(result.settings, probe), "run": result.folder,
            "verdict": "interrupted" if judged is None else result.verdict.value, "sentence": result.verdict.sentence,
            "clock_moved_us": moved_us,
        })  # fmt: skip
        if result.verdict.value == "invalid":
            decomposition = Decomposition(reason="it is invalid")
        elif judged is None or judged.verified is None:
            decomposition = Decomposition(reason="its answers were not compared")
        else:
            decomposition = decompose(judged, Path(str(result.folder)), evidence)
    if abs(moved_us) > CLOCK_MOVED_US_MAX and not decomposition.reason:
        doubt = "the machine's clock, which engine and broker use, was adjusted during the trial: run it again"
        decomposition = decomposition.model_copy(update={"doubts": (*decomposition.doubts, doubt)})
    return BreakdownTrial.from_parts(conditions, decomposition)
