"""The engines by name: those of streamgauge, and those that other distributions declare as entry points."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from streamgauge.core.errors import InputError, Problem, Rule, attempt, broken, nearest
from streamgauge.core.machine_check import MachineCheck, refuse_missing
from streamgauge.core.plugin_options import TUNED, Setting
from streamgauge.dataflow.graph import operators
from streamgauge.dataflow.nodes import Flow, InWindows, OpaqueNode
from streamgauge.engines.local_cluster import LocalCluster
from streamgauge.engines.spi import ANOTHER_ENGINE, INTERFACE, Capabilities, Engine, EnginePlugin, StartRequest
from streamgauge.transports import registry as transports

GROUP = "streamgauge.engines"
"""The group of entry points in which a distribution declares its engines: name = "module:plugin class"."""
BUILT_IN = {
    "spark": "streamgauge.engines.spark.plugin:SparkPlugin",
    "spark-rtm": "streamgauge.engines.spark.plugin:SparkRealTimePlugin",
    "spark-dstream": "streamgauge.engines.spark.plugin:SparkDStreamPlugin",
    "flink": "streamgauge.engines.flink.plugin:FlinkPlugin",
    "kafka-streams": "streamgauge.engines.kafka_streams.plugin:KafkaStreamsPlugin",
    "storm": "streamgauge.engines.storm.plugin:StormPlugin",
    "external": "streamgauge.engines.external.plugin:ExternalPlugin",
    "known": "streamgauge.engines.synthetic.plugin:SyntheticPlugin",
    "oracle": "streamgauge.engines.duckdb_oracle.plugin:OraclePlugin",
}
"""Our own engines, in the form of entry points. They are not declared in pyproject.toml, because installed metadata of
a source tree can be older than its code: an engine would be missing until the next install.
"""
_plugins: dict[str, EnginePlugin] = {}
"""The plugins loaded so far."""


@cache
def declared() -> dict[str, EntryPoint]:
    """Every engine's entry point by name, ours first. Loads none; InputError if two distributions give one name."""
    found = {name: EntryPoint(name, value, GROUP) for name, value in BUILT_IN.items()}
    for each in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        if each.name in found:
            both = f"{_distribution(found[each.name])} and {_distribution(each)}"
            way_out = f"uninstall one of them: pip uninstall {_distribution(each)}"
            raise InputError(Problem(f"engine {each.name}", "must be declared by one distribution only", both, way_out))
        found[each.name] = each
    return found


def _distribution(point: EntryPoint) -> str:
    return "streamgauge" if point.dist is None else point.dist.name


def _load(point: EntryPoint) -> EnginePlugin:
    """The plugin behind an entry point. Raises InputError if it cannot be used."""
    try:
        plugin: EnginePlugin = point.load()()
        rule = _broken_rule(point.name, plugin)
    except Exception as error:  # the code of another distribution may fail in any way
        if point.dist is None:
            raise
        rule = f"must load, but gave {type(error).__name__}: {error}"
    if rule:
        name = _distribution(point)
        way_out = f"repair it, or pip uninstall {name}"
        raise InputError(Problem(f"engine {point.name}", rule, f"{point.value} of {name}", way_out))
    return plugin


def _broken_rule(name: str, plugin: Any) -> str:
    """The first rule that a plugin breaks; empty if none."""
    if not isinstance(plugin, EnginePlugin):
        return "must be a class that extends streamgauge.engines.spi.EnginePlugin"
    if (number := getattr(plugin, "interface", 1)) != INTERFACE:
        return f"must be written for engine interface {INTERFACE} (interface = {INTERFACE}), and is for {number}"
    available, engine = transports.NAMES, plugin.capabilities
    if engine.name != name:
        return f"must have the name of its entry point, but its capabilities say {engine.name!r}"
    if not set(engine.transports) <= set(available) or (engine.runs_streams and not engine.transports):
        return f"must read transports of {', '.join(available)}, but its capabilities say {engine.transports}"
    if set(engine.transports) & set(transports.BROKERED) and not engine.encodings:
        return f"must say in its capabilities which encodings it reads over {', '.join(transports.BROKERED)}"
    return ""


def capabilities() -> dict[str, Capabilities]:
    """The capabilities of every engine, including the oracle."""
    return {name: entry(name).capabilities for name in declared()}


def streaming_engines() -> tuple[str, ...]:
    return tuple(name for name, each in capabilities().items() if each.runs_streams)


def entry(engine: str) -> EnginePlugin:
    """The plugin of an engine. Raises InputError if it cannot be loaded."""
    if engine not in _plugins:
        _plugins[engine] = _load(declared()[engine])
    return _plugins[engine]


def location_settings() -> frozenset[str]:
    """Settings in force, of any engine, that only name the folder in which the command ran."""
    return frozenset(name for each in capabilities().values() for name in each.location_settings)


def local_cluster() -> LocalCluster:
    """The cluster that `streamgauge cluster` runs: that of the first engine with one."""
    return next(cluster for name in declared() if (cluster := entry(name).local_cluster()) is not None)


def starter_of(engine: str, cpus: Sequence[int] | None, parallelism: int | None = None) -> Callable[[], Engine]:
    """A function that makes a fresh start of a streaming engine on the given processors, with a parallelism."""
    return partial(entry(engine).make, cpus, parallelism)


