"""What evidence is collected of, and what is judged by it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from streamgauge.core.clock import US
from streamgauge.metrics.event_latency import LatencyBySecond, SinkLatencies
from streamgauge.metrics.histogram import Histogram
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.verdict import collect_evidence as collect_module
from streamgauge.verdict.evidence import Evidence
from streamgauge.verdict.verdict import judge
from streamgauge.verification.sink_comparison import SinkDiff, VerificationResult
from tests.unit.helpers_trials import LATENCIES, RATE, RIGHT, START


def verified(negatives: int = 0, windows: int | None = 9, **faults: Any) -> VerificationResult:
    latencies = SinkLatencies(LATENCIES, LatencyBySecond(), negatives, 9, {}, windows)
    verification = RIGHT.model_copy(update=faults)
    return VerificationResult(verification, (SinkDiff("revenue", "", verification, latencies, 9, too_early=negatives),))


def with_latencies(of_second: Callable[[int], int], kind: str = "event_time") -> VerificationResult:
    """As `verified`, with a hundred results in each second of the span, and one in a second of few.

    `kind`: from the event or, as `processing_time`, from its delivery.
    """
    result = verified()
    (sink,) = result.sinks
    first = START // US
    each = {first + n: Histogram() for n in range(31)}
    for n in range(30):
        each[first + n].add(np.full(100, of_second(n)))
    each[first + 30].add(np.array([60_000_000]))
    seconds = replace(sink.latencies.seconds, **{"event_time": each, kind: each})
    return replace(result, sinks=(replace(sink, latencies=sink.latencies._replace(seconds=seconds)),))


def evidence_of(resolved: ResolvedExperiment, record: TrialRecord, by: VerificationResult | None = None) -> Evidence:
    """What is collected once the trial was verified: everything right, if nothing else is given."""
    return collect_module.collect_evidence(resolved, record, RATE, by or verified())


def judged(
    resolved: ResolvedExperiment, record: TrialRecord, by: VerificationResult | None = None
) -> tuple[str, tuple[str, ...]]:
    verdict = judge(evidence_of(resolved, record, by))
    return verdict.value, verdict.decided_by


def changing_rate(resolved: ResolvedExperiment, profile: str) -> ResolvedExperiment:
    """The experiment with another rate profile."""
    load = resolved.experiment.load.model_copy(update={"profile": profile})
    return replace(resolved, experiment=resolved.experiment.model_copy(update={"load": load}))
