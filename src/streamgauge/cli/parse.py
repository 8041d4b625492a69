"""Builds the experiment from a command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from streamgauge.config.options_and_settings import SETTINGS, Experiment, build, read
from streamgauge.config.setting_info import NAME_VALUE, SIDES
from streamgauge.core.errors import InputError, Problem, attempt

CPUS = SETTINGS["cpus"].flag


def pairs(flag: str, given: list[str] | None) -> dict[str, str]:
    """Parses NAME=VALUE texts. Raises InputError on a repeated name, which would hide a value."""
    problems: list[Problem] = []
    pairs: dict[str, str] = {}
    for text in given or []:
        before, equals, value = text.partition("=")
        key = before.strip()
        if not equals or not key:
            problems.append(Problem(flag, "must be NAME=VALUE", text, f"{flag} {key or 'name'}=value"))
        elif key in pairs:
            rule = f"must give each name once; {key} already has {pairs[key]!r}"
            problems.append(Problem(flag, rule, text, f"only {flag} {text}"))
        else:
            pairs[key] = value
    if problems:
        raise InputError(problems)
    return pairs


def one_option_a_side(arguments: Sequence[str]) -> list[str]:
    """`--cpus driver=0 sut=1` as `--cpus driver=0 --cpus sut=1`: an option takes one value, as in a file's table."""
    found: list[str] = []
    of_cpus = False
    for argument in arguments:
        is_side = argument.partition("=")[0] in SIDES and "=" in argument
        if of_cpus and is_side and found[-1] != CPUS:
            found.append(CPUS)
        found.append(argument)
        of_cpus = argument.partition("=")[0] == CPUS or (of_cpus and is_side)
    return found


def build_experiment(command: str, workload: str, words: Mapping[str, Any], workload_from: str = "") -> Experiment:
    """The experiment of a command.

    `words`: the typed values by setting name, with `__` for the dot. `workload_from`: the setting whose run folder
    gives the workload if the command line does not name one.
    """
    values: dict[str, Any] = {"command": command, "workload": ""}
    problems: list[Problem] = []
    run = words.get(workload_from.replace(".", "__"))
    if (name := attempt(lambda: workload or _workload_of(run, workload_from), problems)) is not None:
        values["workload"] = name
    for name, given in _with_brokers(words).items():
        section, _, key = name.rpartition("__")
        info = SETTINGS[name.replace("__", ".")]
        value = attempt(partial(pairs, info.flag, given), problems) if info.metavar == NAME_VALUE else given
        if value is not None:
            (values.setdefault(section, {}) if section else values)[key] = value
    experiment = attempt(partial(build, values), problems)
    if problems:
        from streamgauge.preflight.validate import further_problems

        raise InputError([*problems, *further_problems(values, problems)])
    assert isinstance(experiment, Experiment)
    return experiment


def _with_brokers(words: Mapping[str, Any]) -> dict[str, Any]:
    """Converts `--brokers` to a transport option."""
    brokers, rest = words.get("brokers"), {name: given for name, given in words.items() if name != "brokers"}
    if brokers is None:
        return rest
    return {**rest, "transport_options": [*(rest["transport_options"] or ()), f"brokers={brokers}"]}


def _workload_of(run: str | None, setting: str) -> str:
    """The workload that the experiment of a run folder, or of a study's, names, which `setting` gave."""
    if run is None:
        raise InputError(Problem("workload", "must be given", "", "streamgauge workloads lists them"))
    from streamgauge.artifacts.run_folder import SCALE, RunFolder

    if (Path(run) / SCALE).is_file():
        return read(Path(run) / "experiment.toml").workload

    try:
        result = RunFolder.open(run).read_result()
    except InputError as error:
        raise InputError([replace(problem, setting=setting) for problem in error.problems]) from None
    return str(result.experiment.get("workload", result.workload))
