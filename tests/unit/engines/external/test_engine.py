"""The driver's side of a program of the user's own."""

from __future__ import annotations

from dataclasses import replace

from streamgauge.dataflow.program import Launch
from streamgauge.engines.external.engine import settings_of

LAUNCH = Launch(("{python}", "job.py", "--group={group}"), "folder")


def test_settings_are_the_same_in_each_run() -> None:
    """Else `compare` would show a difference between any two runs of a program."""
    assert settings_of(LAUNCH) == {"command": "{python} job.py --group={group}", "group": "a new one for each run"}
    assert settings_of(replace(LAUNCH, group="shop"))["group"] == "shop"


def test_a_program_that_ran_already_has_no_command() -> None:
    """Its group is its own."""
    assert settings_of(replace(LAUNCH, command=(), group="shop")) == {
        "command": "none: it ran already", "group": "shop",
    }  # fmt: skip
