"""Everything that can be known to be wrong, found before anything is started: all problems at once.

What passes comes out as a `ResolvedExperiment`: the experiment with every default filled in.
"""

from __future__ import annotations

import copy
import math
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from streamgauge.config import reproduce
from streamgauge.config.experiment import SETTINGS, Experiment, Load, build, is_data, is_data_time, parse_setting
from streamgauge.config.slo import ServiceLevelObjective, parse_limit
from streamgauge.config.thresholds import BATCHES_MIN, BOUND_S_MIN, EXTENSION_SHARE_MAX, EXTENSIONS_MAX, WINDOWS_MIN
from streamgauge.core.clock import US
from streamgauge.core.errors import InputError, Problem, StreamgaugeError, attempt, nearest
from streamgauge.core.formatting import format_rate
from streamgauge.core.units import parse_size
from streamgauge.dataflow.early_firing import with_early_firing
from streamgauge.dataflow.graph import operators
from streamgauge.dataflow.horizon import reach_us
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.registry import capabilities, entry, streaming_engines
from streamgauge.engines.spi import BatchInterval, Capabilities, StartRequest
from streamgauge.loadgen.rate_profile import RATE_MAX_PER_S, parse_profile
from streamgauge.metrics.latency.result_kind import latencies_of
from streamgauge.preflight.memory_budget import QUEUE_BYTES, Budget
from streamgauge.preflight.resolved_experiment import (
    ResolvedExperiment,
    input_tail_us,
    longest_slide_us,
    may_extend,
    spare_s,
    start_request_of,
)
from streamgauge.preflight.tuning import tuning_problems
from streamgauge.preflight.user_data import idle_parameters, with_user_data
from streamgauge.preflight.user_job import UserJob
from streamgauge.preflight.user_job import get as get_workload
from streamgauge.results.latency import PERCENTILES
from streamgauge.stats.percentile import carries, observations_needed
from streamgauge.system.machine import at_most_half, cpus, memory_bytes, split_cpus
from streamgauge.transports import registry as transports
from streamgauge.workloads.registry import Job, Workload

BOUND_INTERVALS_MIN = 3
"""So many of the engine's batches must fit into the queue: one waits for its trigger while the one before is read, and
one more is what a batch that takes too long for once leaves behind."""
SPANS_S = {
    "duration": (1, 7 * 86_400, "from 1 s to 7 days"),
    "warmup": (0, 3600, "at most an hour"),
    "chunk": (0.001, 1, "from 1 ms to 1 s"),
    "bound": (1, 3600, "from 1 s to an hour of the rate"),
}
"""Of times of a load: the least and greatest, and that in words."""
DECIDING = ("run", "sustain")
"""The commands that start an engine and judge it."""


def check(experiment: Experiment, new_folder: bool = True) -> ResolvedExperiment:
    """The experiment, ready to start; without a `new_folder` the place of one is not looked at.

    Raises:
        InputError: with every problem found.
    """
    problems: list[Problem] = []
    workload, parameters, flow = _workload(experiment, problems)
    engine = _engine(experiment, problems)
    flow = _as_done(flow, engine)
    limits = [level for text in experiment.limits if (level := attempt(partial(parse_limit, text), problems))]
    load = experiment.load
    if load.duration > 0 and load.rate <= RATE_MAX_PER_S:
        attempt(lambda: parse_profile(load.profile, load.rate, load.duration), problems)
    driver, sut = split_cpus() if experiment.isolation == "pinned" else (None, None)
    budget = _budget(experiment, engine, problems)
    usual = budget.usual_generators(len(sut or cpus())) if _carried_by(experiment, engine) in transports.STAMPS else 1
    generators = experiment.load.generators or usual
    started = generators if experiment.command in DECIDING else 0
    bytes_max = budget.queue_beside(started)
    wanted = start_request_of(experiment, engine, flow, bytes_max, generators, budget.reserved_bytes(started))
    interval = entry(engine.name).interval(wanted) if engine else BatchInterval()
    apart = _apart(flow, interval)
    problems += [
        *reproduce.not_taken(experiment), *_text_problems(experiment),
        *_transport_problems(experiment, engine, generators), *_load_problems(experiment),
        *(_place_problems(experiment) if new_folder else []),
        *budget.problems(started),
        *(tuning_problems(experiment, engine, _having(experiment.tuning)) if engine else []),
        *(_engine_problems(experiment, workload, wanted, engine) if engine else []),
        *(_interval_problems(experiment, interval, apart) if engine else []),
        *_level_problems(experiment, apart, limits),
        *(_kind_problems(flow, limits) if flow else []),
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
        bytes_max=bytes_max,
        tail_us=input_tail_us(flow) + entry(engine.name).watermark_delay_us(wanted),
        reach_us=reach_us(flow), limits=tuple(limits),
        driver_cpus=tuple(driver) if driver else None, sut_cpus=tuple(sut) if sut else None,
    )  # fmt: skip
    if problems := list(_memory_problems(resolved)):
        raise InputError(problems)
    _longest_plan(resolved)
    return resolved


