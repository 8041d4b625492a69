"""`characterize`: an operator profile, the selectivity and cost of each operator of a workload (Bordin 2017, 3.4).

1. Makes the planned input, in slices of event time.
2. The reference computes every operator over it: exact selectivities and tuple sizes
   (`studies.operator_profile.operator_io`).
3. Cuts the input of every operator into as many slices, and writes them to disk.
4. The engine times each operator alone, slice by slice; the first slices only warm it up
   (`engines.operator_profiler`). Meanwhile its memory is sampled.
5. Computes the time of a tuple and the instances of eq. 3.4 (`studies.operator_profile.profile`)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from streamgauge.artifacts.atomic_write import OUT, write_text
from streamgauge.artifacts.run_folder import CHARACTERIZATION, new_folder, place_problems, write_study
from streamgauge.config import reproduce
from streamgauge.config.experiment import Characterize, Experiment
from streamgauge.config.experiment_file import to_toml
from streamgauge.core.clock import US, repeated
from streamgauge.core.errors import Rule, attempt, broken, refuse
from streamgauge.core.plugin_options import TUNED
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Flow, Node, Source, UserJobNode
from streamgauge.engines.operator_profiler import IsolatedOperator, OperatorProfiler, Slice
from streamgauge.engines.registry import entry
from streamgauge.preflight.machine_requirements import require_machine
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.settings_checks import check, refuse_program
from streamgauge.results.profile import (
    AppliedAdvice,
    MemoryBehaviour,
    MemoryDistribution,
    MemoryLevel,
    OperatorProfile,
    ProfiledOperator,
    ProfileInput,
    ProfileRequest,
)
from streamgauge.studies.operator_profile.operator_io import (
    SLICE,
    OperatorIO,
    Span,
    materialise,
    user_job_rows,
    write_slices,
)
from streamgauge.studies.operator_profile.profile import METHODS, Timings, profile_figures
from streamgauge.studies.run.run import run_single
from streamgauge.system.disk import Scratch
from streamgauge.system.machine import environment
from streamgauge.trial.events import OnResult, OnStudy, ignore
from streamgauge.trial.progress import Show, snapshots
from streamgauge.user_workloads.lookup import with_absolute_paths

START_US = 1_767_225_600 * US
"""The input begins with 2026 in UTC: a characterization of the same settings counts the same anywhere, any time."""
EVENTS_MAX = 50_000_000
SLICES_ADVISED = 100
"""The fewest that carry a p99, and so an advice."""
INTERVAL_S = 0.5
VARIABLE_FROM = 1.25
"""Memory is variable where its p95 is so many times its p50, or its p50 so many times its least, or more."""
MEDIUM_FROM_BYTES, HIGH_FROM_BYTES = 2**30, 4 * 2**30
"""By the p95."""
Say = Callable[[str], None]


def characterize(experiment: Experiment, say: Say = lambda _: None, on_study: OnStudy = ignore) -> OperatorProfile:
    """The operator profile, which is also written to a folder of its own. `say` receives progress.

    Raises:
        InputError, MachineError: before anything was started.
        EngineError: the engine did not start, or ended; the folder holds its log.
    """
    resolved, config = check_input(experiment), experiment.characterize or Characterize()
    require_machine(resolved)
    now = datetime.now(UTC)
    folder = new_folder(experiment.out or "runs", resolved.workload.name, "characterize", now)
    request = _request(resolved, config, now, folder)
    write_study(folder, CHARACTERIZATION, request)
    profile = _measure(resolved, config, request, say)
    write_study(folder, CHARACTERIZATION, profile)
    on_study(profile)
    return profile


def profiler_of(experiment: Experiment) -> OperatorProfiler:
    """How the engine times operators. The command takes no other engine than the default one."""
    profiler = entry(experiment.engine).operator_profiler()
    assert profiler is not None
    return profiler


def check_input(experiment: Experiment) -> ResolvedExperiment:
    """The resolved input of one generator, so that it is the same on every machine.

    Raises:
        InputError: with every problem of the experiment.
    """
    refuse_program(experiment)
    config, load = experiment.characterize or Characterize(), experiment.load.model_copy(update={"generators": 1})
    problems = list(reproduce.unsupported_settings(experiment))
    profiler = entry(experiment.engine).operator_profiler()  # None for an engine that is refused
    events, rule = config.total_slices * config.slice_events, "has no effect on an operator that is timed alone"
    problems += broken(
        Rule(
            events <= EVENTS_MAX, "characterize.slice_events",
            f"must give at most {EVENTS_MAX:,} events, warm-up included", f"{events:,}",
            "--slices 100 --slice-events 10k",
        ),
        *(
            Rule(name not in experiment.options, f"option {name}", rule, experiment.options.get(name), "leave it out")
            for name in (profiler.unused_options if profiler else ())
        ),
    )  # fmt: skip
    # The input is made as `generate` makes it, which starts no engine and so takes no tuning profile.
    given = experiment.model_copy(update={"command": "generate", "characterize": None, "load": load, "tuning": TUNED})
    resolved: ResolvedExperiment = attempt(lambda: check(given, new_folder=False), problems)
    if (out := experiment.out or "runs").isprintable():  # else it is refused already
        problems += place_problems(Path(out), is_made=False)
    refuse(problems)
    return replace(resolved, experiment=resolved.experiment.model_copy(update={"tuning": experiment.tuning}))


def _request(resolved: ResolvedExperiment, config: Characterize, now: datetime, folder: Path) -> ProfileRequest:
    experiment, span = resolved.experiment, _span(resolved, config)
    return ProfileRequest(
        workload=experiment.workload,
        engine=experiment.engine,
        parameters=resolved.parameters.model_dump(mode="json"),
        options=experiment.options,
        tuning=experiment.tuning,
        input=ProfileInput(
            slices=config.slices,
            warmup_slices=config.warmup_slices,
            slice_events=config.slice_events,
            rate_per_s=experiment.load.rate,
            seed=experiment.load.seed,
            start_us=span.start_us,
            end_us=span.end_us,
        ),
        target=config.target,
        weights=config.weights,
        environment=environment(),
        start_time=now.isoformat(timespec="seconds"),
        folder=str(folder),
    )


def _span(resolved: ResolvedExperiment, config: Characterize) -> Span:
    slice_us = max(1, round(config.slice_events / resolved.experiment.load.rate * US))
    return Span(START_US, START_US + slice_us * config.total_slices, slice_us)


def _measure(resolved: ResolvedExperiment, config: Characterize, request: ProfileRequest, say: Say) -> OperatorProfile:
    profiler = profiler_of(resolved.experiment)
    log = Path(request.folder) / "engine" / f"{request.engine}.log"
    with Scratch("characterize") as private:
        counted, operators = _count(resolved, config, Path(private), say)
        timings, memory, settings = _time(resolved, operators, config, Path(private), log, say)
    figures = profile_figures(resolved.workload.name, _flow(resolved), counted, timings, config, profiler)
    return OperatorProfile(
        **{**dict(request), "finished": True},
        **dict(figures),
        settings=settings,
        memory=distribution(memory, profiler.memory_of),
        notes=tuple(_notes(config, figures.operators)),
        methods={**profiler.methods, **METHODS},
    )


def _flow(resolved: ResolvedExperiment) -> Flow:
    """The flow to profile. A user job's function may read lineage; other flows run without it."""
    return resolved.flow if resolved.workload.operators_known else resolved.lineage_flow