def require(engine: str, transport: str, options: Mapping[str, str]) -> None:
    """Raises MachineError if this machine lacks what the transport or the engine needs and cannot get it."""
    refuse_missing([*transports.transport(transport).machine_checks(options), *entry(engine).machine_checks()])
    transports.transport(transport).require(options)
    entry(engine).require(transport, options)


def machine_checks(default: str) -> list[MachineCheck]:
    """The checks of all engines, each name once. Those of engines other than the `default` say which needs them."""
    checks: dict[str, MachineCheck] = {}
    for name in (default, *streaming_engines()):
        for check in entry(name).machine_checks():
            needed_with = check.needed_with or ("" if name == default else f"--engine {name}")
            checks.setdefault(check.name, replace(check, needed_with=needed_with))
    return list(checks.values())


def name_problems(engine: str) -> list[Problem]:
    """A name that no streaming engine has."""
    names = streaming_engines()
    way_out = f"--engine {nearest(engine, names)} (streamgauge engines lists them)"
    return broken(Rule(engine in names, "engine", f"must be one of {', '.join(names)}", engine, way_out))


def tuning_problems(engine: Capabilities, tuning: str, may_run_on: Callable[[Collection[str]], bool]) -> list[Problem]:
    """A profile that the engine does not have. `may_run_on`: whether an engine with these nodes runs the workload."""
    others = (capabilities()[name] for name in streaming_engines())
    having = [other.name for other in others if tuning in other.profiles and may_run_on(other.nodes)]
    way_out = f"--tuning {TUNED}" + (f", or --engine {having[0]}" if having else "")
    rule = f"must be {' or '.join(engine.profiles)}: {engine.name} has no other tuning profile"
    return broken(Rule(tuning in engine.profiles, "tuning", rule, tuning, way_out))


def capability_problems(flow: Flow, engine: Capabilities) -> Iterator[Problem]:
    """The nodes and sinks of a flow that the engine does not support."""
    for node in operators(flow):
        kind = what = type(node).__name__
        if kind not in engine.nodes:
            because = f": {engine.unsupported_reasons[kind]}" if kind in engine.unsupported_reasons else ""
            way_out = f"--engine {engine.fallback_engine}" if engine.fallback_engine else ANOTHER_ENGINE
            if isinstance(node, OpaqueNode):
                what, way_out = node.plural, node.other_engine or way_out
            yield Problem("engine", f"does not support {what}{because}", engine.name, way_out)
    names, few = ", ".join(sink.name for sink in flow.sinks), len(flow.sinks) == 1 or engine.several_sinks
    modes = dict.fromkeys(sink.mode for sink in flow.sinks)
    yield from broken(
        Rule(few, "engine", f"{engine.name} writes to one sink only", names, ANOTHER_ENGINE),
        *(Rule(mode in engine.sink_modes, "engine", f"does not support results in {mode} mode", engine.name,
               ANOTHER_ENGINE)
          for mode in modes),
    )  # fmt: skip


def start_problems(request: StartRequest, engine: Capabilities) -> list[Problem]:
    """What the engine refuses of a start: a parallelism that it does not set, and what its plugin checks."""
    problems = broken(
        Rule(request.parallelism is None or engine.sets_parallelism, "parallelism",
             f"does not apply to the engine {engine.name}", request.parallelism, "leave --parallelism out")
    )  # fmt: skip
    attempt(partial(entry(engine.name).check, request), problems)
    return problems


def encoding_problems(engine: Capabilities, encoding: str) -> list[Problem]:
    """An encoding of messages that the engine cannot read; empty for a transport without one."""
    rule = f"must be one that {engine.name} reads: {', '.join(engine.encodings)}"
    way_out = f"--transport-option encoding={''.join(engine.encodings[:1])}"
    fits = not encoding or encoding in engine.encodings
    return broken(Rule(fits, "transport option encoding", rule, encoding, way_out))


def matrix() -> list[dict[str, Any]]:
    """The capability matrix as plain data, one row per engine."""
    return [
        {
            "name": each.name,
            "summary": each.summary,
            "streams": each.runs_streams,
            "truth": each.computes_truth,
            "several_sinks": each.several_sinks,
            "nodes": [name for name in each.nodes if name != InWindows.__name__],
            "windows_so_far": each.early_firing,
            "sink_modes": list(each.sink_modes),
            "transports": list(each.transports),
            "encodings": list(each.encodings),
            "delivery": each.delivery,
            "delivery_of_windows": each.delivery_of_windows,
            "fetches": [
                asdict(fetch)
                for fetches in (each.fetches, *(transports.transport(name).fetches for name in each.transports))
                for fetch in fetches
            ],
            "tuning_profiles": list(each.profiles),
            "options": _setting_rows(each.settings),
        }
        for each in capabilities().values()
    ]


def transport_rows() -> list[dict[str, Any]]:
    """Every transport with its options, as plain data."""
    return [{"name": name, "options": _setting_rows(transports.transport(name).settings)} for name in transports.NAMES]


def _setting_rows(settings: Sequence[Setting]) -> list[dict[str, Any]]:
    return [{"name": s.name, "default": s.default, "meaning": s.meaning, "choices": list(s.choices)} for s in settings]
