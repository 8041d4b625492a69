"""Checks an experiment before anything starts and reports all problems at once.

`check` returns a `ResolvedExperiment`: the experiment with every default filled in.
"""

import copy
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from streamgauge.artifacts.run_folder import place_problems
from streamgauge.config import reproduce
from streamgauge.config.experiment import (
    SETTINGS,
    TABLES_OF_USER,
    Experiment,
    build,
)
from streamgauge.config.limits import parse_limit
from streamgauge.config.named_files import is_data, is_data_time
from streamgauge.config.setting_info import COMMANDS, without_tables
from streamgauge.core.errors import (
    InputError,
    Problem,
    Rule,
    StreamgaugeError,
    attempt,
    broken,
    collected,
    first_broken,
    near,
    refuse,
    require,
)
from streamgauge.core.formatting import leave_out
from streamgauge.core.units import parse_size
from streamgauge.dataflow.graph import with_early_firing
from streamgauge.dataflow.nodes import Flow
from streamgauge.dataflow.reach import reach_us
from streamgauge.engines.registry import (
    capabilities,
    capability_problems,
    encoding_problems,
    entry,
    name_problems,
    start_problems,
    tuning_problems,
)
from streamgauge.engines.spi import Capabilities
from streamgauge.loadgen.rate_profile import RATE_MAX_PER_S, parse_profile
from streamgauge.preflight.resolved_experiment import (
    Draft,
    ResolvedExperiment,
    may_extend,
    spare_s,
    start_request_of,
    transport_options,
    trial_tail_us,
    with_engine_transport,
)
from streamgauge.preflight.resources import QUEUE_BYTES, Budget, assigned_cpus, processor_problems
from streamgauge.preflight.sample_size import (
    DECIDING,
    bound_problems,
    latency_kind_problems,
    load_problems,
    needed_queue_bytes,
    percentile_problems,
    queue_problems,
    span_problems,
    unseen_problems,
)
from streamgauge.system.cpu_pinning import cpus
from streamgauge.system.machine import at_most_half, memory_bytes
from streamgauge.transports import registry as transports
from streamgauge.user_workloads.data_files import idle_parameters, with_user_data
from streamgauge.user_workloads.lookup import get as get_workload
from streamgauge.user_workloads.lookup import kind_of
from streamgauge.workloads.registry import Workload

_ROUNDING = 1e-6


def check(experiment: Experiment, new_folder: bool = True, refused: Collection[str] = ()) -> ResolvedExperiment:
    """The resolved experiment. `new_folder`: also check the place of the new run folder.

    `refused`: settings that are refused already, and stand at their defaults. What follows from them is not checked.

    Raises:
        InputError: with every problem; always if settings are refused already.
    """
    problems: list[Problem] = []
    workload, parameters, flow = _workload(experiment, problems)
    experiment = _with_brokers(experiment, workload)
    unknown = name_problems(experiment.engine)
    engine = None if unknown else capabilities()[experiment.engine]
    problems += unknown
    experiment = with_engine_transport(experiment)
    flow = _engine_flow(flow, engine)
    limits = tuple(limit for text in experiment.limits if (limit := attempt(partial(parse_limit, text), problems)))
    driver, sut = assigned_cpus(experiment)
    budget = _budget(experiment, engine, problems)
    transport = experiment.transport
    if engine is not None and transport not in engine.transports:
        transport = engine.transports[0]
    default_generators = budget.default_generators(len(sut or cpus())) if transport in transports.STAMPS else 1
    generators, partitions = _writers(experiment, default_generators, problems)
    processes = generators if experiment.command in DECIDING else 0
    bytes_max = budget.queue_bytes(processes)
    request = start_request_of(experiment, engine, flow, bytes_max, partitions, budget.reserved_bytes(processes))
    draft = Draft(experiment, workload, engine, flow, transport, limits, budget, processes, partitions, request)
    checks = [one for one in CHECKS if new_folder or one is not _place_problems]
    usable = [one for one in checks if not any(name in refused for name in PRESUMED.get(one, ()))]
    problems += (problem for one in usable for problem in one(draft))
    if refused:
        raise InputError(problems, incomplete=True)
    refuse(problems, incomplete=workload is None or flow is None or engine is None)
    assert workload is not None
    assert flow is not None
    assert engine is not None
    resolved = ResolvedExperiment(
        experiment, workload, parameters, engine, flow,
        generators=generators,
        partitions=partitions,
        bytes_max=bytes_max,
        tail_us=trial_tail_us(flow, engine, request),
        reach_us=reach_us(flow), limits=limits,
        driver_cpus=driver, sut_cpus=sut,
    )  # fmt: skip
    if needed := needed_queue_bytes(resolved):
        resolved = replace(resolved, bytes_max=budget.queue_bytes(processes, needed))
    refuse([*queue_problems(resolved), *unseen_problems(resolved)])
    _check_longest_plan(resolved)
    return resolved


