"""A scalability study before it runs: its axes, and the trial of each cell, checked before anything starts.

The axes are levels of resources, and loads from easy to hard, as settings of the trials.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

from streamgauge.config import reproduce
from streamgauge.config.experiment import Experiment, Scale, setting_of
from streamgauge.config.matrix import Cell, is_setting, values_of, with_settings
from streamgauge.config.named_files import is_data, is_data_time
from streamgauge.config.setting_info import NAME_VALUE, flat_name
from streamgauge.core.errors import InputError, Problem, Rule, attempt, broken, refuse, require, require_all
from streamgauge.core.formatting import format_value
from streamgauge.core.units import parse_duration, parse_rate
from streamgauge.preflight.resolved_experiment import ResolvedExperiment, spare_s, with_engine_transport
from streamgauge.preflight.settings_checks import fixed_rate
from streamgauge.results.scalability import ScalePlan
from streamgauge.studies.capacity.saturation_probe import keeps_rows
from streamgauge.studies.matrix.cells import CheckedCell, check_cells
from streamgauge.studies.scalability.criteria import EHRENSTEIN, ENDS_MIN, end_s
from streamgauge.studies.scalability.monotone_search import Grid, Point, trials_max
from streamgauge.system.cpu_pinning import cpus

RATE = "load.rate"
LOADS_MAX = 500
_RANGE_EXAMPLE = "--loads 4096..131072"
COUNTS = {"keys": "number of keys", "children": "number of children"}
"""Parameters whose name needs more words."""
_TIME = re.compile(r"[\d.]+\s*(us|ms|s|min|m|h)", re.IGNORECASE)
_RANGE = re.compile(r"(?P<first>.+?)\.\.(?P<last>.+?)(?:x(?P<factor>\d+(?:\.\d+)?))?")
_TEXT_TABLES = ("options", "transport_options")
"""Tables of settings whose values are texts."""
TRIALS_MAX = 1000
"""At a minute each, the trials of the largest study take most of a day."""
PARALLELISM = "parallelism"


@dataclass(frozen=True)
class Axis:
    """A setting with its values: as the trials get them, and as numbers in `unit` (events/s, s, or none)."""

    setting: str
    values: tuple[Any, ...]
    numbers: tuple[float, ...]
    unit: str = ""

    @property
    def ascends(self) -> bool:
        return self.numbers[0] <= self.numbers[-1]

    @property
    def metric(self) -> str:
        """What the hardest of these loads is: `capacity`, `greatest height`, `smallest period`."""
        if self.setting == RATE:
            return "capacity"
        name = self.setting.rpartition(".")[2]
        return f"{'greatest' if self.ascends else 'smallest'} {COUNTS.get(name, name)}"


def resource_axis(scale: Scale) -> Axis:
    """The levels of resources, ascending."""
    setting, levels = flat_name(scale.resource), tuple(sorted(scale.resources))
    require_all(
        Rule(
            is_setting(setting), "scale.resource", "must be a setting, such as parallelism, partitions or options.NAME",
            scale.resource, "--resource parallelism",
        ),
        Rule(
            levels, "scale.resources", "must be given: levels of resources, as whole numbers", "", "--resources 1,2,4"
        ),
    )  # fmt: skip
    return Axis(setting, tuple(_value(setting, level) for level in levels), tuple(map(float, levels)))


def load_axis(scale: Scale, step: float) -> Axis:
    """The loads from easy to hard; those of a range are at most `step` apart, as a share."""
    name = RATE if scale.load == "rate" else flat_name(scale.load)
    setting = name if is_setting(name) else f"parameters.{name}"
    require(scale.loads, "scale.loads", "must be given: loads from easy to hard", "", _RANGE_EXAMPLE)
    are_times = any(_TIME.fullmatch(text.partition("..")[0].strip()) for text in scale.loads)
    unit = "events/s" if setting == RATE else "s" if are_times else ""
    problems: list[Problem] = []
    parts = [attempt(partial(_expanded, text, unit, step), problems) for text in scale.loads]
    refuse(problems)
    numbers = tuple(number for part in parts for number in part)
    _require_order(numbers, setting, scale.loads)
    return Axis(setting, tuple(_value(setting, _written(number, unit)) for number in numbers), numbers, unit)


def _expanded(text: str, unit: str, step: float) -> list[float]:
    """The loads of one entry: a value, or a range A..B in geometric steps, or A..BxF in steps of factor F."""
    match = _RANGE.fullmatch(text)
    if match is None:
        return [_number(text, unit)]
    first, last = _number(match["first"], unit), _number(match["last"], unit)
    factor = float(match["factor"] or 1 + step)
    require(factor > 1, "scale.loads", "must have a factor above 1 after x", text, f"{_RANGE_EXAMPLE}x2")
    steps = max(1, math.ceil(abs(math.log(last / first)) / math.log(factor) - 1e-9)) if first != last else 0
    rule, got = f"must have at most {LOADS_MAX} loads", f"{text}: {steps + 1:,} loads"
    require(steps < LOADS_MAX, "scale.loads", rule, got, "--tolerance 10%, or a list of loads")
    if match["factor"]:  # exact steps; only the last one may be smaller
        each, digits = (factor if last > first else 1 / factor), 12
    else:
        each, digits = (last / first) ** (1 / steps) if steps else 1.0, 4
    between = (_rounded(first * each**n, unit, digits) for n in range(1, steps))
    return list(dict.fromkeys([first, *between, last]))


def _number(text: str, unit: str) -> float:
    """A load as a number in its unit. Raises InputError unless it is a number above zero."""
    text = text.strip()
    if unit == "s":
        seconds = parse_duration(text, "scale.loads", way_out="--loads 1s..10ms")
        require(seconds > 0, "scale.loads", "must be above 0", text, "--loads 1s..10ms")
        return seconds
    if unit:
        return parse_rate(text, "scale.loads", way_out=_RANGE_EXAMPLE)
    try:
        return parse_rate(text)
    except InputError:
        rule = "must be numbers above 0, or times with a unit"
        raise InputError(Problem("scale.loads", rule, text, _RANGE_EXAMPLE)) from None


def _rounded(number: float, unit: str, digits: int) -> float:
    """A load between the ends of a range: a whole number, or whole microseconds of a time."""
    number = float(f"{number:.{digits}g}")
    if unit == "s":
        return max(round(number, 6), 1e-6)
    return float(round(number)) if number >= 1 else number


def _written(number: float, unit: str) -> Any:
    """A load as an experiment's file writes it."""
    if unit == "s":
        us = round(1e6 * number)
        return f"{us // 1000}ms" if us % 1000 == 0 else f"{us}us"
    return int(number) if number == int(number) else number


