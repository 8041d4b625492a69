"""Checks an experiment before anything starts and reports all problems at once.

`check` returns a `ResolvedExperiment`: the experiment with every default filled in.
"""

from __future__ import annotations

import copy
import math
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from streamgauge.config import reproduce
from streamgauge.config.limits import parse_limit
from streamgauge.config.named_files import is_data, is_data_time, is_program
from streamgauge.config.options_and_settings import SETTINGS, Experiment, build, parse_setting
from streamgauge.core.errors import InputError, Problem, StreamgaugeError, attempt, nearest
from streamgauge.core.units import parse_size
from streamgauge.dataflow.graph import operators, with_early_firing
from streamgauge.dataflow.nodes import Flow, OpaqueNode
from streamgauge.dataflow.reach import reach_us
from streamgauge.engines.registry import capabilities, entry, streaming_engines
from streamgauge.engines.spi import ANOTHER_ENGINE, BatchInterval, Capabilities, StartRequest
from streamgauge.loadgen.rate_profile import RATE_MAX_PER_S, parse_profile
from streamgauge.preflight.resolved_experiment import (
    ResolvedExperiment,
    may_extend,
    spare_s,
    start_request_of,
    transport_options,
    trial_tail_us,
    tuning_problems,
)
from streamgauge.preflight.resources import QUEUE_BYTES, Budget, assigned_cpus, processor_problems
from streamgauge.preflight.sample_size import (
    DECIDING,
    SPANS_S,
    in_range,
    interval_problems,
    latency_kind_problems,
    percentile_problems,
    queue_problems,
    spacings,
)
from streamgauge.system.machine import at_most_half, cpus, memory_bytes
from streamgauge.transports import registry as transports
from streamgauge.user_workloads.data_files import idle_parameters, with_user_data
from streamgauge.user_workloads.lookup import get as get_workload
from streamgauge.user_workloads.program_node import ProgramNode
from streamgauge.workloads.registry import Job, Workload

_ROUNDING = 1e-6


def check(experiment: Experiment, new_folder: bool = True) -> ResolvedExperiment:
    """The resolved experiment. `new_folder`: also check the place of the new run folder.

    Raises:
        InputError: with every problem.
    """
    problems: list[Problem] = []
    workload, parameters, flow = _workload(experiment, problems)
    experiment = _with_brokers(experiment, workload)
    engine = _engine(experiment, problems)
    flow = _engine_flow(flow, engine)
    limits = [limit for text in experiment.limits if (limit := attempt(partial(parse_limit, text), problems))]
    load = experiment.load
    if load.duration > 0 and load.rate <= RATE_MAX_PER_S:
        attempt(lambda: parse_profile(load.profile, load.rate, load.duration), problems)
    driver, sut = assigned_cpus(experiment)
    budget = _budget(experiment, engine, problems)
    many = _transport_for_defaults(experiment, engine) in transports.STAMPS
    default_generators = budget.default_generators(len(sut or cpus())) if many else 1
    generators, partitions = _writers(experiment, default_generators, problems)
    processes = generators if experiment.command in DECIDING else 0
    bytes_max = budget.queue_bytes(processes)
    request = start_request_of(experiment, engine, flow, bytes_max, partitions, budget.reserved_bytes(processes))
    interval = entry(engine.name).interval(request) if engine else BatchInterval()
    spaced = spacings(flow, interval)
    could_run = engine is not None and (workload is None or workload.may_run_on(engine.nodes))
    problems += [
        *reproduce.unsupported_settings(experiment), *_text_problems(experiment),
        *_transport_problems(experiment, engine if could_run else None, partitions),
        *_prometheus_problems(experiment, partitions), *_load_problems(experiment),
        *(_place_problems(experiment) if new_folder else []),
        *budget.problems(processes),
        *(tuning_problems(experiment, engine, _engines_with_profile(experiment)) if engine else []),
        *(_engine_problems(experiment, workload, request, engine) if engine else []),
        *_program_problems(experiment, workload, partitions),
        *(interval_problems(experiment, interval, spaced) if engine else []),
        *percentile_problems(experiment, spaced, limits),
        *(latency_kind_problems(flow, limits, _transport_for_defaults(experiment, engine)) if flow else []),
    ]  # fmt: skip
    if experiment.command == "generate":
        start_us(experiment, problems)
    if problems:
        raise InputError(problems)
    assert workload is not None
    assert flow is not None
    assert engine is not None
    resolved = ResolvedExperiment(
        experiment, workload, parameters, engine, flow,
        generators=generators,
        partitions=partitions,
        bytes_max=bytes_max,
        tail_us=trial_tail_us(flow, engine, request),
        reach_us=reach_us(flow), limits=tuple(limits),
        driver_cpus=driver, sut_cpus=sut,
    )  # fmt: skip
    if problems := list(queue_problems(resolved)):
        raise InputError(problems)
    _check_longest_plan(resolved)
    return resolved


