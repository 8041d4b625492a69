"""Lists for people."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.report.listing import TRUTH, show_engines


def test_engines_are_listed_with_a_note_on_truth(capsys: pytest.CaptureFixture[str]) -> None:
    """Under the table, above the options: of an own job Spark says what is right, and the table alone denies it."""
    option = {"name": "trigger", "default": "auto", "meaning": "how often", "choices": []}
    spark: dict[str, Any] = {
        "name": "spark", "streams": True, "truth": False, "several_sinks": True, "nodes": ["Select"],
        "sink_modes": ["append"], "transports": ["flight"], "options": [option],
    }  # fmt: skip
    show_engines([spark])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[lines.index(TRUTH) - 1].startswith("transports")
    assert lines[lines.index(TRUTH) + 1] == "spark  --option trigger=auto  how often"
