"""The settings of a run that differ from the defaults, and the command that runs it again."""

import shlex
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from streamgauge.config.experiment import Experiment, setting_of
from streamgauge.config.setting_info import NAME_VALUE, SettingInfo
from streamgauge.core.errors import Problem, broken
from streamgauge.core.formatting import flatten, format_exact, format_value, leaves

_LEAVE_FOLDERS = ("run", "sustain")
"""The commands that write a run folder."""


class Setting(NamedTuple):
    """A setting that differs from its default."""

    name: str
    value: str
    default: str


def settings(experiment: Mapping[str, Any]) -> tuple[Setting, ...]:
    """The settings in `experiment` (the dump of an `Experiment`) that differ, without command and workload."""
    return tuple(
        Setting(name, format_value(value), format_value(default)) for name, value, default in _differing(experiment)
    )


def contradictions(
    requested: Mapping[str, Any], previous: Mapping[str, Any], rule: str, free: Collection[str]
) -> Iterator[Problem]:
    """Requested settings that differ from those of the previous run, except the names in `free`."""
    values = {setting.name: setting.value for setting in settings(previous)}
    for name, value, default in settings(requested):
        if name not in free and values.get(name, default) != value:
            info = setting_of(name)
            yield Problem(name, rule, value, f"leave {info.flag if info else name} out")


def unsupported_settings(experiment: Experiment) -> list[Problem]:
    """Settings that the experiment's command would ignore."""
    command, changed = experiment.command, settings(experiment.model_dump(mode="json"))
    given = [(one, info) for one in changed if (info := setting_of(one.name)) is not None]
    return broken(*(info.rule_of_command(command, one.name, one.value, info.flag) for one, info in given))


def command(experiment: Mapping[str, Any]) -> str | None:
    """The command line of an experiment; None if only a file can express it."""
    if not experiment or experiment["command"] not in _LEAVE_FOLDERS or str(experiment["workload"]).startswith("-"):
        return None
    parts = ["streamgauge", str(experiment["command"]), str(experiment["workload"])]
    for name, value, _ in _differing(experiment):
        info = setting_of(name)
        flags = None if info is None or experiment["command"] not in info.commands else _as_words(info, name, value)
        if flags is None:
            return None
        parts += flags
    return shlex.join(parts)


def trial_experiment(experiment: Mapping[str, Any]) -> dict[str, Any]:
    """The experiment of one trial of a search: a run at its rate."""
    return {**experiment, "command": "run", "search": Experiment(workload="").search.model_dump(mode="json")}


def _differing(experiment: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """(name, value, default) of each setting that differs from the default of the experiment's command."""
    if not experiment:
        return
    plain = Experiment.model_validate({"command": experiment["command"], "workload": ""})
    defaults = flatten(plain.model_dump(mode="json"))
    derived = ["load.duration"] * (experiment.get("load", {}).get("events") is not None)
    idle = () if (experiment.get("quick") or {}).get("look") else ("quick.",)
    for name, value in leaves(experiment):
        if name.startswith(("command", "workload", *derived, *idle)):
            continue
        if value not in (defaults.get(name), {}):
            yield name, value, defaults.get(name)


def _as_words(info: SettingInfo, name: str, value: Any) -> list[str] | None:
    """The command-line words for a setting; None if it cannot be typed."""
    text = _text(value)
    if info.metavar == NAME_VALUE:
        key = name.partition(".")[2]
        typable = text is not None and key and "=" not in key and key == key.strip()
        return [info.flag, f"{key}={text}"] if typable else None
    if info.is_switch:
        return [info.flag]
    if info.repeatable:
        return [word for one in value for word in (info.flag, one)]
    if info.metavar == "SHARE":
        percent = format_exact(100 * value)
        return [info.flag, f"{percent}%" if float(percent) / 100 == value else repr(value)]
    return None if text is None else [info.flag, text + "s" * (info.metavar == "TIME")]


def _text(value: Any) -> str | None:
    """A value as text that the command line reads back exactly; None if it cannot."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        rounded = format_exact(value)
        return rounded if float(rounded) == value else repr(value)
    return str(value) if isinstance(value, str | int) else None
