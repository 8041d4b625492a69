"""Warnings about how partitions were read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.core.clock import US
from streamgauge.preflight.user_job import UserJob
from streamgauge.results.causes import WarningCode
from streamgauge.trial import trial_result


@pytest.mark.parametrize(("own", "warned"), [(False, True), (True, False)])
def test_a_program_drops_nothing_by_a_watermark_of_ours(
    monkeypatch: pytest.MonkeyPatch, own: bool, warned: bool
) -> None:
    """Partitions that it reads apart say nothing: its own delay is not known here."""
    for name, value in (("read_skew_us", 5 * US), ("redelivered_share", ()), ("duplicate_work", ())):
        monkeypatch.setattr(trial_result, name, lambda *_, value=value: value)
    resolved: Any = SimpleNamespace(
        workload=object.__new__(UserJob) if own else None, reads_unevenly=False, hides_reads=True,
        watermark_delay_us=0, closing_sinks=("results",), flow=None,
    )  # fmt: skip
    record: Any = SimpleNamespace(
        trial_log=None, spans=SimpleNamespace(measured_from_us=0, measured_to_us=US),
    )  # fmt: skip
    codes = [caution.code for caution in trial_result._of_reads(resolved, record)]
    assert codes == ([WarningCode.PARTITIONS_APART] if warned else [])
