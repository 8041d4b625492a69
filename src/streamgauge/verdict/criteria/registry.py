"""The named checks in the order of the report."""

from __future__ import annotations

from streamgauge.verdict.criteria import (
    answers,
    backlog_trend,
    connected,
    driver,
    latency_trend,
    output_trend,
    queue_bound,
    sufficient_evidence,
)
from streamgauge.verdict.criteria.check_spec import CheckSpec

CHECKS: tuple[CheckSpec, ...] = (
    driver.CHECK,
    connected.CHECK,
    backlog_trend.CHECK,
    output_trend.CHECK,
    latency_trend.CHECK,
    queue_bound.CHECK,
    answers.CHECK,
    sufficient_evidence.CHECK,
)
"""A new check is a module with its `CHECK`, and its entry here. Users' limits are in `verdict.slo_checks`."""