def _longest_plan(resolved: ResolvedExperiment) -> None:
    """Made only to be refused here where no plan can hold it, and not after minutes of starting."""
    load, command = resolved.experiment.load, resolved.experiment.command
    rate = resolved.experiment.search.start_rate or load.rate
    if command == "generate" and load.start is None:
        resolved.plan(0, rate, load.duration, parse_profile(load.profile, rate, load.duration))
        return
    extended = command != "generate" and may_extend(load)
    spare = spare_s(load.duration) if extended else 0.0
    resolved.trial_plan(resolved.spans(0, True, load.duration), rate, True, spare)


def further_problems(values: dict[str, Any], found: Sequence[Problem]) -> tuple[Problem, ...]:
    """What else is wrong with `values`, once the settings that `found` names are left at their defaults.

    A workload that is not known is among what was found.
    """
    kept, told = copy.deepcopy(values), {problem.setting for problem in found}
    for problem in found:
        _leave_out(kept, problem.setting.split("."))
    if not kept.get("workload"):
        kept["workload"] = ""
        told.add("workload")
    try:
        check(build(kept))
    except InputError as error:
        return tuple(problem for problem in error.problems if problem.setting not in told)
    except StreamgaugeError:
        return ()
    return ()


def _leave_out(values: Any, path: list[str]) -> None:
    for name in path[:-1]:
        values = values.get(name) if isinstance(values, dict) else None
    if isinstance(values, dict):
        values.pop(path[-1], None)


def start_us(experiment: Experiment, problems: list[Problem] | None = None) -> int | None:
    """`--start` as microseconds since the epoch; None where it was not given."""
    text = experiment.load.start
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        problem = Problem(
            "load.start", "must be a time such as a result's start_time", text, "--start 2026-01-31T12:00:00+00:00"
        )
        if problems is None:
            raise InputError(problem) from None
        problems.append(problem)
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * US + since.microseconds


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
    return workload, parameters, built.flow if built else None


def _engine(experiment: Experiment, problems: list[Problem]) -> Capabilities | None:
    known = streaming_engines()
    if experiment.engine in known:
        return capabilities()[experiment.engine]
    way_out = f"--engine {nearest(experiment.engine, known)} (streamgauge engines lists them)"
    problems.append(Problem("engine", f"must be one of {', '.join(known)}", experiment.engine, way_out))
    return None


def _having(tuning: str) -> list[str]:
    """The engines that have a tuning profile."""
    return [name for name in streaming_engines() if tuning in capabilities()[name].profiles]


def _carried_by(experiment: Experiment, engine: Capabilities | None) -> str:
    """The transport that defaults follow: one that the engine can read, where the one asked for is none. So nobody is
    told of a number that only follows from what is refused anyway.
    """
    if engine is None or experiment.transport in engine.transports:
        return experiment.transport
    return engine.transports[0]


def _as_done(flow: Flow | None, engine: Capabilities | None) -> Flow | None:
    """The flow as an engine does it: of one whose windows never close, their values so far are what is verified."""
    return with_early_firing(flow) if flow is not None and engine is not None and engine.early_firing else flow


