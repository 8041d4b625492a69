"""verdict/criteria/backlog_trend.py: a system that read almost nothing of the load."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from streamgauge.core.clock import US
from streamgauge.verdict.collect_evidence import ingested_share
from streamgauge.verdict.evidence import Samples
from streamgauge.verdict.verdict import judge
from tests.unit.verdict.helpers_evidence import RATE, evidence

pytestmark = pytest.mark.usefixtures("quick_draws")
CUT_BY_MEMORY = {"bound_cut_by_memory": True, "bound_s": 7.6}
LATE_GENERATORS = {"offered_per_s": np.full(60, RATE / 2), "schedule_delay_us_p99": 5e6}


@pytest.mark.parametrize("beside", [CUT_BY_MEMORY, LATE_GENERATORS, {"background_share": 0.85}, {"batches_ever": 0}])
def test_a_system_that_takes_a_hundredth_of_the_load_is_not_sustained(beside: dict[str, Any]) -> None:
    """Neither a small queue, nor late generators, nor what others used of the machine make a hundred of one."""
    verdict = judge(evidence(ingested_share=0.01, backlog=(Samples.from_values([], []),), **beside))
    assert (verdict.value, verdict.decided_by) == ("not_sustained", ("backlog_trend",))
    assert "the system read only 1.00% of the offered events" in verdict.sentence


@pytest.mark.parametrize(
    ("beside", "value"),
    [
        ({"ingested_share": 0.25, "bound_cut_by_memory": True, "bound_s": 7.6}, "invalid"),
        ({"ingested_share": 0.1, "bound_cut_by_memory": True, "bound_s": 7.6, "background_share": 0.85}, "invalid"),
        ({"ingested_share": 0.01, "driver_reason": "generator 0 ended"}, "invalid"),
        ({"ingested_share": 0.01, "delivery_share": 0.6}, "invalid"),
        ({"ingested_share": 0.01, "interrupted": True}, "interrupted"),
    ],
)
def test_a_system_that_may_have_been_kept_from_more_is_not_called_far_behind(
    beside: dict[str, Any], value: str
) -> None:
    """It took a fifth or more of what was left of the machine, or the driver failed, or was what it waited for."""
    assert judge(evidence(**beside)).value == value


@pytest.mark.parametrize(
    ("changes", "share"),
    [
        ({}, 0.01),
        ({"measured_from_s": 50}, 1.0),
        ({"measured_from_s": 50, "earlier_trials": True}, 0.01),
        ({"interval_s": 15.0}, 1.0),
        ({"offered": 0}, 1.0),
    ],
)
def test_what_a_system_took_is_known_once_it_had_time_to_take_it(changes: dict[str, Any], share: float) -> None:
    """Forty seconds: not of a fresh engine in its warm-up, nor of one whose batches begin 15 s apart."""
    known = {"measured_from_s": 5, "earlier_trials": False, "interval_s": 1.0, "offered": 1000} | changes
    trial_log = SimpleNamespace(
        offered_events=lambda: known["offered"], running=SimpleNamespace(taken_events=lambda: known["offered"] // 100)
    )
    spans = SimpleNamespace(start_us=0, measured_from_us=known["measured_from_s"] * US)
    done: Any = SimpleNamespace(
        trial_log=trial_log, spans=spans, earlier_trials=known["earlier_trials"], offered_until=lambda: 40 * US
    )
    assert ingested_share(done, known["interval_s"]) == share
