"""Quantities and sets of processors as people write them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.formatting import format_rate
from streamgauge.core.units import (
    CPU_MAX,
    format_cpus,
    parse_cpus,
    parse_duration,
    parse_rate,
    parse_share,
    parse_size,
    parse_whole,
)
from tests.unit.helpers_refusals import problem_of

whole = partial(parse_whole, setting="--slices", least=1, greatest=10_000, example="100")
confidence = partial(parse_share, setting="confidence")


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        *((parse_rate, *row) for row in (
            ("100k", 1e5), ("2.5M", 2.5e6), ("1G", 1e9), ("100k/s", 1e5), (" 7 k ", 7e3), (2500, 2500.0), (1e6, 1e6),
            ("1e6", 1e6), ("1E+6", 1e6), ("2.5e-1", 0.25), ("1_000_000", 1e6), (".5k", 500.0), ("1.e3", 1e3),
        )),
        *((parse_share, *row) for row in (("5%", 0.05), (" 57 % ", 0.57), ("0.05", 0.05), (0.05, 0.05), (1, 1.0))),
        *((whole, *row) for row in (
            ("10k", 10_000), ("1e3", 1000), ("1_000", 1000), (" 2.5 k", 2500), ("1.005k", 1005), (7, 7)
        )),
        *((parse_cpus, *row) for row in (
            ("0", (0,)), (3, (3,)), ("1-3", (1, 2, 3)), ("5,0-1", (0, 1, 5)), (" 2 - 2 , 2", (2,)),
            (f"{CPU_MAX}", (CPU_MAX,)),
        )),
        *((parse_duration, *row) for row in (
            ("1e-5s", 1e-5), ("500ms", 0.5), ("2m", 120.0), ("20", 20.0), ("2min", 120.0), ("1h", 3600.0)
        )),
        *((parse_size, *row) for row in (("1.5e9", 1_500_000_000), ("512MiB", 512 * 2**20))),
    ],
)  # fmt: skip
def test_quantities_are_read(parse: Callable[[Any], Any], text: Any, value: Any) -> None:
    """With a unit, in percent, or as Python writes a number."""
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "setting", "rule", "way_out", "texts"),
    [
        (parse_rate, "rate", "", "--rate 100k",
         ("", "k", "1e", "e6", "1e6x", "1__0", "_1", "1_", "-1", "0", "1e999", "inf", "nan", True)),
        # A small m is minutes in a duration, so it is not taken for millions.
        (parse_rate, "rate", "5m is not a rate; 5M is 5 million events a second", "--rate 5M", ("5m",)),
        (parse_rate, "rate", "5 min is not a rate; 5M is 5 million events a second", "--rate 5M", ("5 min",)),
        (parse_rate, "rate", "1.5m/s is not a rate; 1.5M is 1.5 million", "--rate 1.5M", ("1.5m/s",)),
        (confidence, "confidence", "must be a share such as 5% or 0.05", "--confidence 5%",
         ("wide", "", "%", "5%%", "-5%", "nan", "5k", True)),
        (whole, "--slices", "must be a whole number from 1 to 10,000", "--slices 100",
         ("0", "10_001", "1.5", "0.5k1", "many", "1k/s", "-1", "nan", True)),
        (parse_cpus, "cpus", "must be processors such as 0, 1-3 or 0,2-5", "--cpus 0-1",
         ("", "a", "1-", "-1", "3-1", "0,,1", "1.5", "0-99999999999", f"{CPU_MAX + 1}", "0;1")),
        (parse_duration, "duration", "must be a time such as 500ms, 60s, 2m (or 2min) or 1h; a number alone is seconds",
         "--duration 60s", ("2 weeks", "soon", "-soon")),
        (parse_duration, "duration", "must not be negative", "--duration 60s", ("-5s", " - .5ms", -1)),
        # An argument of a function or an engine's option is not written `--name`.
        (partial(parse_duration, setting="@job reach", way_out='reach="12s"'), "@job reach", "must be a time",
         'reach="12s"', ("soon",)),
        (partial(parse_rate, setting="option capacity", way_out="--option capacity=100k"), "option capacity",
         "must be above 0 events per second", "--option capacity=100k", (0,)),
    ],
)  # fmt: skip
def test_anything_else_is_refused(
    parse: Callable[[Any], Any], setting: str, rule: str, way_out: str, texts: tuple[Any, ...]
) -> None:
    """Neither guessed at nor read in part."""
    for text in texts:
        problem = problem_of(parse, text)
        assert (problem.setting, problem.got, problem.way_out) == (setting, text, way_out)
        assert problem.rule.startswith(rule)


@pytest.mark.parametrize(
    ("rate", "text"),
    [(999_999, "1 M/s"), (999_499, "999 k/s"), (1_540_000, "1.54 M/s"), (999.9, "1 k/s"), (7, "7 /s"), (1e9, "1 G/s")],
)
def test_rates_are_shown_as_they_are_written(rate: float, text: str) -> None:
    """Never in powers of ten, and every one that is shown can be read again."""
    assert format_rate(rate) == text
    assert parse_rate(text.removesuffix("/s").replace(" ", "")) == pytest.approx(rate, rel=0.005)


@given(st.sets(st.integers(0, 40), min_size=1))
def test_what_is_written_is_read_back(cpus: set[int]) -> None:
    assert parse_cpus(format_cpus(cpus)) == tuple(sorted(cpus))


def test_ranges_are_written_short() -> None:
    assert format_cpus([3, 0, 1, 2, 7]) == "0-3,7"