def _writers(experiment: Experiment, default_generators: int, problems: list[Problem]) -> tuple[int, int]:
    """(generators, partitions). Each partition has one writer, so there are at least as many partitions."""
    generators, partitions = experiment.load.generators, experiment.partitions
    if partitions is None:
        partitions = generators or default_generators
    if generators is None:
        generators = min(default_generators, partitions)
    if generators > partitions:
        rule = f"must be at most the number of partitions ({partitions}), because each partition has one writer"
        way_out = f"--generators {partitions}, or --partitions {generators}"
        problems.append(Problem("load.generators", rule, generators, way_out))
        generators = partitions
    return generators, partitions


def _check_longest_plan(resolved: ResolvedExperiment) -> None:
    """Raises InputError if no plan can hold the longest trial, before minutes of starting."""
    load, command = resolved.experiment.load, resolved.experiment.command
    rate = resolved.experiment.search.start_rate or load.rate
    if command == "generate" and load.start is None:
        resolved.plan(0, rate, load.duration, parse_profile(load.profile, rate, load.duration))
        return
    extended = command != "generate" and may_extend(load)
    spare = spare_s(load.duration) if extended else 0.0
    resolved.trial_plan(resolved.spans(0, True, load.duration), rate, True, spare)


def further_problems(values: dict[str, Any], problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """The other problems of `values`: those left when the settings in `problems` are at their defaults."""
    remaining, reported = copy.deepcopy(values), {problem.setting for problem in problems}
    for problem in problems:
        _remove(remaining, problem.setting.split("."))
    if not remaining.get("workload"):
        remaining["workload"] = ""
        reported.add("workload")
    try:
        check(build(remaining))
    except InputError as error:
        return tuple(problem for problem in error.problems if problem.setting not in reported)
    except StreamgaugeError:
        return ()
    return ()


def _remove(values: Any, path: list[str]) -> None:
    for name in path[:-1]:
        values = values.get(name) if isinstance(values, dict) else None
    if isinstance(values, dict):
        values.pop(path[-1], None)


def start_us(experiment: Experiment, problems: list[Problem] | None = None) -> int | None:
    """`--start` as microseconds since the epoch; None without it."""
    text = experiment.load.start
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        problem = Problem(
            "load.start", "must be a time like a result's start_time", text, "--start 2026-01-31T12:00:00+00:00"
        )
        if problems is None:
            raise InputError(problem) from None
        problems.append(problem)
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)


def _workload(experiment: Experiment, problems: list[Problem]) -> tuple[Workload | None, Any, Flow | None]:
    if NUL in experiment.workload:
        return None, None, None
    workload = attempt(lambda: get_workload(experiment.workload), problems)
    if workload is None:
        return None, None, None
    on_data = attempt(lambda: with_user_data(workload, experiment.parameters), problems)
    if on_data is None:
        return workload, None, None
    workload, values = on_data
    parameters = attempt(lambda: workload.read(values), problems)
    if parameters is None:
        return workload, None, None
    built = attempt(lambda: workload.build(parameters, experiment.load.rate), problems)
    if built:
        attempt(built.check_rules, problems)
        problems += idle_parameters(workload, parameters, experiment.load.rate, built)
    problems += _fixed_rate_problems(experiment, workload.fixed_rate(parameters))
    return workload, parameters, built.flow if built else None


def fixed_rate(experiment: Experiment) -> float | None:
    """The rate that the workload's parameters fix, or None. Raises InputError for parameters that it does not have."""
    if NUL in experiment.workload:
        return None
    workload = get_workload(experiment.workload)
    given = {key: value for key, value in experiment.parameters.items() if not is_data(key) and not is_data_time(key)}
    return workload.fixed_rate(workload.read(given))


