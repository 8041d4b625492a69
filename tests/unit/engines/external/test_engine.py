"""The driver's side of a program of the user's own."""

from __future__ import annotations

from dataclasses import replace

from streamgauge.engines.external.engine import ended_by_itself, settings_of
from streamgauge.user_workloads.program_node import Launch

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


def test_a_program_that_ends_by_itself_is_told_what_to_change() -> None:
    """Also one that ends without an error and prints nothing."""
    assert ended_by_itself(0, "") == (
        "the program ended with exit code 0; it must run until SIGTERM ends it: correct it, or command in its file"
    )
    assert ended_by_itself(2, " before it was ready") == (
        "the program ended with exit code 2 before it was ready; correct it, or command in its file"
    )