def _writers(experiment: Experiment, default_generators: int, problems: list[Problem]) -> tuple[int, int]:
    """(generators, partitions). Each partition has one writer, so there are at least as many partitions."""
    generators, partitions = experiment.load.generators, experiment.partitions
    if partitions is None:
        partitions = generators or default_generators
    if generators is None:
        generators = min(default_generators, partitions)
    rule = f"must be at most the number of partitions ({partitions}), because each partition has one writer"
    way_out = f"--generators {partitions}, or --partitions {generators}"
    problems += broken(Rule(generators <= partitions, "load.generators", rule, generators, way_out))
    return min(generators, partitions), partitions


def _check_longest_plan(resolved: ResolvedExperiment) -> None:
    """Raises InputError if no plan can hold the longest trial, before minutes of starting."""
    load, command = resolved.experiment.load, resolved.experiment.command
    rate = resolved.experiment.search.start_rate or load.rate
    if command == "generate" and load.start is None:
        resolved.plan(0, rate, load.duration, parse_profile(load.profile, rate, load.duration))
    else:
        spare = spare_s(load.duration) if command != "generate" and may_extend(load) else 0.0
        resolved.trial_plan(resolved.spans(0, True, load.duration), rate, True, spare)


def further_problems(values: dict[str, Any], problems: Sequence[Problem]) -> list[Problem]:
    """The other problems of `values`: those left when the settings in `problems` are at their defaults.

    An unknown command is taken for the most similar one. The settings of a matrix are checked in its cells only, and a
    paper before they start.
    """
    remaining = attempt(partial(without_tables, copy.deepcopy(values)), [])
    refused, command = {problem.setting for problem in problems}, values.get("command", "run")
    meant = near(command, COMMANDS) if "command" in refused else command
    if remaining is None or "matrix" in remaining or meant is None:
        return []
    for name in refused:
        leave_out(remaining, name)
        if name.partition(".")[0] in TABLES_OF_USER:  # a name that was split at its dots left tables behind
            leave_out(remaining, ".".join(name.split(".")[:2]))
    remaining.pop("paper", None)
    remaining["command"] = meant
    for name in ("workload", "engine", "transport"):
        if name in refused or (name == "workload" and not remaining.get(name)):
            refused.add(name)
            remaining[name] = ""  # no default may stand in for it
    further: list[Problem] = []
    with suppress(StreamgaugeError):
        attempt(lambda: check(build(remaining), refused=refused), further)
    sections = {name.rpartition(".")[0] for name in refused}  # a problem of a whole one may be due to what it lacks
    further = [problem for problem in further if problem.setting not in refused | sections]
    useless = ((SETTINGS[one.setting], one) for one in problems if one.setting in SETTINGS)
    return further + broken(*(info.rule_of_command(meant, one.setting, one.got, info.flag) for info, one in useless))


def start_us(experiment: Experiment) -> int | None:
    """`--start` as microseconds since the epoch; None without it. Raises InputError for a text that is no time."""
    text = experiment.load.start
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        rule, way_out = "must be a time like a result's start_time", "--start 2026-01-31T12:00:00+00:00"
        raise InputError(Problem("load.start", rule, text, way_out)) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)


def _workload(experiment: Experiment, problems: list[Problem]) -> tuple[Workload | None, Any, Flow | None]:
    """(workload, parameters, flow), each None from the first refused one on."""
    workload: Workload | None = None
    parameters, flow = None, None
    with collected(problems):
        workload = get_workload(experiment.workload)
        workload, values = with_user_data(workload, experiment.parameters)
        parameters = workload.read(values)
        problems += _fixed_rate_problems(experiment, workload.fixed_rate(parameters))
        problems += _rate_max_problems(experiment, workload.rate_max(parameters))
        built = workload.build(parameters, experiment.load.rate)
        flow = built.flow
        problems += idle_parameters(workload, parameters, experiment.load.rate, built)
        built.check_rules()
    return workload, parameters, flow