def _with_brokers(experiment: Experiment, workload: Workload | None) -> Experiment:
    """The experiment with the brokers of a program's file, unless others are given."""
    defaults = workload.default_transport_options if workload is not None else {}
    given = {name: value for name, value in experiment.transport_options.items() if value or name not in defaults}
    return experiment.model_copy(update={"transport_options": {**defaults, **given}}) if defaults else experiment


def refuse_program(experiment: Experiment) -> None:
    """Raises InputError for a program of the user's own, for commands that look at single operators."""
    if is_program(experiment.workload):
        rule = "does not apply to a program over Kafka, whose operators are not known"
        way_out = f"streamgauge run {experiment.workload}, or sustain"
        raise InputError(Problem(experiment.command, rule, experiment.workload, way_out))


def _program_problems(experiment: Experiment, workload: Workload | None, partitions: int) -> Iterator[Problem]:
    """What cannot be found out of a program of the user's own."""
    command, way_out = experiment.command, f"streamgauge run {experiment.workload}"
    if not is_program(experiment.workload):
        return
    if encoding := experiment.transport_options.get("encoding"):
        rule = "is for workloads of the list, and a program's file names the format of each topic"
        yield Problem("transport option encoding", rule, encoding, 'format = "avro" below [inputs.NAME]')
    topics = workload.program_topics if workload is not None else None
    if topics is not None and topics.progress.by == "results" and partitions > 1:
        rule = 'must be 1 with progress = "results", as results do not show how far each partition was read'
        way_out = "--partitions 1, or in its file progress = { spark_checkpoint = [...] }, or a group that commits"
        yield Problem("partitions", rule, partitions, way_out)
    if command == "sustain" and workload is not None and not workload.can_restart:
        rule = "starts the program anew for each trial, and with attach it runs already"
        yield Problem(command, rule, experiment.workload, f"command = [...] in its file, or {way_out}")


SEARCHING = ("sustain", "anatomy")
"""The commands that try several rates."""


def _fixed_rate_problems(experiment: Experiment, fixed: float | None) -> Iterator[Problem]:
    """A rate that contradicts the one that the workload's parameters fix."""
    rate = experiment.load.rate
    if fixed is None:
        return
    if experiment.command in SEARCHING:
        rule = f"fixes the rate at {fixed:.10g} events/s, and {experiment.command} tries several"
        yield Problem("set frequency", rule, experiment.parameters.get("frequency"), "leave --set frequency out")
    elif not math.isclose(rate, fixed, rel_tol=_ROUNDING):
        rule = f"must be the frequency times the number of keys: {fixed:.10g} events/s"
        yield Problem("load.rate", rule, f"{rate:.10g}", f"--rate {fixed:.10g}, or leave --set frequency out")


def _engine(experiment: Experiment, problems: list[Problem]) -> Capabilities | None:
    names = streaming_engines()
    if experiment.engine in names:
        return capabilities()[experiment.engine]
    way_out = f"--engine {nearest(experiment.engine, names)} (streamgauge engines lists them)"
    problems.append(Problem("engine", f"must be one of {', '.join(names)}", experiment.engine, way_out))
    return None


def _engines_with_profile(experiment: Experiment) -> list[str]:
    """The engines that have its tuning profile; none of them runs a program of the user's own."""
    if is_program(experiment.workload):
        return []
    return [name for name in streaming_engines() if experiment.tuning in capabilities()[name].profiles]


def _transport_for_defaults(experiment: Experiment, engine: Capabilities | None) -> str:
    """The transport that defaults follow. A refused transport is replaced, so that it causes no further problems."""
    if engine is None or experiment.transport in engine.transports:
        return experiment.transport
    return engine.transports[0]


def _engine_flow(flow: Flow | None, engine: Capabilities | None) -> Flow | None:
    """The flow as the engine runs it: an engine that never closes windows emits their values so far."""
    return with_early_firing(flow) if flow is not None and engine is not None and engine.early_firing else flow


