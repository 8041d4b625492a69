"""What is asked of Spark and can be refused without one: options, lowerings, the master, types of Spark's settings.

PySpark ships no list of Spark's settings, so only what a setting's name says of its type is looked at here; a session
that runs knows its names, and is asked (`session.open_checked`).
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from streamgauge.core.errors import InputError, Problem, nearest
from streamgauge.core.options import Setting, problems_of
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Distinct, Flow, NativeJob, Process, RunningAggregate, Source
from streamgauge.engines.spark.options import CAPABILITIES, LOWERING, LOWERINGS, RULES, check_beside
from streamgauge.engines.spi import Capabilities, StartRequest

PREFIX = "spark."
Rule = Callable[[str], Problem | None]
"""What is wrong with a value; None where nothing is."""

_LOCAL = re.compile(
    r"local(\[([1-9][0-9]*|\*)(,\s*[1-9][0-9]*)?\])?"
    r"|local-cluster\[\s*[0-9]+\s*,\s*[0-9]+\s*,\s*[0-9]+\s*\]"
)
_STANDALONE = re.compile(r"spark://[\w.-]+:[0-9]+(,[\w.-]+:[0-9]+)*")
_KUBERNETES = re.compile(r"k8s://(https?://)?[\w.-]+(:[0-9]+)?/?")
_LOOPBACK = re.compile(r"localhost|127(\.[0-9]+){3}")
_EVERYWHERE = "0.0.0.0"
"""To listen on; nobody can be sent there."""
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
"""(names, values, the rule in words, a value that is right); values in any case."""

_NAME = re.compile(r"spark(\.[^\s.=\0]+)+")
"""Labels of Kubernetes are part of names, with slashes and more."""
_ELSEWHERE = {"spark.master": "--master", "spark.driver.memory": "--option driver_memory"}
"""Settings that are asked for by a word of ours: two words for one thing could disagree."""


def check(request: StartRequest) -> None:
    """Refuse what Spark would choke on only after its start, or pass over; InputError with every problem."""
    found = [*option_problems(request, CAPABILITIES, RULES), *_delay_in_vain(request)]
    if request.transport == "kafka" and request.flow is not None:
        found += _on_kafka(request.flow, request)
    if found:
        raise InputError(found)


def option_problems(request: StartRequest, engine: Capabilities, rules: Mapping[str, Rule]) -> Iterator[Problem]:
    """What is wrong with options, Spark's settings and the master; `rules` says what is with an option's value."""
    users = {name: value for name, value in request.options.items() if name.startswith(PREFIX)}
    lowerings = {name: value for name, value in request.options.items() if name.startswith(LOWERING)}
    ours = {name: value for name, value in request.options.items() if name not in users and name not in lowerings}
    yield from _own_options(ours, engine, rules)
    if (problem := check_beside(request.queue_bytes, ours, request.generators_bytes)) is not None:
        yield problem
    if request.flow is not None:
        yield from _lowerings(lowerings, request.flow)
    yield from _types(users)
    yield from _master(request.master, users)
    yield from _reachable(request.master, request.bind)


def _delay_in_vain(request: StartRequest) -> Iterator[Problem]:
    """A watermark's delay where an operator keeps to its own."""
    name = "watermark_delay"
    if request.flow is None or name not in request.options:
        return
    packed = [option.removeprefix(LOWERING) for option, value in request.options.items() if value == "packed"]
    for node in graph.operators(request.flow):
        if isinstance(node, NativeJob) or (isinstance(node, Process) and node.keys) or node.name in packed:
            rule = f"is not for {node.name}, whose watermark has none of it"
            yield Problem(f"option {name}", rule, request.options[name], "leave it out")


def _on_kafka(flow: Flow, request: StartRequest) -> Iterator[Problem]:
    """What needs every source cut at one event time, or what only the transport of ours gives."""
    for node in graph.operators(flow):
        refused = {NativeJob: "own jobs", Process: "processes with keys"}.get(type(node), "")
        if refused and getattr(node, "keys", True):
            rule = f"carries no {refused} yet ({node.name})"
            yield Problem("transport", rule, "kafka", "--transport flight")
    for name, value in request.options.items():
        if name.startswith(LOWERING) and value == "packed":
            yield Problem(f"option {name}", "must not be packed with the transport kafka", value, "leave it out")
    streams = {node.name for node in graph.operators(flow) if isinstance(node, Source)}
    if not any(isinstance(node, RunningAggregate | Distinct) for node in graph.operators(flow)):
        return
    if len(streams) > 1:
        rule = "cuts no two streams at one event time, which updates and firsts of several streams need"
        yield Problem("transport", rule, "kafka", "--transport flight")
    if request.partitions > 1:
        rule = "must be 1 for updates and firsts over a broker: its partitions are read at no common event time"
        yield Problem("load.generators", rule, request.partitions, "--generators 1")