def fixed_rate(experiment: Experiment) -> float | None:
    """The rate that the workload's parameters fix, or None. Raises InputError for parameters that it does not have."""
    workload = get_workload(experiment.workload)
    return workload.fixed_rate(workload.read(_without_data(experiment.parameters)))


def _without_data(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if not is_data(name) and not is_data_time(name)}


def _with_brokers(experiment: Experiment, workload: Workload | None) -> Experiment:
    """The experiment with the brokers of a program's file, unless others are given, for commands that meet them."""
    takes_them = experiment.command in SETTINGS["transport_options"].commands
    defaults = workload.default_transport_options if workload is not None and takes_them else {}
    given = {name: value for name, value in experiment.transport_options.items() if value or name not in defaults}
    return experiment.model_copy(update={"transport_options": {**defaults, **given}}) if defaults else experiment


def refuse_program(experiment: Experiment) -> None:
    """Raises InputError for a program of the user's own, for commands that look at single operators."""
    rule = "does not apply to a program over Kafka, whose operators are not known"
    way_out = f"streamgauge run {experiment.workload}, or sustain"
    is_program = kind_of(experiment.workload).observed_from_outside
    require(not is_program, experiment.command, rule, experiment.workload, way_out)


SEARCHING = ("sustain", "anatomy")
"""The commands that try several rates."""


def _fixed_rate_problems(experiment: Experiment, fixed: float | None) -> list[Problem]:
    """A rate that contradicts the one that the workload's parameters fix."""
    rate, command = experiment.load.rate, experiment.command
    if fixed is None:
        return []
    is_search = command in SEARCHING
    return broken(
        Rule(
            not is_search, "set frequency", f"fixes the rate at {fixed:.10g} events/s, and {command} tries several",
            experiment.parameters.get("frequency"), "leave --set frequency out",
        ),
        Rule(
            is_search or math.isclose(rate, fixed, rel_tol=_ROUNDING), "load.rate",
            f"must be the frequency times the number of keys: {fixed:.10g} events/s", f"{rate:.10g}",
            f"--rate {fixed:.10g}, or leave --set frequency out",
        ),
    )  # fmt: skip


def _rate_max_problems(experiment: Experiment, most: float | None) -> list[Problem]:
    """A rate above the one at which the workload's parameters give too many results, and commands without one rate."""
    rate, command = experiment.load.rate, experiment.command
    if most is None:
        return []
    return first_broken(
        Rule(
            command not in SEARCHING, "parameters",
            f"have a selectivity that grows with the rate, and {command} tries several rates", experiment.parameters,
            f"streamgauge run {experiment.workload} --rate {int(most)}, or less",
        ),
        Rule(
            rate <= most, "load.rate",
            "must be lower with these parameters, whose results grow with the square of the rate", f"{rate:.10g}",
            f"--rate {int(most)}, or less",
        ),
    )  # fmt: skip


def _engine_flow(flow: Flow | None, engine: Capabilities | None) -> Flow | None:
    """The flow as the engine runs it: an engine that never closes windows emits their values so far."""
    return with_early_firing(flow) if flow is not None and engine is not None and engine.early_firing else flow


def _engine_problems(draft: Draft) -> Iterator[Problem]:
    """What the engine does not support. If the flow is refused, a similar flow still checks operator names."""
    engine, request = draft.engine, draft.request
    if engine is None:
        return
    if request.flow is not None:
        yield from capability_problems(request.flow, engine)
    certain = start_problems(request, engine)
    yield from certain
    if request.flow is None and draft.workload is not None and (flow := _fallback_flow(draft)) is not None:
        for problem in start_problems(replace(request, flow=_engine_flow(flow, engine)), engine):
            if problem not in certain:
                yield replace(problem, rule=f"{problem.rule} (checked without the refused settings)")


def _fallback_flow(draft: Draft) -> Flow | None:
    """The nearest flow that builds: without data, and with wrong parameters, else all, at their defaults. Or None."""
    workload, experiment = draft.workload, draft.experiment
    plain = get_workload(experiment.workload) if workload is None or workload.takes_data else workload
    given = _without_data(experiment.parameters)
    valid = {key: value for key, value in given.items() if attempt(partial(plain.read, {key: value}), []) is not None}
    for values in (valid, {}):
        with collected([]):
            return plain.build(plain.read(values), experiment.load.rate).flow
    return None