def _value(setting: str, value: Any) -> Any:
    return str(value) if setting.partition(".")[0] in _TEXT_TABLES else value


def _require_order(numbers: Sequence[float], setting: str, given: Sequence[str]) -> None:
    """Raises InputError unless the loads strictly ascend or descend; rates ascend."""
    pairs = list(pairwise(numbers))
    ascends, descends = all(a < b for a, b in pairs), all(a > b for a, b in pairs)
    is_rate = setting == RATE
    rule = "must ascend" if is_rate else "must ascend or descend, from easy to hard"
    require(ascends or (descends and not is_rate), "scale.loads", rule, ",".join(given), _RANGE_EXAMPLE)


@dataclass(frozen=True)
class Study:
    """A study, whose axes are right."""

    experiment: Experiment
    scale: Scale
    loads: Axis
    resources: Axis

    @property
    def grid(self) -> Grid:
        near = self.resolved.engine.near_limit
        return Grid(
            self.loads.numbers, self.resources.numbers, self.rates, near_limit=near,
            full=near.full_of(keeps_rows(self.resolved)),
        )  # fmt: skip

    @property
    def resolved(self) -> ResolvedExperiment:
        """The first of the trials."""
        return self.checked[0].resolved

    @cached_property
    def trials_max(self) -> int:
        """The most trials of a bisection, without repeated invalid ones."""
        return trials_max(self.grid) * self.scale.repeat

    @property
    def rates(self) -> tuple[float, ...]:
        """Events per second of each load. The first trials checked are those of the loads, in their order."""
        return tuple(one.resolved.experiment.load.rate for one in self.checked[: len(self.loads.values)])

    def parameters(self) -> dict[str, Any]:
        """The parameters of the workload that every trial has alike, and data that replaces its rows."""
        each = [one.resolved.parameters.model_dump(mode="json") for one in self.checked]
        shared = {name: value for name, value in each[0].items() if all(one[name] == value for one in each)}
        given = self.experiment.parameters.items()
        return shared | {name: value for name, value in given if is_data(name) or is_data_time(name)}

    def settings(self, point: Point) -> dict[str, Any]:
        """What a cell varies."""
        loads, resources = self.loads, self.resources
        return {loads.setting: loads.values[point.load], resources.setting: resources.values[point.resources]}

    def trial(self, point: Point) -> Experiment:
        """The run of a cell."""
        settings = self.settings(point)
        base: dict[str, Any] = {**values_of(self.experiment, "matrix", "scale", "search"), "command": "run"}
        trial = with_settings(base, settings)
        fixed = fixed_rate(trial) if RATE not in settings else None
        return trial if fixed is None else with_settings(base, {**settings, RATE: fixed})

    @cached_property
    def checked(self) -> tuple[CheckedCell, ...]:
        """Every load with the least resources, and the least and the greatest load with every level.

        Raises:
            InputError: with each problem once, and a cell that has it unless all have.
        """
        loads, levels = range(len(self.loads.values)), range(len(self.resources.values))
        points = [Point(load, 0) for load in loads]
        points += [Point(load, level) for level in levels[1:] for load in {0, loads[-1]}]
        found: list[CheckedCell] = []
        problems: dict[tuple[str, str], tuple[Problem, list[Point]]] = {}
        for number, point in enumerate(points, 1):
            try:
                found += check_cells([Cell(number, self.settings(point), 1, self.trial(point))])
            except InputError as error:
                for problem in error.problems:
                    problems.setdefault((problem.setting, problem.rule), (problem, []))[1].append(point)
        refuse([one if len(at) == len(points) else self._located(one, at) for one, at in problems.values()])
        return tuple(found)

    def _located(self, problem: Problem, at: list[Point]) -> Problem:
        load, level = (format_value(value) for value in self.settings(at[0]).values())
        more = f", and {len(at) - 1} more cell{'s' * (len(at) > 2)}" if len(at) > 1 else ""
        return replace(problem, rule=f"{problem.rule} (load {load} with {level}{more})")

    def plan(self) -> ScalePlan:
        longest_s = max(one.seconds or 0.0 for one in self.checked)
        return ScalePlan(
            workload=self.experiment.workload, resource=self.resources.setting,
            resources=tuple(map(round, self.resources.numbers)), dimension=self.loads.setting,
            load_unit=self.loads.unit, loads=self.loads.numbers, rates=self.rates,
            cells=len(self.loads.numbers) * len(self.resources.numbers), trials_max=self.trials_max,
            seconds=self.trials_max * longest_s,
            seconds_max=self.trials_max * (longest_s + spare_s(self.experiment.load.duration)),
        )  # fmt: skip

    def notes(self) -> Iterator[str]:
        """What to know of the figures before they are measured."""
        engine, processors = self.experiment.engine, len(cpus())
        if self.resolved.engine.simulated:
            yield f"simulated: the engine {engine} has the capacity that its options state, and needs no cores"
        elif self.resources.setting == PARALLELISM and (most := self.resources.numbers[-1]) > processors:
            yield (
                f"{most:g} cores were asked for, and this machine has {processors} processors: higher levels share them"
            )


