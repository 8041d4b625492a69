"""Expands the section `[matrix]` of an experiment file: an experiment for each cell.

A cell is one combination of the varied settings in one repetition. Its number counts every combination once, then every
combination again, as often as `repeat` says. So a matrix that is stopped early has each combination equally often.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod
from typing import Any

from streamgauge.config.options_and_settings import SETTINGS, Experiment, Matrix, build, flat_name, setting_of
from streamgauge.config.setting_info import NAME_VALUE
from streamgauge.core.errors import InputError, Problem, attempt, near

CELLS_MAX = 1000
"""At a minute each, the cells of the largest matrix take most of a day."""
FIXED = ("command", "out", "search.resume", "load.of", "load.start")
"""Settings that cannot vary: a matrix has one command and one folder, and starts its cells itself."""
Settings = Mapping[str, Any]
"""Varied settings by dotted name, with values as the file writes them."""


@dataclass(frozen=True)
class Cell:
    """One experiment of a matrix. `settings` has every setting that any cell sets, with this cell's value."""

    number: int
    settings: Settings
    repetition: int
    experiment: Experiment


def expand(experiment: Experiment) -> tuple[Cell, ...]:
    """The cells in the order of their numbers. An experiment without a matrix has one.

    Raises:
        InputError: with every problem of the matrix, and of the values in it.
    """
    matrix = experiment.matrix or Matrix()
    combinations = _combinations(matrix, experiment.command)
    base = values_of(experiment, "matrix")
    problems: dict[int, list[Problem]] = {number: [] for number in range(1, len(combinations) + 1)}
    experiments = [
        attempt(partial(with_settings, base, settings), problems[number])
        for number, settings in enumerate(combinations, 1)
    ]
    if found := merge_problems(problems):
        raise InputError(found)
    names = dict.fromkeys(name for settings in combinations for name in settings)
    pairs = [
        ({name: settings[name] if name in settings else value_of(one, name) for name in names}, one)
        for settings, one in zip(combinations, experiments, strict=True)
    ]
    if twice := list(_repeated(pairs)):
        raise InputError(twice)
    repeated = ((repetition, *pair) for repetition in range(1, matrix.repeat + 1) for pair in pairs)
    return tuple(
        Cell(number, settings, repetition, one) for number, (repetition, settings, one) in enumerate(repeated, 1)
    )


def run_order(cells: Sequence[Cell], matrix: Matrix) -> tuple[Cell, ...]:
    """The order in which cells run. `random` shuffles each repetition for itself, so drift of the machine hits all
    combinations alike.
    """
    if matrix.order == "listed":
        return tuple(cells)
    draw, ordered = random.Random(matrix.seed), []
    for repetition in dict.fromkeys(cell.repetition for cell in cells):
        block = [cell for cell in cells if cell.repetition == repetition]
        draw.shuffle(block)
        ordered += block
    return tuple(ordered)


def select(cells: Sequence[Cell], numbers: str) -> tuple[Cell, ...]:
    """The cells that `--cells 3,7` names, in the given order. Raises InputError for any other number."""
    named = {text.strip() for text in numbers.split(",")}
    if unknown := sorted(named - {str(cell.number) for cell in cells}):
        rule = f"must be numbers from 1 to {len(cells)}, separated by commas"
        raise InputError(Problem("--cells", rule, ", ".join(unknown), "--dry-run, which lists the cells"))
    return tuple(cell for cell in cells if str(cell.number) in named)


def varied(cells: Sequence[Cell]) -> tuple[str, ...]:
    """The dotted names of the settings that cells vary, in order."""
    return tuple(cells[0].settings)


def value_of(experiment: Experiment, setting: str) -> Any:
    """The value in force of a dotted setting; None if a table has no such entry."""
    section, key = _place(setting) or ("", setting)
    values = getattr(experiment, section) if section else experiment
    return values.get(key) if isinstance(values, Mapping) else getattr(values, key, None)


def values_of(experiment: Experiment, *without: str) -> dict[str, Any]:
    """The values that build the experiment, without some of its sections."""
    return experiment.model_dump(mode="json", exclude_none=True, exclude=set(without))


def with_settings(base: Mapping[str, Any], settings: Settings) -> Experiment:
    """An experiment from plain values, with some dotted settings changed. One InputError holds every problem."""
    values = copy.deepcopy(dict(base))
    for name, value in settings.items():
        section, key = _place(name) or ("", name)
        (values.setdefault(section, {}) if section else values)[key] = value
    return build(values)


def is_setting(name: str) -> bool:
    """Whether an experiment has such a dotted setting, which may be an entry of a table."""
    return _place(name) is not None


def merge_problems(by_cell: Mapping[int, Sequence[Problem]]) -> list[Problem]:
    """Each problem once. A problem that not all cells have names its cells."""
    merged: dict[str, tuple[Problem, dict[int, None]]] = {}
    for number, problems in by_cell.items():
        for problem in problems:
            merged.setdefault(str(problem), (problem, {}))[1][number] = None
    return [_in_cells(problem, list(cells), len(by_cell)) for problem, cells in merged.values()]


def _in_cells(problem: Problem, numbers: Sequence[int], of: int) -> Problem:
    if len(numbers) == of:
        return problem
    few = ", ".join(map(str, numbers[:5])) + (f" and {len(numbers) - 5} more" if len(numbers) > 5 else "")
    rule = f"{problem.rule} (cell{'s' * (len(numbers) > 1)} {few} of the matrix)"
    return Problem(problem.setting, rule, problem.got, problem.way_out)