def _notes(config: Characterize, operators: Sequence[ProfiledOperator]) -> Iterator[str]:
    """What a reader must know of these figures."""
    if config.slices < SLICES_ADVISED:
        yield f"fewer than {SLICES_ADVISED} slices carry no p99, so nothing is advised"
    methods = dict.fromkeys(row.time_method for row in operators if row.time_method)
    if len(methods) > 1:
        each = "; ".join(
            f"{way.replace('_', ' ')}: {', '.join(row.name for row in operators if row.time_method == way)}"
            for way in methods
        )
        yield f"timed in different ways, so compare times and instances within one alone ({each})"
    untimed = ", ".join(row.name for row in operators if row.time_per_tuple_us is None)
    yield f"not timed, and so without a share of the instances: {untimed}"


def _count(
    resolved: ResolvedExperiment, config: Characterize, private: Path, say: Say
) -> tuple[dict[Node, OperatorIO], tuple[IsolatedOperator, ...]]:
    """The reference's counts of every node, and every operator that has input, ready to be timed."""
    import duckdb

    span = _span(resolved, config)
    plan = resolved.plan(span.start_us, resolved.experiment.load.rate, (span.end_us - span.start_us) / US)
    counted: dict[Node, OperatorIO] = {}
    operators: list[IsolatedOperator] = []
    with duckdb.connect(str(private / "rows.duckdb")) as connection:
        own = user_job_rows(resolved, private) if resolved.workload.declares_truth else None
        for one in materialise(connection, _flow(resolved), plan, span, own):
            counted[one.node] = one
            say(f"reference   {one.node.name}: {one.rows_out:,} rows")
            if isinstance(one.node, Source) or not sum(one.rows_in):
                continue
            at = private / f"operator-{len(operators)}"
            at.mkdir()
            paths = {name: str(path) for name, path in write_slices(connection, one, at, config.total_slices).items()}
            job = one.node if isinstance(one.node, UserJobNode) else None
            operators.append(IsolatedOperator(one.node.name, one.isolated, paths, SLICE, job))
    (private / "rows.duckdb").unlink()
    return counted, tuple(operators)


