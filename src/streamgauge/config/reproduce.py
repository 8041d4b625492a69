"""What differed from the defaults in a run, and how to run it again."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from streamgauge.config.experiment import Experiment, setting_of
from streamgauge.config.settings import NAMED, SettingInfo
from streamgauge.core.errors import Problem
from streamgauge.core.formatting import format_exact, format_value

_LEAVE_FOLDERS = ("run", "sustain")
"""The commands that leave a run folder."""


@dataclass(frozen=True)
class Setting:
    """A setting that is not at its default."""

    name: str
    value: str
    default: str


def settings(experiment: Mapping[str, Any]) -> tuple[Setting, ...]:
    """What `experiment` (the dump of an `Experiment`) sets other than by default; the command and workload are not."""
    return tuple(
        Setting(name, format_value(value), format_value(default)) for name, value, default in _differing(experiment)
    )


def contradictions(
    asked: Mapping[str, Any], theirs: Mapping[str, Any], rule: str, own: Collection[str]
) -> Iterator[Problem]:
    """Settings that were asked for and are not those of the run that is gone back to; `own` are free."""
    kept = {setting.name: setting.value for setting in settings(theirs)}
    for one in settings(asked):
        if one.name not in own and kept.get(one.name, one.default) != one.value:
            info = setting_of(one.name)
            yield Problem(one.name, rule, one.value, f"leave {info.flag if info else one.name} out")


def not_taken(experiment: Experiment) -> Iterator[Problem]:
    """Settings that would be passed over in silence: those that the experiment's command does not take."""
    for one in settings(experiment.model_dump(mode="json")):
        info = setting_of(one.name)
        if info is not None and experiment.command not in info.commands:
            rule = f"is no setting of {experiment.command}, only of {' and '.join(info.commands)}"
            yield Problem(one.name, rule, one.value, f"leave {info.flag} out")


def command(experiment: Mapping[str, Any]) -> str | None:
    """The command line that asks the same, or None where only the experiment's file can say it all."""
    if not experiment or experiment["command"] not in _LEAVE_FOLDERS or str(experiment["workload"]).startswith("-"):
        return None
    parts = ["streamgauge", str(experiment["command"]), str(experiment["workload"])]
    for name, value, _ in _differing(experiment):
        info = setting_of(name)
        flags = None if info is None or experiment["command"] not in info.commands else _typed(info, name, value)
        if flags is None:
            return None
        parts += flags
    return shlex.join(parts)


def of_trial(experiment: Mapping[str, Any]) -> dict[str, Any]:
    """What a search asked, as one of its trials asked it: a run at its rate."""
    return {**experiment, "command": "run", "search": Experiment(workload="").search.model_dump(mode="json")}


def _differing(experiment: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """(name, value, default) of what is not at the default of the experiment's command."""
    if not experiment:
        return
    plain = Experiment.model_validate({"command": experiment["command"], "workload": ""}).model_dump(mode="json")
    defaults = dict(_flat(plain))
    for name, value in _flat(experiment):
        if name not in ("command", "workload") and value != defaults.get(name):
            yield name, value, defaults.get(name)


def _flat(experiment: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Settings by their dotted names; what is in a parameter stays one value."""
    for name, value in experiment.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", one) for inner, one in value.items())
        else:
            yield name, value


def _typed(info: SettingInfo, name: str, value: Any) -> list[str] | None:
    """The words of the command line that set this; None where it cannot be typed."""
    text = _text(value)
    if info.metavar == NAMED:
        key = name.partition(".")[2]
        sayable = text is not None and key and "=" not in key and key == key.strip()
        return [info.flag, f"{key}={text}"] if sayable else None
    if info.is_switch:
        return [info.flag]
    if info.repeatable:
        return [word for one in value for word in (info.flag, one)]
    if info.metavar == "SHARE":
        return [info.flag, _share(value)]
    return None if text is None else [info.flag, text + "s" * (info.metavar == "TIME")]


def _share(value: float) -> str:
    percent = format_exact(100 * value)
    return f"{percent}%" if float(percent) / 100 == value else repr(value)


def _text(value: Any) -> str | None:
    """A value as the command line reads it back, exactly; None for what it cannot read."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        rounded = format_exact(value)
        return rounded if float(rounded) == value else repr(value)
    return str(value) if isinstance(value, str | int) else None
