"""What an engine reports about a batch."""

from __future__ import annotations

import pytest

from streamgauge.core.engine_reports import STEPS, BatchProgress


def test_a_batch_needs_only_a_number_and_a_start() -> None:
    """An engine that knows no more reports no more."""
    progress = BatchProgress("", 3, 1000)
    assert (progress.end_us, dict(progress.steps_us)) == (None, {})
    BatchProgress("", 3, 1000, 2000, dict.fromkeys(STEPS, 1))


def test_a_step_of_another_name_is_refused() -> None:
    """The table has no column for it, so it would be lost without a word."""
    refusal = r"batch 3: steps are latest_offset, .*; got addBatch, merge\n  try: leave out"
    with pytest.raises(ValueError, match=refusal):
        BatchProgress("", 3, 1000, 2000, {"merge": 1, "add_batch": 2, "addBatch": 2})
