"""The axes of a scalability study: levels of resources, and loads from easy to hard, as settings of its trials."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from streamgauge.config.experiment import Scale, flat_name
from streamgauge.config.matrix import is_setting
from streamgauge.core.errors import InputError, Problem, Rule, attempt, refuse, require, require_all
from streamgauge.core.units import parse_duration, parse_rate

RATE = "load.rate"
LOADS_MAX = 500
_RANGE_EXAMPLE = "--loads 4096..131072"
COUNTS = {"keys": "number of keys", "children": "number of children"}
"""Parameters whose name needs more words."""
_TIME = re.compile(r"[\d.]+\s*(us|ms|s|min|m|h)", re.IGNORECASE)
_RANGE = re.compile(r"(?P<first>.+?)\.\.(?P<last>.+?)(?:x(?P<factor>\d+(?:\.\d+)?))?")
_TEXT_TABLES = ("options", "transport_options")
"""Tables of settings whose values are texts."""


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
