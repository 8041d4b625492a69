"""Warnings about how partitions were read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.core.clock import US
from streamgauge.results.codes import WarningCode
from streamgauge.trial import result_builder
from streamgauge.user_workloads.user_job import UserJob
from streamgauge.workloads.registry import Workload


@pytest.mark.parametrize(("own", "warned"), [(False, True), (True, False)])
def test_a_program_drops_nothing_by_a_watermark_of_ours(
    monkeypatch: pytest.MonkeyPatch, own: bool, warned: bool
) -> None:
    """Partitions that it reads apart say nothing: its own delay is not known here."""
    for name, value in (("read_skew_us", 5 * US), ("redelivered_share", ()), ("duplicate_work", ())):
        monkeypatch.setattr(result_builder, name, lambda *_, value=value: value)
    resolved: Any = SimpleNamespace(
        workload=UserJob if own else Workload, reads_unevenly=False, hides_reads=True,
        watermark_delay_us=0, closing_sinks=("results",), flow=None,
    )  # fmt: skip
    record: Any = SimpleNamespace(
        trial_log=None, spans=SimpleNamespace(measured_from_us=0, measured_to_us=US),
    )  # fmt: skip
    codes = [caution.code for caution in result_builder._of_reads(resolved, record)]
    assert codes == ([WarningCode.PARTITIONS_APART] if warned else [])
