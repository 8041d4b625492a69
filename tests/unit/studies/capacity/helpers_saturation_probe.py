"""A made-up engine that the overload trial climbs."""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.core.clock import US
from streamgauge.core.trial import TrialSpans
from streamgauge.engines.spark.options import NEAR_LIMIT
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.studies.capacity import saturation_probe
from streamgauge.studies.capacity.search import TrialOutcome, TrialRequest
from streamgauge.transports.spi import Delivery

START = 1_700_000_000 * US
PLAN: Any = SimpleNamespace(start_us=START, streams=())
Batches = list[tuple[float, int]]
"""(second of its first delivery, events) of each batch."""


def done_of(batches: Batches, seconds: float = 8.0, query: str = "", **more: Any) -> TrialRecord:
    """A step that lasted `seconds`, of which the later half is measured; the engine held the driver back."""
    parts = [
        Delivery("purchases", START, START + US, events, START + round(when * US), number, False, query)
        for number, (when, events) in enumerate(batches)
    ]
    end = START + round(seconds * US)
    spans = TrialSpans(START, START + round(seconds * US / 2), end, end)
    return TrialRecord(TrialLog(PLAN, deliveries=[parts]), spans, deadline_us=end, **{"held_back": True, **more})


def drained_at(rate_per_s: float, **more: Any) -> TrialRecord:
    """A step in which a batch a second took so much."""
    return done_of([(float(second), round(rate_per_s)) for second in range(8)], **more)


class Stairs:
    """Stands for a test bed: records the steps, and lets an engine that drains `capacity_per_s` climb them.

    `last` are failures of the first step above the capacity, from step `last_from` on; `changed` may change a record.
    """

    heap_per_s, closing_s, interval_s, unseen_s = math.inf, 0.0, 0.0, 0.0

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capacity_per_s: float, **last: Any) -> None:
        self.steps: list[tuple[float, float]] = []
        self.paces: list[float] = []
        self.drains, self.now_s, self.capacity_per_s, self.last, self.last_from = 0, 0.0, capacity_per_s, last, 0
        self.changed: Callable[[TrialRecord], TrialRecord] = lambda record: record
        monkeypatch.setattr(saturation_probe, "_step", self.step)
        monkeypatch.setattr(saturation_probe, "most_within_heap", lambda _: self.heap_per_s)
        monkeypatch.setattr(saturation_probe, "closing_s", lambda _: self.closing_s)
        monkeypatch.setattr(saturation_probe, "time", SimpleNamespace(monotonic=lambda: self.now_s))

    def step(self, conductor: Any, rate_per_s: float, seconds: float, pace_s: float) -> TrialRecord:
        self.steps.append((rate_per_s, seconds))
        self.paces.append(pace_s)
        self.now_s += seconds
        behind = rate_per_s > self.capacity_per_s and len(self.steps) >= self.last_from
        return self.changed(drained_at(min(rate_per_s, self.capacity_per_s), **(self.last if behind else {})))

    @property
    def rates(self) -> list[float]:
        return [rate for rate, _ in self.steps]

    def climb(self, most_per_s: float, to_the_end: bool = False) -> TrialOutcome:
        near_limit = SimpleNamespace(near_limit=NEAR_LIMIT)
        resolved = SimpleNamespace(interval_s=self.interval_s, engine=near_limit, unseen_s=self.unseen_s)
        conductor: Any = SimpleNamespace(resolved=resolved, drain=self.drain)
        request = TrialRequest(most_per_s, "overload", fresh=True)
        return saturation_probe.probe_saturation(conductor, request, to_the_end)

    def drain(self, timeout_s: float) -> None:
        self.drains += 1
