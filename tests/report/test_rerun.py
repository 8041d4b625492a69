"""What differed from the defaults, and the command that asks the same again."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from streamgauge.experiment import build
from streamgauge.report import rerun


def dump(**values: Any) -> dict[str, Any]:
    return build({"workload": "word_count", **values}).model_dump(mode="json")


def test_defaults_are_not_listed() -> None:
    """An experiment without wishes is the bare command."""
    assert rerun.settings(dump()) == ()
    assert rerun.command(dump()) == "streamgauge run word_count"


def test_every_change_is_listed_with_its_default() -> None:
    """Nested and free settings are named by their dotted names."""
    found = rerun.settings(dump(load={"rate": "1.5M"}, options={"lowering.join": "packed"}))
    assert [(one.name, one.value, one.default) for one in found] == [
        ("options.lowering.join", "packed", "-"),
        ("load.rate", "1500000", "100000"),
    ]


def test_command_is_quoted() -> None:
    """Values with blanks survive a shell."""
    command = rerun.command(dump(parameters={"pattern": "a b"}, load={"duration": "90s", "seed": 7}))
    assert command is not None
    assert shlex.split(command)[3:] == ["--set", "pattern=a b", "--duration", "90s", "--seed", "7"]


def test_search_options() -> None:
    """A search's width is written as people write it, switches without a value."""
    command = rerun.command(dump(command="sustain", search={"tolerance": 0.025, "quick": True}))
    assert command == "streamgauge sustain word_count --tolerance 2.5% --quick"


@pytest.mark.parametrize("values", [{"load": {"start": "2026-01-01T00:00:00"}}, {"limits": ["event_time_p99<=2s"]}])
def test_what_has_no_documented_option_needs_the_file(values: dict[str, Any]) -> None:
    """Rather than a command that leaves something out, there is none."""
    assert rerun.command(dump(**values)) is None


def test_nothing_asked_nothing_said() -> None:
    """A run killed before its experiment was written down has no command."""
    assert rerun.command({}) is None
    assert rerun.settings({}) == ()