def _engine_problems(
    experiment: Experiment, workload: Workload | None, wanted: StartRequest, engine: Capabilities
) -> Iterator[Problem]:
    """What the engine cannot do, or does not know; names of operators too where the flow itself is refused."""
    if wanted.flow is not None:
        yield from _capability_problems(wanted.flow, engine)
    certain = _wanted_problems(wanted, engine)
    yield from certain
    if wanted.flow is None and workload is not None and (like := _flow_like(experiment, workload)) is not None:
        for problem in _wanted_problems(replace(wanted, flow=_as_done(like, engine)), engine):
            if problem not in certain:
                yield replace(problem, rule=f"{problem.rule} (looked at without the settings that are refused)")


def _flow_like(experiment: Experiment, workload: Workload) -> Flow | None:
    """The flow that was meant, as near as it can be built where it is refused: without data, wrong parameters at their
    defaults, else all of them. None where that is refused too.
    """
    plain = workload if isinstance(workload, UserJob) else get_workload(experiment.workload)
    own = {name: value for name, value in experiment.parameters.items() if not is_data(name) and not is_data_time(name)}
    right = {name: value for name, value in own.items() if attempt(partial(plain.read, {name: value}), []) is not None}
    for values in (right, {}):
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
            way_out = (
                f"--engine {engine.fallback_engine}"
                if engine.fallback_engine
                else "streamgauge engines shows who has one"
            )
            yield Problem("engine", f"has no lowering for {kind}{because}", engine.name, way_out)
    if len(flow.sinks) > 1 and not engine.several_sinks:
        names = ", ".join(sink.name for sink in flow.sinks)
        yield Problem("engine", f"{engine.name} writes to one sink only", names, "another engine")
    for mode in dict.fromkeys(sink.mode for sink in flow.sinks):
        if mode not in engine.sink_modes:
            yield Problem("engine", f"cannot write {mode} results", engine.name, "another engine")


def _interval_problems(experiment: Experiment, interval: BatchInterval, apart: Sequence[_Apart]) -> Iterator[Problem]:
    """What the engine's interval, or the flow's windows, say against the queue and the span, before they are tried."""
    if experiment.command in DECIDING:
        yield from _bound_problems(experiment, interval)
        yield from _span_problems(experiment, apart)


@dataclass(frozen=True)
class _Apart:
    """How far apart windows or batches are, at least; the setting that says so; how many any verdict needs."""

    what: str
    setting: str
    seconds: float
    needed: int


def _apart(flow: Flow | None, interval: BatchInterval) -> list[_Apart]:
    """As far as it is known before the start; nothing where results come row by row, in batches back to back."""
    slide_us = longest_slide_us(flow) if flow is not None else None
    windows = _Apart("windows", "slide", (slide_us or 0) / US, WINDOWS_MIN)
    batches = _Apart("batches", interval.option, interval.seconds, BATCHES_MIN)
    return [one for one in (windows, batches) if one.seconds]


def _span_problems(experiment: Experiment, apart: Sequence[_Apart]) -> Iterator[Problem]:
    """A span that can only be undecided: even at its longest it holds too few windows or batches."""
    longest = _longest_s(experiment.load)
    if longest is None:
        return
    short = [one for one in apart if longest < one.needed * one.seconds]
    if short:
        held = ", and ".join(
            f"{int(longest / one.seconds)} {one.what} ({one.setting}: {one.seconds:g} s) where a verdict needs "
            f"{one.needed}"
            for one in short
        )
        needed = math.ceil(max(one.needed * one.seconds for one in short))
        rule = f"is too short for a verdict: {_span_in_words(experiment.load)} holds {held}"
        yield Problem("load.duration", rule, f"{experiment.load.duration:g}s", f"--duration {needed}s")


def _level_problems(
    experiment: Experiment, apart: Sequence[_Apart], levels: Sequence[ServiceLevelObjective]
) -> Iterator[Problem]:
    """Levels on a percentile that even the longest span cannot carry, by its windows or its batches, whichever are
    fewer: they can only be undecided.
    """
    longest = _longest_s(experiment.load)
    if experiment.command not in DECIDING or longest is None or not apart:
        return
    fewest = max(apart, key=lambda one: one.seconds)
    held = round(longest * US) // max(1, round(fewest.seconds * US))
    for level in levels:
        q = PERCENTILES.get(level.statistic)
        if q is None or carries(q, held):
            continue
        needed = observations_needed(q)
        rule = (
            f"can only be undecided: {level.statistic.replace('_', '.')} needs {needed} {fewest.what} "
            f"({fewest.setting}: {fewest.seconds:g} s), and {_span_in_words(experiment.load)} holds {held}"
        )
        decided = f"{level.kind}_max<={level.text.partition('<=')[2].strip()}"
        way_out = f'--limit "{decided}", or p50, or --duration {math.ceil(needed * fewest.seconds)}s'
        yield Problem("limits", rule, level.text, way_out)


