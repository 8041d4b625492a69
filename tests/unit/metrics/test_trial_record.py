"""What a trial's record takes in, who may write it, and the phases of a trial."""

import ast
from pathlib import Path
from typing import Any

import pytest

import streamgauge
from streamgauge.core.clock import US
from streamgauge.core.trial import TrialSpans
from streamgauge.metrics.trial_record import TrialRecord, phases

SOURCE = Path(streamgauge.__file__).parent
SPANS = TrialSpans(0, 5 * US, 15 * US, 20 * US)


@pytest.fixture
def record(make: Any) -> TrialRecord:
    return TrialRecord(make.story().trial_log(), SPANS)


def test_what_a_phase_is_prolonged_by_moves_the_later_borders(record: TrialRecord) -> None:
    record.prolong_warmup(2 * US, "the backlog was still draining")
    record.extend_span(3 * US, "backlog trend")
    assert record.spans == SPANS.later(2 * US).longer(3 * US)
    assert (record.prolonged_us, record.interim_analyses) == (2 * US, 2)
    assert (record.prolonged_for, record.extended_for) == (("the backlog was still draining",), ("backlog trend",))


def test_the_first_reason_of_a_failed_driver_stays(record: TrialRecord) -> None:
    """What fails after it fails because of it; a full disk may show itself later."""
    record.fail_driver("the recorder ended", disk_full=False)
    record.fail_driver("No space left on device", disk_full=True)
    assert (record.driver_failed, record.disk_full) == ("the recorder ended", True)
    assert record.ended_early


def writes(code: str) -> set[str]:
    """The attributes that code sets, and the methods with a change that it calls, of something named `record`."""
    written: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Attribute(value=ast.Name(id="record") | ast.Attribute(attr="record"), attr=name, ctx=ast.Store()):
                written.add(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="record") | ast.Attribute(attr="record"), attr=name)):
                written |= {name} & {"prolong_warmup", "extend_span", "fail_driver"}
    return written


def test_only_phases_and_conclusion_write_a_record() -> None:
    """Whatever else has it reads it."""
    written = {str(path.relative_to(SOURCE)): writes(path.read_text()) for path in SOURCE.rglob("*.py")}
    assert {path for path, names in written.items() if names} == {"trial/phases.py", "trial/conclusion.py"}
    assert written["trial/conclusion.py"] == {"interrupted", "restarted"}


START = 1_700_000_000 * US


def test_phases_follow_each_other_without_gaps() -> None:
    """Warm-up, measured, tail, drain; each begins where the last ended, and empty ones are left out."""
    result = phases(TrialSpans(START, START + 5 * US, START + 15 * US, START + 20 * US), START + 22 * US)
    assert [phase.name for phase in result] == ["warm-up", "measured", "tail", "drain"]
    assert [phase.end_us for phase in result[:-1]] == [phase.start_us for phase in result[1:]]
    bare = phases(TrialSpans(START, START, START + US, START + US), START + US)
    assert [phase.name for phase in bare] == ["measured"]


@pytest.mark.parametrize("why", ["early_stop", "engine_failed", "driver_failed", "interrupted"])
def test_phases_of_a_trial_that_ended_early_are_those_of_what_was_offered(make: Any, why: str) -> None:
    """Offered for 8 of the 15 planned seconds: 3 were measured, there was no tail, the rest was waiting for the end."""
    record = make.story(seconds=8).record(
        **{why: True if why == "interrupted" else "said so"}, deadline_us=START + 9 * US
    )
    result = phases(record.offered_spans, record.deadline_us)
    assert [(phase.name, (phase.end_us - phase.start_us) / US) for phase in result] == [
        ("warm-up", 5), ("measured", 3), ("drain", 1)
    ]  # fmt: skip


@pytest.mark.parametrize("offered_s", [0, 3])
def test_a_trial_that_ended_in_its_warm_up_has_no_other_phase(offered_s: int) -> None:
    until = START + offered_s * US
    result = phases(TrialSpans(START, until, until, until), START + 21 * US)
    assert [(phase.name, phase.start_us, phase.end_us) for phase in result] == [("warm-up", START, START + 21 * US)]
