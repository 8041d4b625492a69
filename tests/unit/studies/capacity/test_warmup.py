"""studies/capacity/saturation_probe.py: what a fresh engine gets before it is judged."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.config.options_and_settings import build
from streamgauge.core.clock import US
from streamgauge.core.trial import TrialSpans
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.validate import check
from streamgauge.studies.capacity import saturation_probe
from streamgauge.trial import conductor
from streamgauge.trial.conductor import TrialConductor
from streamgauge.trial.phases import TrialPolicy

RATE_PER_S = 1e5


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_fresh_engine_gets_a_rising_load_and_nothing_of_it_is_judged(
    monkeypatch: pytest.MonkeyPatch, interrupted: bool
) -> None:
    """For the warm-up of a fresh engine, without a span, and with no more waiting than in an overload trial."""
    requested: dict[str, Any] = {}

    class Conductor:
        def __init__(
            self, testbed: Any, plan: Any, spans: TrialSpans, chunk_us: int, policy: TrialPolicy, _: Any
        ) -> None:
            requested.update(plan=plan, spans=spans, drain_s=policy.drain_s, pace_us=policy.pace_us)

        def conduct(self) -> TrialRecord:
            return TrialRecord(TrialLog(requested["plan"]), requested["spans"], interrupted=interrupted)

    monkeypatch.setattr(conductor, "PhaseRunner", Conductor)
    resolved = check(build({"workload": "filter", "load": {"warmup": "20s"}}))
    testbed: Any = SimpleNamespace(clock=SimpleNamespace(now_us=lambda: 10**15), reached_us=0)
    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            saturation_probe.warm_up(TrialConductor(resolved, testbed), RATE_PER_S)
        return
    spans = saturation_probe.warm_up(TrialConductor(resolved, testbed), RATE_PER_S).spans
    assert spans.measured_from_us == spans.measured_to_us == spans.end_us == spans.start_us + 20 * US
    first, last = (
        requested["plan"].planned_events(spans.start_us + s * US, spans.start_us + (s + 1) * US) for s in (0, 19)
    )
    assert first < 0.2 * RATE_PER_S < last == pytest.approx(RATE_PER_S, rel=0.01)
    assert (requested["drain_s"], requested["pace_us"]) == (0.0, 3 * US)