def _kind_problems(flow: Flow, levels: Sequence[ServiceLevelObjective]) -> Iterator[Problem]:
    """Levels on a latency that no result of the flow has."""
    there = latencies_of(flow)
    for level in levels:
        if there is not None and level.kind not in there:
            rule = f"names a latency that no result of this workload has; there are {', '.join(there)}"
            fallback_engine = f"event_time_{level.text.removeprefix(level.kind).lstrip('_').strip()}"
            yield Problem("limits", rule, level.text, f'--limit "{fallback_engine}"')


def _in_range(name: str, seconds: float) -> bool:
    least, greatest, _ = SPANS_S[name]
    return least <= seconds <= greatest


def _longest_s(load: Load) -> float | None:
    """How long the span can get by extensions, seconds; None where its duration itself is refused."""
    if not _in_range("duration", load.duration):
        return None
    return load.duration * (1 + EXTENSIONS_MAX * EXTENSION_SHARE_MAX) if may_extend(load) else load.duration


def _span_in_words(load: Load) -> str:
    if may_extend(load):
        return f"even extended to {_longest_s(load):g} s, the most there is, it"
    return f"a span of {load.duration:g} s (a rate that changes is not extended)"


def _bound_problems(experiment: Experiment, interval: BatchInterval) -> Iterator[Problem]:
    """A queue that batches fill by being far apart is full at any rate: that says nothing of the engine."""
    bound, least = experiment.load.bound, BOUND_INTERVALS_MIN * interval.seconds
    if bound >= least or not _in_range("bound", bound):
        return
    rule = f"must be at least {BOUND_INTERVALS_MIN} times the engine's interval of batches"
    shorter = f"a shorter --option {interval.option}"
    way_out = (
        f"--bound {least:g}s, or {shorter}" if _in_range("bound", least) else f"{shorter}: --bound is at most an hour"
    )
    yield Problem("load.bound", f"{rule} ({interval.option}: {interval.seconds:g} s)", f"{bound:g}s", way_out)


def _memory_problems(resolved: ResolvedExperiment) -> Iterator[Problem]:
    """A queue that memory fills within seconds of the rate ends a run that says nothing of the engine."""
    load = resolved.experiment.load
    seconds, cut = resolved.bound_s(load.rate)
    if resolved.experiment.command != "run" or not cut or seconds >= BOUND_S_MIN:
        return
    lower, needs = load.rate * seconds / BOUND_S_MIN, f"where a verdict needs {BOUND_S_MIN:g} s"
    memory = f"the queue's memory of {resolved.bytes_max / 2**20:.4g} MiB"
    rule = f"is too much for {memory}, which holds {seconds:.2g} s of it {needs}"
    needed = math.ceil(resolved.bytes_max * BOUND_S_MIN / seconds / 2**20) + 1
    more = f"--memory {needed}MiB, or " if needed * 2**20 <= memory_bytes() else ""
    yield Problem("load.rate", rule, format_rate(load.rate), f"{more}--rate {_rounded_down(lower)}")


def _rounded_down(rate_per_s: float) -> str:
    """Two digits, as people write a rate."""
    step = 10.0 ** (math.floor(math.log10(rate_per_s)) - 1)
    return format_rate(math.floor(rate_per_s / step) * step).replace(" ", "")


def _wanted_problems(wanted: StartRequest, engine: Capabilities) -> list[Problem]:
    found: list[Problem] = []
    attempt(lambda: entry(engine.name).check(wanted), found)
    return found


NUL = "\0"
"""In no path and no address: the system refuses it with an error that names nothing."""


