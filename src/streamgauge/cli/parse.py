"""Builds the requested experiment from the words of a command line."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from streamgauge.config.experiment import SETTINGS, Experiment, build
from streamgauge.config.settings import NAMED
from streamgauge.core.errors import InputError, Problem, attempt


def pairs(flag: str, given: list[str] | None) -> dict[str, str]:
    """NAME=VALUE as given to an option; a name that is given twice would pass over one of its values in silence."""
    problems: list[Problem] = []
    pairs: dict[str, str] = {}
    for text in given or []:
        before, equals, value = text.partition("=")
        key = before.strip()
        if not equals or not key:
            problems.append(Problem(flag, "must be NAME=VALUE", text, f"{flag} {key or 'name'}=value"))
        elif key in pairs:
            rule = f"must give each name once; {key} has {pairs[key]!r} already"
            problems.append(Problem(flag, rule, text, f"{flag} {text} alone"))
        else:
            pairs[key] = value
    if problems:
        raise InputError(problems)
    return pairs


def build_experiment(command: str, workload: str, words: Mapping[str, Any], workload_from: str = "") -> Experiment:
    """The experiment of a command; `words` are what was typed, by the name of the setting, `__` for its dot.

    Its workload is that of the run folder that the setting `workload_from` names, where none is named.
    """
    values: dict[str, Any] = {"command": command, "workload": ""}
    problems: list[Problem] = []
    run = words.get(workload_from.replace(".", "__"))
    if (named := attempt(lambda: workload or _workload_of(run), problems)) is not None:
        values["workload"] = named
    for name, given in _with_brokers(words).items():
        section, _, key = name.rpartition("__")
        info = SETTINGS[name.replace("__", ".")]
        found = attempt(partial(pairs, info.flag, given), problems) if info.metavar == NAMED else given
        if found is not None:
            (values.setdefault(section, {}) if section else values)[key] = found
    experiment = attempt(partial(build, values), problems)
    if problems:
        from streamgauge.preflight.validate import further_problems

        raise InputError([*problems, *further_problems(values, problems)])
    assert isinstance(experiment, Experiment)
    return experiment


def _with_brokers(words: Mapping[str, Any]) -> dict[str, Any]:
    """With `--brokers` as the option of the transport that it is."""
    brokers, others = words.get("brokers"), {name: given for name, given in words.items() if name != "brokers"}
    if brokers is None:
        return others
    return {**others, "transport_options": [*(others["transport_options"] or ()), f"brokers={brokers}"]}


def _workload_of(run: str | None) -> str:
    """The workload of a run folder, as it was asked for."""
    if run is None:
        raise InputError(Problem("workload", "must be given", "", "streamgauge workloads lists them"))
    from streamgauge.artifacts.run_folder import RunFolder

    result = RunFolder.open(run).read_result()
    return str(result.experiment.get("workload", result.workload))