def _engine_problems(
    experiment: Experiment, workload: Workload | None, request: StartRequest, engine: Capabilities
) -> Iterator[Problem]:
    """What the engine does not support. If the flow is refused, a similar flow still checks operator names."""
    if request.flow is not None:
        yield from _capability_problems(request.flow, engine)
    certain = _request_problems(request, engine)
    yield from certain
    if request.flow is None and workload is not None and (flow := _fallback_flow(experiment, workload)) is not None:
        for problem in _request_problems(replace(request, flow=_engine_flow(flow, engine)), engine):
            if problem not in certain:
                yield replace(problem, rule=f"{problem.rule} (checked without the refused settings)")


def _fallback_flow(experiment: Experiment, workload: Workload) -> Flow | None:
    """The nearest flow that builds: without data, and with wrong parameters, else all, at their defaults. Or None."""
    plain = get_workload(experiment.workload) if workload.takes_data else workload
    given = {key: value for key, value in experiment.parameters.items() if not is_data(key) and not is_data_time(key)}
    valid = {key: value for key, value in given.items() if attempt(partial(plain.read, {key: value}), []) is not None}
    for values in (valid, {}):
        built: Job | None = attempt(partial(_build, plain, values, experiment.load.rate), [])
        if built is not None:
            return built.flow
    return None


def _build(workload: Workload, values: Mapping[str, Any], rate_per_s: float) -> Job:
    return workload.build(workload.read(values), rate_per_s)


def _capability_problems(flow: Flow, engine: Capabilities) -> Iterator[Problem]:
    for node in operators(flow):
        kind = type(node).__name__
        if kind not in engine.nodes:
            because = f": {engine.unsupported_reasons[kind]}" if kind in engine.unsupported_reasons else ""
            way_out = f"--engine {engine.fallback_engine}" if engine.fallback_engine else ANOTHER_ENGINE
            if isinstance(node, ProgramNode):
                way_out = "leave --engine out: external runs programs"
            what = node.plural if isinstance(node, OpaqueNode) else kind
            yield Problem("engine", f"does not support {what}{because}", engine.name, way_out)
    if len(flow.sinks) > 1 and not engine.several_sinks:
        names = ", ".join(sink.name for sink in flow.sinks)
        yield Problem("engine", f"{engine.name} writes to one sink only", names, ANOTHER_ENGINE)
    for mode in dict.fromkeys(sink.mode for sink in flow.sinks):
        if mode not in engine.sink_modes:
            yield Problem("engine", f"does not support results in {mode} mode", engine.name, ANOTHER_ENGINE)


def _request_problems(request: StartRequest, engine: Capabilities) -> list[Problem]:
    problems: list[Problem] = []
    if request.parallelism is not None and not engine.sets_parallelism:
        rule = f"does not apply to the engine {engine.name}"
        problems.append(Problem("parallelism", rule, request.parallelism, "leave --parallelism out"))
    attempt(lambda: entry(engine.name).check(request), problems)
    return problems


LOOPBACK = "127.0.0.1"
NUL = "\0"
"""The system refuses it in paths and addresses with an error that does not name the setting."""


def _text_problems(experiment: Experiment) -> Iterator[Problem]:
    """Texts that no system call accepts. A socket would take an empty address as all addresses."""
    examples = {name: SETTINGS[name].way_out for name in ("bind", "out")}
    examples["workload"] = "streamgauge workloads lists them"
    for name, way_out in examples.items():
        if NUL in (getattr(experiment, name) or ""):
            yield Problem(name, "must not contain a NUL character", getattr(experiment, name), way_out)
    for name in ("bind", "out"):
        if getattr(experiment, name) == "":
            yield Problem(name, "must not be empty", "", examples[name])


def _usable(text: str) -> bool:
    """Whether the system accepts a text; `_text_problems` reports the others."""
    return text != "" and NUL not in text


