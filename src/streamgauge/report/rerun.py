"""What differed from the defaults in a run, and how to run it again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streamgauge.experiment import Experiment
from streamgauge.report import words

_FLAGS = {
    "engine": "--engine",
    "transport": "--transport",
    "master": "--master",
    "out": "--out",
    "load.rate": "--rate",
    "load.duration": "--duration",
    "load.generators": "--generators",
    "load.seed": "--seed",
    "load.warmup": "--warmup",
    "load.profile": "--profile",
    "load.chunk": "--chunk",
    "load.bound": "--bound",
    "load.memory": "--memory",
    "load.frontier": "--frontier",
    "isolation": "--isolation",
    "bind": "--bind",
    "port": "--port",
    "search.tolerance": "--tolerance",
    "search.start_rate": "--start-rate",
    "search.trials_max": "--trials-max",
}
_SWITCHES = {"keep_results": "--keep-results", "search.quick": "--quick"}
_NAMED = {"parameters": "--set", "options": "--option"}
_UNITS = dict.fromkeys(("load.duration", "load.warmup", "load.chunk", "load.bound"), "s")


@dataclass(frozen=True)
class Setting:
    """A setting that is not at its default."""

    name: str
    value: str
    default: str


def settings(experiment: Mapping[str, Any]) -> tuple[Setting, ...]:
    """What `experiment` (the dump of an `Experiment`) sets other than by default; the command and workload are not."""
    return tuple(
        Setting(name, words.plain(value), words.plain(default))
        for name, (value, default) in _differing(experiment).items()
    )


def command(experiment: Mapping[str, Any]) -> str | None:
    """The command line that asks the same, or None where only the experiment's file can say it all."""
    if not experiment:
        return None
    parts = ["streamgauge", str(experiment["command"]), str(experiment["workload"])]
    for name, (value, _) in _differing(experiment).items():
        flag = _flag(name, value)
        if flag is None:
            return None
        parts += flag
    return shlex.join(parts)


def _differing(experiment: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    if not experiment:
        return {}
    defaults = words.flat(Experiment(workload="").model_dump(mode="json"))
    asked = {name: value for name, value in words.flat(experiment).items() if name not in ("command", "workload")}
    return {name: (value, defaults.get(name)) for name, value in asked.items() if value != defaults.get(name)}


def _flag(name: str, value: Any) -> list[str] | None:
    head, _, tail = name.partition(".")
    if head in _NAMED:
        return [_NAMED[head], f"{tail}={words.plain(value)}"] if tail else []
    if name in _SWITCHES:
        return [_SWITCHES[name]]
    if name == "search.tolerance":
        return [_FLAGS[name], f"{words.number(100 * value)}%"]
    return [_FLAGS[name], words.plain(value) + _UNITS.get(name, "")] if name in _FLAGS else None