def study_of(experiment: Experiment, rate_is_given: bool = False) -> Study:
    """The study, ready to start. Raises InputError with every problem of any trial.

    `rate_is_given`: a rate was given, which may be the default one; any other rate is known to be given.
    """
    experiment = with_engine_transport(experiment)
    scale = experiment.scale or Scale()
    problems = list(reproduce.unsupported_settings(experiment))
    given = {setting.name: setting.value for setting in reproduce.settings(experiment.model_dump(mode="json"))}
    rate_is_given = rate_is_given or RATE in given
    resources = attempt(partial(resource_axis, scale), problems)
    loads = attempt(partial(load_axis, scale, experiment.search.tolerance), problems)
    if resources is not None and loads is not None:
        problems += _grid_problems(experiment, scale, loads, resources, rate_is_given)
        problems += _varied_problems(given, loads, resources)
    refuse(problems)
    study = Study(experiment, scale, loads, resources)
    _require_span_and_rate(study, rate_is_given)
    return study


def _require_span_and_rate(study: Study, rate_is_given: bool) -> None:
    """A criterion that compares two ends needs a span with both of them in one phase, and a rate may be fixed."""
    least_s, load = ENDS_MIN * end_s(study.resolved.interval_s), study.experiment.load
    fixed_otherwise = rate_is_given and study.loads.setting != RATE and {*study.rates} != {load.rate}
    require_all(
        Rule(
            study.scale.criterion != EHRENSTEIN or load.duration >= least_s, "load.duration",
            f"must be at least {least_s} s with the criterion ehrenstein, so that both ends of the lag lie in the same "
            "phase of the batches", f"{load.duration:g} s", "--duration 360s, or --criterion slope",
        ),
        Rule(
            not fixed_otherwise, "load.rate",
            "must not be given with a fixed frequency: each trial's rate is the frequency times its number of keys",
            load.rate, "leave --rate out, or leave --set frequency out",
        ),
    )  # fmt: skip


