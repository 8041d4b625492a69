"""`make demo`: what its end says of the installation."""

from typing import Any

import pytest

from bench.support.demo import lacking
from streamgauge.results.run import Result, Verification
from streamgauge.results.text.sentences import in_words
from streamgauge.system.machine import machine_percent
from streamgauge.verdict.verdict import judge
from tests.unit.verdict.helpers_evidence import evidence, ramp

RIGHT = Verification(judged=True, independent=True, reference="DuckDB", expected=9, matched=9)
NONE_DUE = RIGHT.model_copy(update={"expected": 0, "matched": 0})
WRONG = RIGHT.model_copy(update={"matched": 8, "wrong": 1})
BUSY = {"background_share": 0.4, "backlog": (ramp(0.2),)}


def ended(verification: Verification | None, **seen: Any) -> Result:
    about: dict[str, Any] = {"run_id": "a", "start_time": "b", "workload": "c", "engine": "d", "isolation": "shared"}
    return Result(**about, experiment={}, verdict=in_words(judge(evidence(**seen))), verification=verification)


def kept_away(**seen: Any) -> Result:
    """Our own processes failed while others used half of the machine."""
    return ended(RIGHT, **seen).model_copy(update={"others_cpu_percent": machine_percent() / 2})


@pytest.mark.parametrize(
    ("result", "value", "end"),
    [
        (ended(RIGHT), "sustained", ""),
        (ended(RIGHT, **BUSY), "invalid", "too busy for a figure."),
        (ended(WRONG, **BUSY), "invalid", ""),
        (ended(None, **BUSY), "invalid", ""),
        (ended(RIGHT, driver_reason="generator 0 ended"), "invalid", ""),
        (kept_away(driver_reason="too late"), "invalid", "too busy for a figure."),
        (ended(RIGHT, batches=3), "undecided", "could not be decided."),
        (ended(RIGHT, backlog=(ramp(0.2),)), "not_sustained", ""),
        (ended(RIGHT, interrupted=True), "interrupted", ""),
    ],
)
def test_a_busy_machine_is_distinguished_from_a_broken_installation(result: Result, value: str, end: str) -> None:
    """Only where all answers were right, and it was not our own driver that failed."""
    text = lacking(result)
    start = "The installation works and all answers were right; " if end else ""
    assert (result.verdict.value, text[: len(start)], text.endswith(end), bool(text)) == (value, start, True, bool(end))


def test_answers_that_were_not_due_are_not_called_right() -> None:
    """A run that ended in its warm-up has none."""
    assert "no answer was due" in lacking(ended(NONE_DUE, **BUSY))
