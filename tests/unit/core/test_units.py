"""Quantities as people write them.

Sets of processors as text.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.errors import InputError
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


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("100k", 1e5), ("2.5M", 2.5e6), ("1G", 1e9), ("100k/s", 1e5), (" 7 k ", 7e3), (2500, 2500.0), (1e6, 1e6),
        ("1e6", 1e6), ("1E+6", 1e6), ("2.5e-1", 0.25), ("1_000_000", 1e6), (".5k", 500.0), ("1.e3", 1e3),
    ],
)  # fmt: skip
def test_rates(text: str | float, rate: float) -> None:
    """With a unit, or as Python writes a number."""
    assert parse_rate(text) == rate


@pytest.mark.parametrize(
    "text", ["", "k", "1e", "e6", "1e6x", "1__0", "_1", "1_", "-1", "0", "1e999", "inf", "nan", True]
)
def test_what_is_no_rate_is_refused(text: str | bool) -> None:
    """Neither guessed at nor read in part."""
    with pytest.raises(InputError) as refused:
        parse_rate(text)
    assert refused.value.problems[0].way_out == "--rate 100k"


@pytest.mark.parametrize(
    ("rate", "text"),
    [(999_999, "1 M/s"), (999_499, "999 k/s"), (1_540_000, "1.54 M/s"), (999.9, "1 k/s"), (7, "7 /s"), (1e9, "1 G/s")],
)
def test_rates_are_shown_as_they_are_written(rate: float, text: str) -> None:
    """Never in powers of ten, and every one that is shown can be read again."""
    assert format_rate(rate) == text
    assert parse_rate(text.removesuffix("/s").replace(" ", "")) == pytest.approx(rate, rel=0.005)


def test_times_and_sizes() -> None:
    """The same numbers, with units of their own."""
    assert (parse_duration("1e-5s"), parse_duration("500ms"), parse_duration("2m")) == (1e-5, 0.5, 120.0)
    assert (parse_duration("20"), parse_duration("2min"), parse_duration("1h")) == (20.0, 120.0, 3600.0)
    with pytest.raises(InputError, match=r"2m \(or 2min\) or 1h; a number alone is seconds"):
        parse_duration("2 weeks")
    assert (parse_size("1.5e9"), parse_size("512MiB")) == (1_500_000_000, 512 * 2**20)


def test_the_way_out_is_the_callers_where_the_setting_is_no_option() -> None:
    """An argument of a function or an engine's option is not written `--name`."""
    with pytest.raises(InputError, match='try: reach="12s"'):
        parse_duration("soon", "@job reach", way_out='reach="12s"')
    with pytest.raises(InputError, match="try: --option capacity=100k"):
        parse_rate(0, "option capacity", way_out="--option capacity=100k")
    with pytest.raises(InputError, match="try: --duration 60s"):
        parse_duration("soon")


@pytest.mark.parametrize(("text", "share"), [("5%", 0.05), (" 57 % ", 0.57), ("0.05", 0.05), (0.05, 0.05), (1, 1.0)])
def test_shares(text: str | float, share: float) -> None:
    """In percent, or as a number."""
    assert parse_share(text) == share


@pytest.mark.parametrize("text", ["wide", "", "%", "5%%", "-5%", "nan", "5k", True])
def test_what_is_no_share_is_refused(text: str | bool) -> None:
    """With what one looks like."""
    with pytest.raises(InputError) as refused:
        parse_share(text, "confidence")
    assert refused.value.problems[0].way_out == "--confidence 5%"


@pytest.mark.parametrize(
    ("text", "number"), [("10k", 10_000), ("1e3", 1000), ("1_000", 1000), (" 2.5 k", 2500), ("1.005k", 1005), (7, 7)]
)
def test_whole_numbers(text: str | int, number: int) -> None:
    """Written as rates are."""
    assert parse_whole(text, "--slices", 1, 10_000, "100") == number


@pytest.mark.parametrize("text", ["0", "10_001", "1.5", "0.5k1", "many", "1k/s", "-1", "nan", True])
def test_what_is_no_whole_number_is_refused(text: str | bool) -> None:
    """Below, above, or between, with the borders and what is right."""
    with pytest.raises(InputError, match="--slices: must be a whole number from 1 to 10,000") as refused:
        parse_whole(text, "--slices", 1, 10_000, "100")
    assert refused.value.problems[0].way_out == "--slices 100"


@pytest.mark.parametrize(("text", "cpus"), [
    ("0", (0,)), (3, (3,)), ("1-3", (1, 2, 3)), ("5,0-1", (0, 1, 5)), (" 2 - 2 , 2", (2,)), (f"{CPU_MAX}", (CPU_MAX,)),
])  # fmt: skip
def test_numbers_and_ranges_are_read(text: str | int, cpus: tuple[int, ...]) -> None:
    assert parse_cpus(text) == cpus


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "3-1", "0,,1", "1.5", "0-99999999999", f"{CPU_MAX + 1}", "0;1"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_cpus(text, "cpus", "--cpus 0-1")
    (problem,) = refused.value.problems
    assert (problem.setting, problem.got, problem.way_out) == ("cpus", text, "--cpus 0-1")


@given(st.sets(st.integers(0, 40), min_size=1))
def test_what_is_written_is_read_back(cpus: set[int]) -> None:
    assert parse_cpus(format_cpus(cpus)) == tuple(sorted(cpus))


def test_ranges_are_written_short() -> None:
    assert format_cpus([3, 0, 1, 2, 7]) == "0-3,7"
