"""The phases of a trial."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.core.clock import US
from streamgauge.core.trial import TrialSpans
from streamgauge.metrics.summary.spans import phases

START = 1_700_000_000 * US


def test_phases_follow_each_other_without_gaps() -> None:
    """Warm-up, measured, tail, drain; each begins where the last ended, and empty ones are left out."""
    spans = TrialSpans(START, START + 5 * US, START + 15 * US, START + 20 * US)
    found = phases(spans, START + 22 * US)
    assert [phase.name for phase in found] == ["warm-up", "measured", "tail", "drain"]
    assert [phase.end_us for phase in found[:-1]] == [phase.start_us for phase in found[1:]]
    bare = phases(TrialSpans(START, START, START + US, START + US), START + US)
    assert [phase.name for phase in bare] == ["measured"]


@pytest.mark.parametrize("why", ["early_stop", "engine_failed", "driver_failed", "interrupted"])
def test_phases_of_a_trial_that_ended_early_are_those_of_what_was_offered(make: Any, why: str) -> None:
    """Offered for 8 of the 15 planned seconds: 3 were measured, there was no tail, the rest was waiting for the end."""
    record = make.story(seconds=8).record(
        **{why: True if why == "interrupted" else "said so"}, deadline_us=START + 9 * US
    )
    found = phases(record.offered_spans, record.deadline_us)
    assert [(phase.name, (phase.end_us - phase.start_us) / US) for phase in found] == [
        ("warm-up", 5), ("measured", 3), ("drain", 1)
    ]  # fmt: skip