def _time(
    resolved: ResolvedExperiment,
    operators: Sequence[IsolatedOperator],
    config: Characterize,
    private: Path,
    log: Path,
    say: Say,
) -> tuple[Timings, list[int], dict[str, str]]:
    """(measured slices of every operator, bytes of the engine's memory meanwhile, settings in force)."""
    if not operators:
        return Timings(), [], {}
    failed: dict[str, str] = {}
    slices: dict[str, list[Slice]] = {}
    profiler = profiler_of(resolved.experiment)
    say(f"starting {resolved.experiment.engine}")
    memory: list[int] = []
    with profiler.timer(operators, resolved.engine_options, private, log) as benchmark, ExitStack() as sampling:
        for number in range(config.total_slices):
            if number == config.warmup_slices:
                memory = sampling.enter_context(sampled(benchmark.memory_bytes))
            answer = benchmark.slice(number)
            failed.update(answer.failed)
            for name, sample in answer.samples.items() if number >= config.warmup_slices else ():
                slices.setdefault(name, []).append(sample)
            say(f"timing   slice {number + 1} of {config.total_slices}, {config.warmup_slices} of them to warm up")
        settings = benchmark.settings
    methods = {each.name: profiler.method_of(each.node) for each in operators}
    whole = {name: each for name, each in slices.items() if name not in failed}
    return Timings(whole, methods, failed), memory, settings


@contextmanager
def sampled(read: Callable[[], int | None], interval_s: float = INTERVAL_S) -> Iterator[list[int]]:
    """Calls `read` every `interval_s` until the context is left, and at least once; ignores readings of None."""
    samples: list[int] = []

    def sample() -> None:
        if (found := read()) is not None:
            samples.append(found)

    with repeated(sample, interval_s, "memory"):
        yield samples


def distribution(samples: Sequence[int], of: str) -> MemoryDistribution | None:
    """The distribution of samples in bytes, and its behaviour; None without a sample."""
    if not samples:
        return None
    least, middle, high = (int(np.quantile(samples, q, method="inverted_cdf")) for q in (0.0, 0.5, 0.95))
    return MemoryDistribution(
        of=of,
        min=least,
        p50=middle,
        p95=high,
        max=max(samples),
        samples=len(samples),
        interval_s=INTERVAL_S,
        behaviour=behaviour(least, middle, high),
        level=level(high),
    )


def behaviour(least: int, p50: int, p95: int) -> MemoryBehaviour:
    return "variable" if p95 >= VARIABLE_FROM * p50 or p50 >= VARIABLE_FROM * least else "fixed"


def level(p95: int) -> MemoryLevel:
    return "low" if p95 < MEDIUM_FROM_BYTES else "medium" if p95 < HIGH_FROM_BYTES else "high"


APPLIED = "applied.toml"


def check_all(experiment: Experiment) -> None:
    """Raises InputError with every problem of a profile, and of the run with its advice if that is requested."""
    flow, profiler = check_input(experiment).flow, profiler_of(experiment)
    config = experiment.characterize or Characterize()
    if config.apply and any(profiler.parallelism_options(node).acts for node in graph.operators(flow)):
        check(trial_of(experiment, 1))


def trial_of(experiment: Experiment, instances: int) -> Experiment:
    """The run of the profiled experiment with so many instances, which replace an option of the user."""
    options = {**experiment.options, profiler_of(experiment).parallelism_setting: str(instances)}
    return experiment.model_copy(update={"command": "run", "characterize": None, "options": options, "out": None})


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
    write_text(folder / APPLIED, to_toml(trial), OUT)
    result = run_single(trial.model_copy(update={"out": str(folder)}), snapshots(on_progress), on_result)
    applied = AppliedAdvice(
        setting=setting,
        before=experiment.options.get(setting) or str(default),
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
