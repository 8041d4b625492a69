"""Expands the section `[matrix]` of an experiment file: an experiment for each cell.

A cell is one combination of the varied settings in one repetition. Its number counts every combination once, then every
combination again, as often as `repeat` says. So a matrix that is stopped early has each combination equally often.
"""

import copy
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import prod
from typing import Any

from streamgauge.config.experiment import (
    SETTINGS,
    Experiment,
    Matrix,
    build,
    left_out,
    setting_of,
)
from streamgauge.config.setting_info import NAME_VALUE, flat_name
from streamgauge.core.errors import Problem, Rule, attempt, broken, first_broken, near, refuse, require
from streamgauge.core.formatting import leaves

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
        InputError: with every problem of the matrix, or else of the values in it. What only a check of a cell finds
            may follow.
    """
    matrix = experiment.matrix or Matrix()
    combinations = _combinations(matrix, experiment.command)
    base = values_of(experiment, "matrix", "paper")
    problems: dict[int, list[Problem]] = {number: [] for number in range(1, len(combinations) + 1)}
    experiments = [
        attempt(partial(with_settings, base, settings), problems[number])
        for number, settings in enumerate(combinations, 1)
    ]
    refuse(merge_problems(problems), incomplete=True)
    names = dict.fromkeys(name for settings in combinations for name in settings)
    pairs = [
        ({name: settings[name] if name in settings else value_of(one, name) for name in names}, one)
        for settings, one in zip(combinations, experiments, strict=True)
    ]
    repeated = product(range(1, matrix.repeat + 1), pairs)
    return tuple(
        Cell(number, settings, repetition, one) for number, (repetition, (settings, one)) in enumerate(repeated, 1)
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
    unknown = sorted(named - {str(cell.number) for cell in cells})
    rule = f"must be numbers from 1 to {len(cells)}, separated by commas"
    require(not unknown, "--cells", rule, ", ".join(unknown), "--dry-run, which lists the cells")
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
    return experiment.model_dump(mode="json", exclude_none=True, exclude=left_out(experiment, *without))


def with_settings(base: Mapping[str, Any], settings: Settings) -> Experiment:
    """An experiment from plain values, with some dotted settings changed. One InputError holds every problem."""
    values = copy.deepcopy(dict(base))
    for name, value in settings.items():
        section, key = _place(name) or ("", name)
        (values.setdefault(section, {}) if section else values)[key] = value
    if "load.events" in settings and "load.duration" not in settings:
        values.get("load", {}).pop("duration", None)
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
    return replace(problem, rule=f"{problem.rule} (cell{'s' * (len(numbers) > 1)} {few} of the matrix)")


def _combinations(matrix: Matrix, command: str) -> list[Settings]:
    """The combinations of values, without the excluded ones and with the included ones at the end."""
    problems: list[Problem] = []
    axes = _axes(matrix, command, problems)
    excluded, included = (
        [_entry(f"matrix.{name}[{n}]", one, command, problems) for n, one in enumerate(getattr(matrix, name))]
        for name in ("exclude", "include")
    )
    refuse(problems, incomplete=True)
    count = (prod(map(len, axes.values())) + len(included)) * matrix.repeat
    factors = [*(f"{len(values)} of {name}" for name, values in axes.items()), f"repeat {matrix.repeat}"]
    rule, got = f"must have at most {CELLS_MAX:,} cells before exclude", f"{count:,} cells: {' x '.join(factors)}"
    require(count <= CELLS_MAX, "matrix", rule, got, "fewer values, a smaller repeat, or a file for each part")
    crossed = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    left = [one for one in crossed if not any(_matches(one, entry) for entry in excluded)]
    # Without axes the product is the file's own settings. Only a matrix without entries means these.
    combinations: list[Settings] = [*(left if axes or not included else []), *included]
    rule, got = "must leave at least one cell", f"all {len(crossed)} cells excluded"
    way_out = "remove an entry of exclude, or add one to include"
    left_out = broken(Rule(combinations, "matrix.exclude", rule, got, way_out))
    refuse([*_unused(excluded, crossed, axes), *left_out], incomplete=True)
    return combinations


def _axes(matrix: Matrix, command: str, problems: list[Problem]) -> dict[str, list[Any]]:
    """The varied settings with their values."""
    axes: dict[str, list[Any]] = {}
    for name, values in _leaves(matrix.model_extra or {}):
        setting, is_list = f"matrix.{name}", isinstance(values, list | tuple)
        found = first_broken(
            Rule(name not in axes, setting, "must be given once", values, f"one list for {name}"),
            *_name_rules(setting, name, values, command),
            Rule(
                is_list, setting, "must be a list of values", values,
                f"{name} = [{json.dumps(values, default=str, ensure_ascii=False)}]",
            ),
            Rule(
                not is_list or values, setting, "must be a list with at least one value", values,
                f"{name} = [VALUE, VALUE], or leave it out",
            ),
        )  # fmt: skip
        problems += found
        if not found:
            axes[name] = list(values)
    return axes


def _entry(setting: str, entry: Mapping[str, Any], command: str, problems: list[Problem]) -> dict[str, Any]:
    """The settings of an entry of include or exclude."""
    values = dict(_leaves(entry))
    problems += broken(Rule(entry, setting, "must name at least one setting", entry, "remove it, or give it a value"))
    for name, value in values.items():
        problems += first_broken(*_name_rules(f"{setting}.{name}", name, value, command))
    return values


def _leaves(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((flat_name(name), value) for name, value in leaves(values))


def _name_rules(setting: str, name: str, value: Any, command: str) -> tuple[Rule, ...]:
    """That a name is a setting of the command that can vary. The first broken rule says why it is not."""
    info = setting_of(name)  # the workload has none
    names = ("workload", *SETTINGS, "repeat", "order", "seed", "include", "exclude")
    meant = None if is_setting(name) else near(name, names)  # which takes a millisecond
    return (
        Rule(name not in FIXED, setting, "must be the same in all cells", value, f"give {name} outside of [matrix]"),
        Rule(
            is_setting(name), setting, "is not a setting", value,
            meant or "a dotted name, such as load.rate or parameters.NAME",
        ),
        *([info.rule_of_command(command, setting, value, name)] if info is not None else []),
    )  # fmt: skip


def _place(name: str) -> tuple[str, str] | None:
    """(section or table, key) of a dotted setting; the section of a top-level setting is empty. None if unknown."""
    if name in SETTINGS or name == "workload":
        section, _, key = name.rpartition(".")
        return section, key
    table, _, key = name.partition(".")
    return (table, key) if key and table in SETTINGS and SETTINGS[table].metavar == NAME_VALUE else None


def _matches(combination: Settings, entry: Settings) -> bool:
    return all(name in combination and combination[name] == value for name, value in entry.items())


def _unused(excluded: Sequence[Settings], crossed: Sequence[Settings], axes: Mapping[str, Any]) -> list[Problem]:
    """Entries of exclude without effect, which are mistakes."""
    rule = "must match a cell, with values as their lists write them"
    way_out = f"names and values of the lists: {', '.join(axes) or 'there are none'}"
    return broken(
        *(
            Rule(any(_matches(one, entry) for one in crossed), f"matrix.exclude[{n}]", rule, entry, way_out)
            for n, entry in enumerate(excluded)
        )
    )
