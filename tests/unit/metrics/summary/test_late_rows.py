"""Rows that an engine dropped as late: its count, and the delay that would have kept them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streamgauge.core.clock import US
from streamgauge.core.engine_reports import BatchProgress
from streamgauge.metrics.summary.late_rows import late_rows, late_rows_in_words

START = 1_700_000_000 * US


def test_the_last_report_of_each_batch_counts() -> None:
    """Without those of earlier trials; an engine that reports none is not said to have dropped none."""
    reports = [
        BatchProgress("a", 1, START - 1, late_rows=7), BatchProgress("a", 2, START, late_rows=1),
        BatchProgress("a", 2, START, late_rows=2), BatchProgress("b", 2, START + 1, late_rows=3),
    ]  # fmt: skip
    assert late_rows(reports, START) == 5
    assert late_rows([BatchProgress("a", 1, START)], START) is None
    assert late_rows([BatchProgress("a", 1, START, late_rows=0)], START) == 0


def test_the_delay_is_the_skew_rounded_up(make: Any) -> None:
    """In the words of whoever sets it: the job's own watermark, or the option."""
    record = make.story().record()
    log = record.trial_log.deliveries[1]
    log[:] = [replace(part, from_us=max(part.from_us - 730_000, START), to_us=part.to_us - 730_000) for part in log]
    words = late_rows_in_words(1234, record, is_user_job=True)
    assert "dropped 1,234 rows as late; partitions were read up to 0.73 s apart" in words
    assert words.endswith('withWatermark(..., "0.8 seconds")')
    assert late_rows_in_words(1, record, is_user_job=False).endswith('--option watermark_delay="0.8 seconds"')