def _grid_problems(
    experiment: Experiment, scale: Scale, loads: Axis, resources: Axis, rate_is_given: bool
) -> list[Problem]:
    """Axes that make no grid, and a rate, or a frequency that fixes it, although the loads are rates."""
    trials = trials_max(Grid(loads.numbers, resources.numbers)) * scale.repeat
    are_rates, fixed = loads.setting == RATE, attempt(partial(fixed_rate, experiment), [])
    return broken(
        Rule(
            resources.setting != loads.setting, "scale.load", "must be another setting than --resource", scale.load,
            "--load rate",
        ),
        Rule(
            trials <= TRIALS_MAX, "scale.repeat", f"must need at most {TRIALS_MAX:,} trials",
            f"up to {trials:,} trials", "--repeat 1, fewer levels, or a larger --tolerance",
        ),
        Rule(
            not (are_rates and rate_is_given), RATE, "must not be given with loads in events per second",
            experiment.load.rate, "leave --rate out, or name another --load",
        ),
        Rule(
            not are_rates or fixed is None, "set frequency", "fixes the rate, and these loads are rates",
            experiment.parameters.get("frequency"),
            "leave --set frequency out, or name another --load, such as frequency",
        ),
    )  # fmt: skip


def _varied_problems(given: Mapping[str, str], loads: Axis, resources: Axis) -> Iterator[Problem]:
    """A value of a setting whose values are the loads or the levels: it would be ignored."""
    for axis, values in ((loads, "--loads"), (resources, "--resources")):
        info, key = setting_of(axis.setting), axis.setting.partition(".")[2]
        if axis.setting == RATE or axis.setting not in given or info is None or "scale" not in info.commands:
            continue
        option = f"{info.flag} {key}" if info.metavar == NAME_VALUE else info.flag
        name = option.removeprefix("--") if info.metavar == NAME_VALUE else axis.setting
        rule = f"must not be given, because {values} states its values"
        yield Problem(name, rule, given[axis.setting], f"leave {option} out")
