"""Limits that a user sets on latencies."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.config.limits import parse_limit
from streamgauge.core.errors import InputError


@pytest.mark.parametrize(
    ("text", "name", "limit_us"),
    [
        ("event_time_p99 <= 2s", "event_time_p99", 2e6),
        ("p99.9<=250ms", "event_time_p99_9", 250e3),
        ("closing_delay_max <= 1m", "closing_delay_max", 60e6),
        (" processing_time_mean<=0.5 ", "processing_time_mean", 0.5e6),
    ],
)
def test_limits_are_read_as_people_write_them(text: str, name: str, limit_us: float) -> None:
    """Kind, statistic and time, with the short form for event time."""
    level = parse_limit(text)
    assert (level.name, level.limit_us) == (name, limit_us)


@pytest.mark.parametrize(
    "text", ["", "p99", "p98 <= 2s", "p99 >= 2s", "p99 <= fast", "p99 <= 0s", "throughput_p99 <= 2s"]
)
def test_nonsense_limits_are_refused(text: str) -> None:
    """The message names the setting, what was got and a way out."""
    with pytest.raises(InputError, match=r"limits\.0(.|\n)*try:"):
        parse_limit(text, "limits.0")


@given(st.text(max_size=30))
def test_no_text_makes_the_parser_crash(text: str) -> None:
    """Any text is a limit above nothing, or a plain refusal."""
    with contextlib.suppress(InputError):
        assert parse_limit(text).limit_us > 0