def _text_problems(experiment: Experiment) -> Iterator[Problem]:
    """Words that no system call takes. An empty address is every address there to a socket, and none to a transport."""
    examples = {name: SETTINGS[name].way_out for name in ("bind", "out")}
    examples["workload"] = "streamgauge workloads lists them"
    for name, way_out in examples.items():
        if NUL in (getattr(experiment, name) or ""):
            yield Problem(name, "must not hold a NUL character", getattr(experiment, name), way_out)
    for name in ("bind", "out"):
        if getattr(experiment, name) == "":
            yield Problem(name, "must not be empty", "", examples[name])


def _usable(text: str) -> bool:
    """Whether a word may be given to the system; one that may not is refused by `_text_problems`."""
    return text != "" and NUL not in text


def _transport_problems(experiment: Experiment, engine: Capabilities | None, generators: int) -> Iterator[Problem]:
    names = transports.NAMES
    if experiment.transport not in names:
        rule, way_out = f"must be one of {', '.join(names)}", f"--transport {nearest(experiment.transport, names)}"
        yield Problem("transport", rule, experiment.transport, way_out)
    elif engine and experiment.transport not in engine.transports:
        rule = f"is none that {engine.name} can read"
        yield Problem("transport", rule, experiment.transport, f"--transport {engine.transports[0]}")
    else:
        yield from transports.problems(experiment.transport, experiment.transport_options)
    if experiment.transport in transports.BROKERED and experiment.port is not None:
        rule = f"is not for the transport {experiment.transport}: its broker takes a free one"
        yield Problem("port", rule, experiment.port, "leave --port out")
    if not _usable(experiment.bind):
        return
    if reason := _port_problem(experiment.bind, 0):
        yield Problem("bind", f"must be an address of this machine ({reason})", experiment.bind, "--bind 127.0.0.1")
        return
    first = experiment.port
    for port in range(first, first + 1 + generators) if first is not None else ():
        if reason := _port_problem(experiment.bind, port):
            yield Problem(
                "port", f"must be free on {experiment.bind} ({reason})", port, "leave --port out: free ones are found"
            )
            return


def _port_problem(host: str, port: int) -> str:
    with socket.socket() as probe:
        # As servers bind: connections of one that ended a moment ago do not keep a port busy.
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
        if seconds is not None and not _in_range(name, seconds):
            setting = f"load.{name}"
            yield Problem(setting, f"must be {words}", f"{seconds:g}s", SETTINGS[setting].way_out)
    for setting, rate in (("load.rate", load.rate), ("search.start_rate", experiment.search.start_rate)):
        if rate is not None and rate > RATE_MAX_PER_S:
            yield Problem(setting, "must be at most 1G events/s", rate, f"{SETTINGS[setting].flag} 1M")
    if experiment.isolation == "pinned" and len(cpus()) < 2:
        yield Problem("isolation", "pinned needs two processors at least", len(cpus()), "--isolation shared")


def _budget(experiment: Experiment, engine: Capabilities | None, problems: list[Problem]) -> Budget:
    """What the engine and the queue take of the memory; a queue that is refused counts as one not asked for."""
    there, text = memory_bytes(), experiment.load.memory
    heap = entry(engine.name).heap_bytes(experiment.options) if engine else 0
    if text is None:
        return Budget(there, heap, None)
    asked = attempt(partial(parse_setting, parse_size, "load.memory", text), problems)
    if asked is not None and not 2**20 <= asked <= there:
        rule = f"must be from 1 MiB to what this machine has ({there / 2**30:.1f} GiB)"
        usual = at_most_half(QUEUE_BYTES) / 2**30
        problems.append(Problem("load.memory", rule, text, f"leave --memory out: {usual:.3g} GiB at most"))
        asked = None
    return Budget(there, heap, asked)


def _place_problems(experiment: Experiment) -> Iterator[Problem]:
    if experiment.out is not None and not _usable(experiment.out):
        return
    root = Path(experiment.out or "runs")
    standing = next((path for path in (root, *root.absolute().parents) if path.exists()), Path("/"))
    if not standing.is_dir():
        yield Problem("out", "must be a folder, and a file has that name", str(root), "--out DIR")
    elif experiment.command != "generate" and not root.absolute().parent.is_dir():
        yield Problem("out", "the folder above it must exist", str(root), "--out DIR with a folder you may write to")
    elif not os.access(standing, os.W_OK):
        yield Problem("out", f"must be a place you may write to ({standing} is not)", str(root), "--out DIR")