def _transport_problems(experiment: Experiment, engine: Capabilities | None, partitions: int) -> Iterator[Problem]:
    names = transports.NAMES
    if experiment.transport not in names:
        rule, way_out = f"must be one of {', '.join(names)}", f"--transport {nearest(experiment.transport, names)}"
        yield Problem("transport", rule, experiment.transport, way_out)
    elif engine and experiment.transport not in engine.transports:
        rule = f"must be one that {engine.name} can read: {', '.join(engine.transports)}"
        yield Problem("transport", rule, experiment.transport, f"--transport {engine.transports[0]}")
    else:
        own = list(transports.problems(experiment.transport, experiment.transport_options))
        yield from own or _encoding_problems(experiment, engine)
    if experiment.transport in transports.BROKERED and experiment.port is not None:
        rule = f"does not apply to the transport {experiment.transport}: its broker takes a free port"
        yield Problem("port", rule, experiment.port, "leave --port out")
    if not _usable(experiment.bind):
        return
    if reason := _port_problem(experiment.bind, 0):
        yield Problem("bind", f"must be an address of this machine ({reason})", experiment.bind, "--bind 127.0.0.1")
        return
    first = experiment.port
    for port in range(first, first + 1 + partitions) if first is not None else ():
        if reason := _port_problem(experiment.bind, port):
            yield Problem(
                "port", f"must be free on {experiment.bind} ({reason})", port, "leave --port out to use free ports"
            )
            return


def _encoding_problems(experiment: Experiment, engine: Capabilities | None) -> Iterator[Problem]:
    """Messages that the engine cannot read; those of a program are of the formats in its file."""
    encoding = transport_options(experiment, engine).get("encoding") if engine else None
    if engine and encoding and encoding not in engine.encodings and not is_program(experiment.workload):
        rule = f"must be one that {engine.name} reads: {', '.join(engine.encodings)}"
        way_out = f"--transport-option encoding={engine.encodings[0]}"
        yield Problem("transport option encoding", rule, encoding, way_out)


def _prometheus_problems(experiment: Experiment, partitions: int) -> Iterator[Problem]:
    port, first, way_out = experiment.prometheus, experiment.port, "--prometheus with another port"
    if port is None:
        return
    if first is not None and first <= port <= first + partitions:
        rule = f"must differ from the driver's own ports, {first} to {first + partitions}"
        yield Problem("prometheus", rule, port, way_out)
    elif reason := _port_problem(LOOPBACK, port):
        yield Problem("prometheus", f"must be free on {LOOPBACK} ({reason})", port, way_out)


def _port_problem(host: str, port: int) -> str:
    with socket.socket() as probe:
        # Servers bind like this too, so a connection that has just ended does not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.strerror or str(error)
    return ""


def _load_problems(experiment: Experiment) -> Iterator[Problem]:
    load = experiment.load
    for name, (*_, words) in SPANS_S.items():
        seconds = getattr(load, name)
        if seconds is not None and not in_range(name, seconds):
            setting = f"load.{name}"
            yield Problem(setting, f"must be {words}", f"{seconds:g}s", SETTINGS[setting].way_out)
    for setting, rate in (("load.rate", load.rate), ("search.start_rate", experiment.search.start_rate)):
        if rate is not None and rate > RATE_MAX_PER_S:
            yield Problem(setting, "must be at most 1G events/s", rate, f"{SETTINGS[setting].flag} 1M")
    yield from processor_problems(experiment)


def _budget(experiment: Experiment, engine: Capabilities | None, problems: list[Problem]) -> Budget:
    """The memory of engine and queue. A refused queue size counts as the default."""
    total, text = memory_bytes(), experiment.load.memory
    heap = entry(engine.name).heap_bytes(experiment.options) if engine else 0
    if text is None:
        return Budget(total, heap, None)
    queue = attempt(partial(parse_setting, parse_size, "load.memory", text), problems)
    if queue is not None and not 2**20 <= queue <= total:
        rule = f"must be from 1 MiB to this machine's memory ({total / 2**30:.1f} GiB)"
        default = at_most_half(QUEUE_BYTES) / 2**30
        problems.append(Problem("load.memory", rule, text, f"leave --memory out: {default:.3g} GiB at most"))
        queue = None
    return Budget(total, heap, queue)


def _place_problems(experiment: Experiment) -> Iterator[Problem]:
    if experiment.out is not None and not _usable(experiment.out):
        return
    root = Path(experiment.out or "runs")
    existing = next((path for path in (root, *root.absolute().parents) if path.exists()), Path("/"))
    if not existing.is_dir():
        yield Problem("out", "must be a folder, and a file has that name", str(root), "--out DIR")
    elif experiment.command != "generate" and not root.absolute().parent.is_dir():
        yield Problem("out", "must be in an existing folder", str(root), "--out DIR with a folder you may write to")
    elif not os.access(existing, os.W_OK):
        yield Problem("out", f"must be a writable folder ({existing} is not)", str(root), "--out DIR")
