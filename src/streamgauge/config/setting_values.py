"""Parses values of settings: lists, whole numbers within limits, and processors of both sides."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pydantic import BeforeValidator

from streamgauge.core.clock import US
from streamgauge.core.cpu_sets import format_cpus, parse_cpus
from streamgauge.core.errors import InputError, Problem, attempt
from streamgauge.core.formatting import format_value
from streamgauge.core.units import parse_duration, parse_whole


def parse_interval(text: Any) -> float:
    """The interval between batches, in seconds; Spark takes whole milliseconds."""
    interval_s = parse_duration(text)
    if round(US * interval_s) % 1000:
        raise InputError(Problem("interval", "must be whole milliseconds", text, "--interval"))
    return interval_s


def parse_record_size(text: Any) -> int:
    from streamgauge.loadgen.datasets.timestamped_text import RECORD_BYTES_MAX, RECORD_BYTES_MIN

    return parse_whole(text, "--record-size", RECORD_BYTES_MIN, RECORD_BYTES_MAX, "")


def parse_loads(given: Any) -> tuple[str, ...]:
    """Loads as text, because only their dimension says how they are read."""
    texts = given.split(",") if isinstance(given, str) else _as_list(given)
    return tuple(format_value(text).strip() for text in texts)


def parse_number(least: int, greatest: int, text: Any) -> int:
    return parse_whole(text, "--number", least, greatest, "")


def whole(least: int, greatest: int) -> BeforeValidator:
    """Validates a whole number from `least` to `greatest`; `10k` is 10000."""
    return BeforeValidator(partial(parse_number, least, greatest))


def list_of(parse: Callable[[Any], Any]) -> BeforeValidator:
    """Parses a list, or values separated by commas, without duplicates. One InputError holds all problems."""

    def read(given: Any) -> tuple[Any, ...]:
        texts = given.split(",") if isinstance(given, str) else given
        problems: list[Problem] = []
        values = [attempt(partial(parse, text), problems) for text in _as_list(texts)]
        if problems:
            raise InputError(problems)
        return tuple(dict.fromkeys(values))

    return BeforeValidator(read)


def _as_list(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]


CPUS_EXAMPLE = "driver=0 sut=1"
_CPUS_WAY_OUT = f"--cpus {CPUS_EXAMPLE}"
SIDES = ("driver", "sut")
"""Both sides of `--cpus`."""


def parse_cpu_sets(given: Any) -> Any:
    """Processors by side, as text in one form. A table that is not one is left to pydantic."""
    if not isinstance(given, dict) or not given:
        return given
    problems: list[Problem] = []
    if set(given) != set(SIDES):
        rule, sides = "must name the processors of driver and sut, both and no other", ", ".join(map(str, given))
        problems.append(Problem("cpus", rule, sides, _CPUS_WAY_OUT))
    texts = {
        str(side): format_cpus(cpus)
        for side, text in given.items()
        if (cpus := attempt(partial(parse_cpus, text, f"cpus.{side}", _CPUS_WAY_OUT), problems))
    }
    if problems:
        raise InputError(problems)
    return texts


def are_separate(given: Any) -> bool:
    """Whether `cpus` gives both sides processors of their own; False if it is absent or refused."""
    sets = attempt(partial(parse_cpu_sets, given), [])
    if not isinstance(sets, dict) or set(sets) != set(SIDES):
        return False
    return not set(parse_cpus(sets["driver"])) & set(parse_cpus(sets["sut"]))
