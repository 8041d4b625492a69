"""run/facts.py: service levels as people write them, and when a machine is another one."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.errors import InputError
from streamgauge.run.facts import beside_others, machine_differs, others_beside, parse_limit


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
    with pytest.raises(InputError) as caught:
        parse_limit(text, "limits.0")
    assert "limits.0" in str(caught.value)
    assert "try:" in str(caught.value)


@given(st.text(max_size=30))
def test_no_text_makes_the_parser_crash(text: str) -> None:
    """Any text is a limit above nothing, or a plain refusal."""
    with contextlib.suppress(InputError):
        assert parse_limit(text).limit_us > 0


@pytest.mark.parametrize(("other_us", "differs"), [(1149.0, False), (1151.0, True), (871.0, False), (868.0, True)])
def test_a_machine_that_takes_much_longer_for_the_same_work_is_another_one(other_us: float, differs: bool) -> None:
    """By more than 15 %, whichever of the two was slower."""
    assert machine_differs(1000.0, other_us) is differs
    assert machine_differs(other_us, 1000.0) is differs


def test_what_others_used_is_read_out_of_a_results_warnings() -> None:
    """As it was written there, in the share of the span or of a burst; a trial of a search has another sentence."""
    used = "60% of the machine for 5 s"
    assert others_beside(("extended once", beside_others(used))) == f"other processes used {used}"
    assert others_beside(("extended once", "trial 3: other processes used 20% of the machine")) == ""
