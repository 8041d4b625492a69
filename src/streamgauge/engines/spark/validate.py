"""Validation without a running Spark: options, lowerings, the master, types of Spark's settings.

PySpark has no list of Spark's settings, so only types that follow from a setting's name are checked here.
`session.open_checked` checks the names in a running session.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from streamgauge.core.errors import Problem, Rule, broken, nearest
from streamgauge.core.plugin_options import Setting, problems_of
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import (
    Distinct,
    Flow,
    IntervalJoin,
    Node,
    OpaqueNode,
    Process,
    RunningAggregate,
    SessionAggregate,
    Source,
    TopN,
    WindowAggregate,
    WindowJoin,
)
from streamgauge.engines.spark.options import (
    CAPABILITIES,
    LOWERING,
    LOWERINGS,
    gives_first_rows,
    memory_rules,
    value_rules,
)
from streamgauge.engines.spark.parallelism import parallelism_problems
from streamgauge.engines.spark.session.masters import SCHEME, is_valid_local, places
from streamgauge.engines.spi import Capabilities, StartRequest
from streamgauge.transports.registry import BROKERED

PREFIX = "spark."
ONE_PARTITION = "--partitions 1 --generators 1"

HOLDING = (Process, WindowAggregate, SessionAggregate, WindowJoin, IntervalJoin, TopN, Distinct)
"""Operators whose results wait for the watermark over a broker; `_is_stateless` has the exceptions."""

_STANDALONE = re.compile(rf"{SCHEME}[\w.-]+:[0-9]+(,[\w.-]+:[0-9]+)*")
_KUBERNETES = re.compile(r"k8s://(https?://)?[\w.-]+(:[0-9]+)?/?")
_LOOPBACK = re.compile(r"localhost|127(\.[0-9]+){3}")
_ANY_ADDRESS = "0.0.0.0"
"""Can be listened on, but is not an address that executors can connect to."""
_IMAGES = ("spark.kubernetes.container.image", "spark.kubernetes.executor.container.image")
_HADOOP = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")

_TYPES: tuple[tuple[str, str, str, str], ...] = (
    (r"spark\.(?!hadoop\.).*\.enabled", "true|false", "true or false", "false"),
    (
        r"spark\.(sql\.shuffle\.partitions|default\.parallelism|cores\.max|task\.cpus|(driver|executor)\.cores"
        r"|executor\.instances)",
        r"[1-9][0-9]*",
        "a whole number of at least 1",
        "2",
    ),
    (
        r"spark\.(driver|executor)\.(memory|memoryOverhead)|spark\.memory\.offHeap\.size|spark\.driver\.maxResultSize",
        r"[0-9]+([kmgtp]b?|b)?",
        "a size as Spark writes it, such as 512m or 4g",
        "4g",
    ),
    (r"spark\.memory\.(fraction|storageFraction)", r"0?\.[0-9]+", "a share between 0 and 1", "0.6"),
)
"""(pattern of names, pattern of values, rule, example value); values are case-insensitive."""

_NAME = re.compile(r"spark(\.[^\s.=\0]+)+")
"""Permissive, because names may contain Kubernetes labels with slashes."""
OWN_OPTIONS = {"spark.master": "--master {}", "spark.driver.memory": "--option driver_memory={}"}
"""Spark settings that have an option of streamgauge; both could contradict each other."""


def request_problems(request: StartRequest) -> Iterator[Problem]:
    """What Spark would report only after its start, or would ignore."""
    yield from option_problems(request, CAPABILITIES)
    yield from broken(*value_rules(request.options))
    if request.flow is not None:
        yield from _unused_delay(request.flow, request)
        if request.transport in BROKERED:
            rule = f"cannot be packed with the transport {request.transport}"
            yield from refused_lowerings(request.options, {"packed": rule})
            yield from _updates_of_held_rows(request.flow, request)


def option_problems(
    request: StartRequest, engine: Capabilities, own_options: Mapping[str, str] = OWN_OPTIONS
) -> Iterator[Problem]:
    """Problems of options, Spark's settings and the master. `own_options`: Spark's setting to the option instead."""
    spark_settings = {name: value for name, value in request.options.items() if name.startswith(PREFIX)}
    lowerings = {name: value for name, value in request.options.items() if name.startswith(LOWERING)}
    own = {
        name: value for name, value in request.options.items() if name not in spark_settings and name not in lowerings
    }
    yield from problems_of(own, engine.settings, engine.name)
    yield from broken(*memory_rules(own, request.queue_bytes, request.generators_bytes))
    if request.flow is not None:
        yield from _lowerings(lowerings, request.flow)
    yield from _types(spark_settings, own_options)
    yield from parallelism_problems(request)
    yield from _master(request, spark_settings)


def refused_lowerings(options: Mapping[str, str], rules: Mapping[str, str]) -> Iterator[Problem]:
    """Problems of chosen lowerings. `rules`: lowering to the rule that refuses it."""
    for name, value in options.items():
        if name.startswith(LOWERING) and value in rules:
            yield Problem(f"option {name}", rules[value], value, "leave it out")


def _unused_delay(flow: Flow, request: StartRequest) -> Iterator[Problem]:
    """A watermark delay that an operator would ignore."""
    delay = request.options.get("watermark_delay")
    packed = [name.removeprefix(LOWERING) for name, lowering in request.options.items() if lowering == "packed"]
    for node in graph.operators(flow) if delay is not None else ():
        cut_evenly = isinstance(node, Process) and node.keys and request.transport not in BROKERED
        if isinstance(node, OpaqueNode) or cut_evenly or node.name in packed:
            rule = f"does not apply to {node.name}, whose watermark has no delay"
            yield Problem("option watermark_delay", rule, delay, "leave it out")


def _updates_of_held_rows(flow: Flow, request: StartRequest) -> Iterator[Problem]:
    """Updates of rows that an operator held back: the batch that read a row is not the one that gives its update.

    A broker's partitions are read independently, so the sources are not cut at one event time.
    """
    streams = {node.name for node in graph.operators(flow) if isinstance(node, Source)}
    for node in graph.operators(flow) if (request.partitions, len(streams)) != (1, 1) else ():
        held = [each.name for each in graph.walk(node) if isinstance(each, HOLDING) and not _is_stateless(each)]
        if held and (isinstance(node, RunningAggregate) or gives_first_rows(node)):
            rule = f"must be 1, with one stream, for {node.name}, because {held[0]} holds rows back until the watermark"
            yield Problem("partitions", rule, request.partitions, ONE_PARTITION + ", or --transport memory")


def _is_stateless(node: Node) -> bool:
    return (isinstance(node, Process) and not node.keys) or gives_first_rows(node)


def _lowerings(options: dict[str, str], flow: Flow) -> Iterator[Problem]:
    choices_by_operator = {
        node.name: LOWERINGS[type(node)] for node in graph.operators(flow) if type(node) in LOWERINGS
    }
    settings = [Setting(LOWERING + name, choices[0], "", choices) for name, choices in choices_by_operator.items()]
    existing = {name: value for name, value in options.items() if name.removeprefix(LOWERING) in choices_by_operator}
    yield from problems_of(existing, settings, "spark")
    every = ", ".join(node.name for node in graph.operators(flow))
    for name in options.keys() - existing.keys():
        rule = f"must name an operator with several lowerings; this flow's operators are {every}"
        examples = {setting.name: f"--option {setting.name}={'|'.join(setting.choices)}" for setting in settings}
        way_out = examples[nearest(name, tuple(examples))] if examples else "leave it out"
        yield Problem(f"option {name}", rule, options[name], way_out)


def _types(spark_settings: Mapping[str, str], own_options: Mapping[str, str]) -> Iterator[Problem]:
    for name, value in spark_settings.items():
        setting, is_name = f"option {name}", _NAME.fullmatch(name)
        name_rule = "must be a setting's name: words separated by single dots, without spaces or ="
        instead = own_options.get(name, "").format(value)
        yield from broken(
            Rule(is_name, setting, name_rule, value, "--option spark.NAME=VALUE"),
            Rule(name not in own_options, setting, "has its own option in streamgauge", value, instead),
            *(
                Rule(
                    re.fullmatch(values, value.strip(), re.IGNORECASE),
                    setting, f"must be {rule}", value, f"--option {name}={example}",
                )
                for names, values, rule, example in _TYPES
                if is_name and re.fullmatch(names, name)
            ),
        )  # fmt: skip


def _master(request: StartRequest, spark_settings: Mapping[str, str]) -> list[Problem]:
    """Problems of the master, and of a bind address that its executors cannot reach: the start would time out."""
    master, bind = request.master or "", request.bind
    kubernetes, yarn = _KUBERNETES.fullmatch(master), master == "yarn"
    is_valid = request.master is None or is_valid_local(master) or _STANDALONE.fullmatch(master) or kubernetes or yarn
    is_image_set = any(name in spark_settings for name in _IMAGES)
    is_hadoop_set = any(Path(folder).is_dir() for name in _HADOOP if (folder := os.environ.get(name)))
    is_reachable = not _LOOPBACK.fullmatch(bind) and bind != _ANY_ADDRESS
    return broken(
        Rule(
            is_valid, "master", f"must be local, local[N], local[*], {SCHEME}HOST:PORT, k8s://HOST:PORT or yarn",
            master, "leave --master out: local on all cores",
        ),
        Rule(
            not kubernetes or is_image_set, "master", "on Kubernetes needs an image for its executors",
            master, f"--option {_IMAGES[0]}=IMAGE",
        ),
        Rule(
            not yarn or is_hadoop_set, "master",
            f"yarn needs {' or '.join(_HADOOP)} to name a folder with the cluster's configuration",
            master, f"export {_HADOOP[0]}=DIR",
        ),
        Rule(
            is_reachable or not _has_remote_executors(master), "bind",
            f"must be an address of this machine that the executors of {master} can reach",
            bind, "--bind ADDRESS, which Spark's driver then takes too",
        ),
    )  # fmt: skip


def _has_remote_executors(master: str) -> bool:
    """Whether executors may run outside this machine's loopback. In a pod they always do."""
    if _STANDALONE.fullmatch(master):
        hosts = [host.rpartition(":")[0] for host in places(master)]
        return not all(_LOOPBACK.fullmatch(host) for host in hosts)
    return master == "yarn" or bool(_KUBERNETES.fullmatch(master))
