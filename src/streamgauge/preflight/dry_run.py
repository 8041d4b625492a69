"""`--dry-run`: what a trial would start, how long it takes, and what it cannot give, before anything is started."""

from collections.abc import Iterator
from typing import Any

from streamgauge.config.experiment import Experiment
from streamgauge.core.clock import US
from streamgauge.core.formatting import format_size
from streamgauge.engines.registry import entry
from streamgauge.loadgen.replay.columns import replayed_columns, rows_of
from streamgauge.preflight.generator_ceiling import ceiling_above_rate
from streamgauge.preflight.machine_requirements import missing_here
from streamgauge.preflight.resolved_experiment import LEVEL_MAX_US, ResolvedExperiment, may_extend, spare_s
from streamgauge.preflight.sample_size import lacking_percentiles, percentile_note, spacings, span_option
from streamgauge.preflight.settings_checks import check
from streamgauge.results.dry_run import PlannedData, PlannedProcesses, TrialPlan, Unavailable
from streamgauge.system.cpu_pinning import cpus
from streamgauge.transports.registry import STAMPS, transport
from streamgauge.user_workloads.lookup import with_absolute_paths
from streamgauge.user_workloads.user_workload import UserWorkload

JAVA_START_S, START_S = 20.0, 6.0
"""Start of an engine, with and without a JVM, the end of the trial and its verification included."""


def plan_run(experiment: Experiment) -> TrialPlan:
    """What `run` would do. It starts and fetches nothing, and connects to nothing.

    Raises:
        InputError: with the problems for which the run would be refused.
    """
    resolved = check(with_absolute_paths(experiment))
    ceiling = ceiling_above_rate(resolved)
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
        starts=tuple(_planned_processes(resolved)), data=tuple(_data(resolved)),
        warmup_s=resolved.warmup_s(True, experiment.load.duration), duration_s=experiment.load.duration,
        events=experiment.load.events, tail_s=resolved.tail_us / US,
        unavailable=tuple(_unavailable(resolved)), fetches=_fetches(resolved),
        missing=missing_here(resolved), not_checked=tuple(_not_checked(resolved)), **size,
    )  # fmt: skip


def trial_s(resolved: ResolvedExperiment, fresh: bool) -> float:
    """Seconds of a trial that is not extended, without its start."""
    duration_s = resolved.experiment.load.duration
    return resolved.warmup_s(fresh, duration_s) + duration_s + resolved.tail_us / US


def start_s(resolved: ResolvedExperiment) -> float:
    """Estimated seconds of the start of an engine, and of what follows a trial."""
    return JAVA_START_S if resolved.engine.needs_java else START_S


def _planned_processes(resolved: ResolvedExperiment) -> Iterator[PlannedProcesses]:
    """The processes of a trial."""
    experiment = resolved.experiment
    yield PlannedProcesses(role="generator", count=resolved.generators, detail=resolved.generators_in_words)
    yield PlannedProcesses(role="recorder", count=1, detail="recorder of the results")
    if transport(experiment.transport).broker and not _brokers(resolved):
        yield PlannedProcesses(role="broker", count=1, detail=f"broker for {experiment.transport}, on loopback")
    cores = experiment.parallelism or len(resolved.sut_cpus or cpus())
    where = entry(experiment.engine).place(experiment.master, cores)
    yield PlannedProcesses(role="sut", count=1, detail=f"engine {experiment.engine}, {where}")


def _data(resolved: ResolvedExperiment) -> Iterator[PlannedData]:
    """The files that replace generated rows; the checks have read them already."""
    for stream in resolved.streams(resolved.experiment.load.rate):
        if columns := replayed_columns(stream):
            yield PlannedData(stream=stream.name, file=columns[0].file.path, rows=rows_of(stream))


def _unavailable(resolved: ResolvedExperiment) -> Iterator[Unavailable]:
    """The checks, latencies and percentiles that a trial, not extended, cannot have, as far as that is known before."""
    experiment, workload = resolved.experiment, resolved.workload
    if not may_extend(experiment.load):
        reason = "is not judged while the rate changes, and the span is not extended"
        yield Unavailable(name="latency_trend", reason=reason, way_out="--load-shape constant")
    if isinstance(workload, UserWorkload) and workload.batch_job is not None:
        reason = "compares with the same job run in batch, because no reference is given for each of its results"
        yield Unavailable(name="independent answers", reason=reason, way_out="give the job a reference")
    if not resolved.sees_deliveries:
        reason = f"is unknown over {experiment.transport}, where the driver does not see when an event is read"
        seen = [name for name in resolved.engine.transports if name in STAMPS]
        way_out = f"--transport {seen[0]}" if seen else "event_time, which every transport has"
        yield Unavailable(name="processing_time", reason=reason, way_out=way_out)
    duration_s = experiment.load.duration
    for name, one in lacking_percentiles(spacings(resolved.flow, resolved.interval), duration_s).items():
        reason = f"{one.needs}, and {duration_s:g} s hold {one.held}"
        yield Unavailable(
            name=name.replace("_", "."), reason=reason, way_out=span_option(experiment.load, one.needed_s)
        )


def _fetches(resolved: ResolvedExperiment) -> tuple[str, ...]:
    """What a first run with this engine and transport fetches, each with its size."""
    over, encoding = resolved.experiment.transport, resolved.transport_options.get("encoding", "")
    of_transport = () if _brokers(resolved) else transport(over).fetches
    return tuple(
        f"{one.name}, {format_size(one.bytes)}"
        for one in (*resolved.engine.fetches, *of_transport)
        if one.transport in ("", over) and one.encoding in ("", encoding)
    )


def _not_checked(resolved: ResolvedExperiment) -> Iterator[str]:
    """What only the run itself finds out."""
    if brokers := _brokers(resolved):
        yield f"whether brokers answer at {brokers}"
    if resolved.experiment.master is not None:
        yield f"whether a cluster answers at {resolved.experiment.master}, and has the cores and the memory"
    yield from entry(resolved.experiment.engine).found_at_start(resolved.experiment.options)
    if note := percentile_note(resolved):
        yield note
    elif not spacings(resolved.flow, resolved.interval):
        yield "how many batches the span holds, and so which percentiles it carries"


def _brokers(resolved: ResolvedExperiment) -> str:
    return resolved.transport_options.get("brokers", "")
