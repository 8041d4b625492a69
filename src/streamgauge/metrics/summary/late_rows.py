"""Rows that the engine dropped because they came behind its watermark, and the delay that would have kept them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from streamgauge.core.clock import US
from streamgauge.core.engine_reports import BatchProgress
from streamgauge.metrics.log.batch_frontiers import read_skew_us
from streamgauge.metrics.log.trial_record import TrialRecord

STEP_US = US // 10
"""Delays are rounded up to a tenth of a second."""


def late_rows(progress: Iterable[BatchProgress], since_us: int) -> int | None:
    """The engine's own count over its batches since then; None if it reports none. A batch's last report counts."""
    latest = {(one.query, one.batch): one.late_rows for one in progress if one.start_us >= since_us}
    known = [rows for rows in latest.values() if rows is not None]
    return sum(known) if known else None


def late_rows_in_words(rows: int, record: TrialRecord, is_user_job: bool) -> str:
    """A warning about late rows with the skew that was read, and the least delay that keeps rows of such a skew."""
    skew_us = read_skew_us(record.trial_log, record.spans.start_us, record.spans.end_us, across_streams=True)
    delay = f"{max(1, math.ceil(skew_us / STEP_US)) / 10:g} seconds"
    option = f'withWatermark(..., "{delay}")' if is_user_job else f'--option watermark_delay="{delay}"'
    return (
        f"by its own count the engine dropped {rows:,} rows as late; partitions were read up to {skew_us / US:.2g} s "
        f"apart. A watermark delay of at least that keeps such rows: {option}"
    )