def _own_options(options: dict[str, str], engine: Capabilities, rules: Mapping[str, Rule]) -> Iterator[Problem]:
    misspelt = {name: meant for name in options if (meant := _is_spark_setting(name))}
    for name, meant in misspelt.items():
        yield Problem(f"option {name}", f"is not an option of {engine.name}", options[name], f"--option {meant}=...")
    named = {name: value for name, value in options.items() if name not in misspelt}
    yield from problems_of(named, engine.settings, engine.name)
    yield from (problem for name, rule in rules.items() if name in named and (problem := rule(named[name])))


def _is_spark_setting(name: str) -> str:
    """`sprak.sql.x` as `spark.sql.x`; nothing where it is no such slip."""
    first, dot, rest = name.partition(".")
    return f"spark.{rest}" if dot and difflib.get_close_matches(first, ["spark"], 1, 0.7) else ""


def _lowerings(options: dict[str, str], flow: Flow) -> Iterator[Problem]:
    there = {node.name: LOWERINGS[type(node)] for node in graph.operators(flow) if type(node) in LOWERINGS}
    settings = [Setting(LOWERING + name, choices[0], "", choices) for name, choices in there.items()]
    known = {name: value for name, value in options.items() if name.removeprefix(LOWERING) in there}
    yield from problems_of(known, settings, "spark")
    every = ", ".join(node.name for node in graph.operators(flow))
    for name in options.keys() - known.keys():
        rule = f"must name an operator that can be done in several ways; this flow's operators are {every}"
        ways = {setting.name: f"--option {setting.name}={'|'.join(setting.choices)}" for setting in settings}
        way_out = ways[nearest(name, tuple(ways))] if ways else "leave it out"
        yield Problem(f"option {name}", rule, options[name], way_out)


def _types(users: dict[str, str]) -> Iterator[Problem]:
    for name, value in users.items():
        if not _NAME.fullmatch(name):
            rule = "must be a setting's name: words after dots, none of them empty, without spaces or ="
            yield Problem(f"option {name}", rule, value, "--option spark.NAME=VALUE")
            continue
        if name in _ELSEWHERE:
            way_out = f"{_ELSEWHERE[name]}{'=' if ' ' in _ELSEWHERE[name] else ' '}{value}"
            yield Problem(f"option {name}", "is asked for by a word of streamgauge", value, way_out)
        for names, values, rule, right in _TYPES:
            if re.fullmatch(names, name) and not re.fullmatch(values, value.strip(), re.IGNORECASE):
                yield Problem(f"option {name}", f"must be {rule}", value, f"--option {name}={right}")


def _master(master: str | None, users: dict[str, str]) -> Iterator[Problem]:
    if master is None or _LOCAL.fullmatch(master) or _STANDALONE.fullmatch(master):
        return
    if _KUBERNETES.fullmatch(master):
        if not any(name in users for name in _IMAGES):
            rule = "on Kubernetes needs an image for its executors"
            yield Problem("master", rule, master, f"--option {_IMAGES[0]}=IMAGE")
    elif master == "yarn":
        if not any(Path(folder).is_dir() for name in _HADOOP if (folder := os.environ.get(name))):
            rule = f"yarn needs {' or '.join(_HADOOP)}, a folder with the cluster's configuration"
            yield Problem("master", rule, master, f"export {_HADOOP[0]}=DIR")
    else:
        rule = "must be local, local[N], local[*], spark://HOST:PORT, k8s://HOST:PORT or yarn"
        yield Problem("master", rule, master, "leave --master out: local on all cores")


def _reachable(master: str | None, bind: str) -> Iterator[Problem]:
    """Executors on other machines would wait for their input until the start times out."""
    if not _elsewhere(master or "") or not (_LOOPBACK.fullmatch(bind) or bind == _EVERYWHERE):
        return
    rule = f"must be an address of this machine that the executors of {master} can reach"
    yield Problem("bind", rule, bind, "--bind ADDRESS, which Spark's driver then takes too")


def _elsewhere(master: str) -> bool:
    """Whether a master's executors may run where this machine's loopback is another one: in a pod it always is."""
    if _STANDALONE.fullmatch(master):
        hosts = [place.rpartition(":")[0] for place in master.removeprefix("spark://").split(",")]
        return not all(_LOOPBACK.fullmatch(host) for host in hosts)
    return master == "yarn" or bool(_KUBERNETES.fullmatch(master))
