"""Words of a command line to the experiment that they ask for."""

from __future__ import annotations

from functools import partial
from typing import Any

from streamgauge.errors import InputError, Problem, attempt


def pairs(name: str, given: list[str] | None) -> dict[str, str]:
    """NAME=VALUE as given to `--name`; a name that is given twice would pass over one of its values in silence."""
    problems: list[Problem] = []
    pairs: dict[str, str] = {}
    for text in given or []:
        before, equals, value = text.partition("=")
        key = before.strip()
        if not equals or not key:
            problems.append(Problem(f"--{name}", "must be NAME=VALUE", text, f"--{name} {key or 'name'}=value"))
        elif key in pairs:
            rule = f"must give each name once; {key} has {pairs[key]!r} already"
            problems.append(Problem(f"--{name}", rule, text, f"--{name} {text} alone"))
        else:
            pairs[key] = value
    if problems:
        raise InputError(problems)
    return pairs


def asked_for(
    command: str, workload: str, *, sets: list[str] | None, options: list[str] | None, of: str | None = None,
    transport_options: list[str] | None = None, brokers: str | None = None, **asked: Any,
) -> Any:  # fmt: skip
    """The experiment of a command; its workload is that of the run folder `of` where none is named."""
    from streamgauge.experiment import build

    values = {"command": command, "workload": "", **asked}
    carried = [*(transport_options or ()), *([f"brokers={brokers}"] if brokers is not None else ())]
    problems: list[Problem] = []
    for key, read in (
        ("workload", lambda: workload or _workload_of(of)),
        ("parameters", lambda: pairs("set", sets)),
        ("options", lambda: pairs("option", options)),
        ("transport_options", lambda: pairs("transport-option", carried)),
    ):
        if (found := attempt(read, problems)) is not None:
            values[key] = found
    values = _without_none(values)
    experiment = attempt(partial(build, values), problems)
    if problems:
        from streamgauge.run.check import further_problems

        raise InputError([*problems, *further_problems(values, problems)])
    return experiment


def _without_none(values: Any) -> Any:
    if isinstance(values, dict):
        return {key: _without_none(value) for key, value in values.items() if value is not None}
    return values


def _workload_of(run: str | None) -> str:
    """The workload of a run folder, as it was asked for."""
    if run is None:
        raise InputError(Problem("workload", "must be given", "", "streamgauge workloads lists them"))
    from streamgauge.artifacts.run_folder import RunFolder

    result = RunFolder.open(run).read_result()
    return str(result.experiment.get("workload", result.workload))