def _combinations(matrix: Matrix, command: str) -> list[Settings]:
    """The combinations of values, without the excluded ones and with the included ones at the end."""
    problems: list[Problem] = []
    axes = _axes(matrix, command, problems)
    excluded, included = (
        [dict(_entry(f"{name}[{n}]", one, command, problems)) for n, one in enumerate(getattr(matrix, name))]
        for name in ("exclude", "include")
    )
    if problems:
        raise InputError(problems)
    _require_few(axes, len(included), matrix.repeat)
    crossed = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    left = [one for one in crossed if not any(_matches(one, entry) for entry in excluded)]
    problems += _unused(excluded, crossed, axes)
    # Without axes the product is the file's own settings. Only a matrix without entries means these.
    combinations: list[Settings] = [*(left if axes or not included else []), *included]
    if not combinations:
        rule, got = "must leave at least one cell", f"all {len(crossed)} cells excluded"
        problems.append(Problem("matrix.exclude", rule, got, "remove an entry of exclude, or add one to include"))
    if problems:
        raise InputError(problems)
    return combinations


def _axes(matrix: Matrix, command: str, problems: list[Problem]) -> dict[str, list[Any]]:
    """The varied settings with their values."""
    axes: dict[str, list[Any]] = {}
    for name, values in _leaves(matrix.model_extra or {}):
        setting = f"matrix.{name}"
        if name in axes:
            problems.append(Problem(setting, "must be given once", values, f"one list for {name}"))
        elif unknown := _unknown(setting, name, values, command):
            problems.append(unknown)
        elif not isinstance(values, list | tuple):
            problems.append(Problem(setting, "must be a list of values", values, f"{name} = [{_quoted(values)}]"))
        elif not values:
            way_out = f"{name} = [VALUE, VALUE], or leave it out"
            problems.append(Problem(setting, "must be a list with at least one value", values, way_out))
        else:
            axes[name] = list(values)
    return axes


def _entry(where: str, entry: Mapping[str, Any], command: str, problems: list[Problem]) -> Iterator[tuple[str, Any]]:
    """The settings of an entry of include or exclude."""
    setting = f"matrix.{where}"
    if not entry:
        problems.append(Problem(setting, "must name at least one setting", entry, "remove it, or give it a value"))
    for name, value in _leaves(entry):
        if unknown := _unknown(f"{setting}.{name}", name, value, command):
            problems.append(unknown)
        yield name, value


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted name and value of everything that is no table."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield flat_name(f"{prefix}{name}"), value


def _unknown(setting: str, name: str, value: Any, command: str) -> Problem | None:
    """Why a name is no setting of the command that can vary; None if it is one."""
    if name in FIXED:
        return Problem(setting, "must be the same in all cells", value, f"give {name} outside of [matrix]")
    if _place(name) is not None:
        info = setting_of(name)  # the workload has none
        if info is None or command in info.commands:
            return None
        rule = f"is not a setting of {command}, only of {' and '.join(info.commands)}"
        return Problem(setting, rule, value, f"leave {name} out")
    meant = near(name, ("workload", *SETTINGS, "repeat", "order", "seed", "include", "exclude"))
    return Problem(setting, "is not a setting", value, meant or "a dotted name, such as load.rate or parameters.NAME")


def _place(name: str) -> tuple[str, str] | None:
    """(section or table, key) of a dotted setting; the section of a top-level setting is empty. None if unknown."""
    if name in SETTINGS or name == "workload":
        section, _, key = name.rpartition(".")
        return section, key
    table, _, key = name.partition(".")
    is_entry = key and table in SETTINGS and SETTINGS[table].metavar == NAME_VALUE
    return (table, key) if is_entry else None


def _require_few(axes: Mapping[str, Sequence[Any]], included: int, repeat: int) -> None:
    """Raises InputError for a matrix with too many cells, before any is made."""
    count = (prod(map(len, axes.values())) + included) * repeat
    if count > CELLS_MAX:
        factors = [*(f"{len(values)} of {name}" for name, values in axes.items()), f"repeat {repeat}"]
        rule = f"must have at most {CELLS_MAX:,} cells before exclude"
        way_out = "fewer values, a smaller repeat, or a file for each part"
        raise InputError(Problem("matrix", rule, f"{count:,} cells: {' x '.join(factors)}", way_out))


def _matches(combination: Settings, entry: Settings) -> bool:
    return all(name in combination and combination[name] == value for name, value in entry.items())


def _unused(excluded: Sequence[Settings], crossed: Sequence[Settings], axes: Mapping[str, Any]) -> Iterator[Problem]:
    """Entries of exclude without effect, which are mistakes."""
    for n, entry in enumerate(excluded):
        if not any(_matches(one, entry) for one in crossed):
            rule = "must match a cell, with values as their lists write them"
            way_out = f"names and values of the lists: {', '.join(axes) or 'there are none'}"
            yield Problem(f"matrix.exclude[{n}]", rule, entry, way_out)


def _repeated(pairs: Sequence[tuple[Settings, Experiment]]) -> Iterator[Problem]:
    """Cells that ask the same twice, whether listed or included."""
    seen: set[str] = set()
    for settings, experiment in pairs:
        text = experiment.model_dump_json()
        if text in seen:
            rule, way_out = "must not have a cell twice", "leave one out; repeat = 2 runs every cell twice"
            yield Problem("matrix", rule, dict(settings), way_out)
        seen.add(text)


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