def _text_problems(draft: Draft) -> list[Problem]:
    """Settings that the command would ignore, and empty texts: a socket would take an empty address as all of them."""
    texts = {"bind": draft.experiment.bind, "out": draft.experiment.out}
    empty = (Rule(text != "", name, "must not be empty", "", SETTINGS[name].way_out) for name, text in texts.items())
    return [*reproduce.unsupported_settings(draft.experiment), *broken(*empty)]


def _load_problems(draft: Draft) -> list[Problem]:
    load, problems = draft.experiment.load, load_problems(draft.experiment)
    if load.duration > 0 and load.rate <= RATE_MAX_PER_S:
        attempt(lambda: parse_profile(load.profile, load.rate, load.duration), problems)
    if draft.experiment.command == "generate":
        attempt(partial(start_us, draft.experiment), problems)
    return [*problems, *draft.budget.problems(draft.processes), *processor_problems(draft.experiment)]


def _budget(experiment: Experiment, engine: Capabilities | None, problems: list[Problem]) -> Budget:
    """The memory of engine and queue. A refused queue size counts as the default."""
    total, text, queue = memory_bytes(), experiment.load.memory, None
    if text is not None:
        with collected(problems):
            size = parse_size(text, "load.memory", way_out="--queue-memory 2GB")
            rule = f"must be from 1 MiB to this machine's memory ({total / 2**30:.1f} GiB)"
            way_out = f"leave --queue-memory out: {at_most_half(QUEUE_BYTES) / 2**30:.3g} GiB at most"
            require(2**20 <= size <= total, "load.memory", rule, text, way_out)
            queue = size
    return Budget(total, entry(engine.name).heap_bytes(experiment.options) if engine else 0, queue)


def _tuning_problems(draft: Draft) -> list[Problem]:
    return tuning_problems(draft.engine, draft.experiment.tuning, draft.kind.may_run_on) if draft.engine else []


def _transport_problems(draft: Draft) -> list[Problem]:
    experiment, engine = draft.experiment, draft.engine
    if engine is not None and not draft.kind.may_run_on(engine.nodes):
        engine = None
    problems = transports.choice_problems(
        experiment.transport, experiment.transport_options, experiment.port,
        engine.transports if engine else transports.NAMES, engine.name if engine else "",
    )  # fmt: skip
    if problems or engine is None or draft.kind.declares_formats:
        return problems
    return encoding_problems(engine, transport_options(experiment, engine).get("encoding", ""))


def _port_problems(draft: Draft) -> Iterator[Problem]:
    experiment = draft.experiment
    return transports.port_problems(experiment.bind, experiment.port, 1 + draft.partitions, experiment.prometheus)


def _request_problems(draft: Draft) -> list[Problem]:
    experiment, topics = draft.experiment, draft.workload.program_topics if draft.workload is not None else None
    encoding = experiment.transport_options.get("encoding", "")
    return draft.kind.request_problems(experiment.command, experiment.workload, topics, draft.partitions, encoding)


def _same_question_problems(draft: Draft) -> list[Problem]:
    """Loads the oracle for a program that answers a built-in workload only."""
    if draft.workload is None or draft.workload.question == draft.workload.name:
        return []
    from streamgauge.preflight.same_question import same_question_problems

    return same_question_problems(draft.workload)


def _place_problems(draft: Draft) -> list[Problem]:
    return place_problems(Path(draft.experiment.out or "runs"), draft.experiment.command == "generate")


CHECKS: tuple[Callable[[Draft], Iterable[Problem]], ...] = (
    _text_problems,
    _transport_problems,
    _port_problems,
    _load_problems,
    _place_problems,
    _tuning_problems,
    _engine_problems,
    _request_problems,
    _same_question_problems,
    bound_problems,
    span_problems,
    percentile_problems,
    latency_kind_problems,
)
"""The checks of a draft, each independent of the others. All run, so that one error reports every problem."""
PRESUMED: Mapping[Callable[[Draft], Iterable[Problem]], tuple[str, ...]] = {
    percentile_problems: ("load.duration", "load.events", "load.profile"),
}
"""Check to the settings without which it might refuse another one."""
