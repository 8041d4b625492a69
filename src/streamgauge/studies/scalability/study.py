"""A scalability study before it runs: its axes, and the trial of each cell, checked before anything starts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from streamgauge.config import reproduce
from streamgauge.config.experiment import Experiment, Scale, setting_of
from streamgauge.config.matrix import Cell, values_of, with_settings
from streamgauge.config.named_files import is_data, is_data_time
from streamgauge.config.setting_info import NAME_VALUE
from streamgauge.core.errors import InputError, Problem, Rule, attempt, broken, refuse, require_all
from streamgauge.core.formatting import format_value
from streamgauge.preflight.resolved_experiment import ResolvedExperiment, spare_s, with_engine_transport
from streamgauge.preflight.settings_checks import fixed_rate
from streamgauge.results.scalability import ScalePlan
from streamgauge.studies.capacity.saturation_probe import keeps_rows
from streamgauge.studies.matrix.cells import CheckedCell, check_cells
from streamgauge.studies.scalability.axes import RATE, Axis, load_axis, resource_axis
from streamgauge.studies.scalability.criteria import EHRENSTEIN, ENDS_MIN, end_s
from streamgauge.studies.scalability.monotone_search import Grid, Point, trials_max
from streamgauge.system.cpu_pinning import cpus

TRIALS_MAX = 1000
"""At a minute each, the trials of the largest study take most of a day."""
PARALLELISM = "parallelism"


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
    def trial_s(self) -> float:
        """Estimated time of the longest trial."""
        return max(one.seconds or 0.0 for one in self.checked)

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
        return ScalePlan(
            workload=self.experiment.workload, resource=self.resources.setting,
            resources=tuple(map(round, self.resources.numbers)), dimension=self.loads.setting,
            load_unit=self.loads.unit, loads=self.loads.numbers, rates=self.rates,
            cells=len(self.loads.numbers) * len(self.resources.numbers), trials_max=self.trials_max,
            seconds_max=self.trials_max * self.trial_s,
            seconds_extended=self.trials_max * (self.trial_s + spare_s(self.experiment.load.duration)),
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
