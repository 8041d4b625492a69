"""Short trials on a test bed with a real Spark, and what every one of them must hold."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import build
from streamgauge.conformance.trials import DRAIN_S
from streamgauge.core.engine_reports import OperatorCounts, OperatorRows
from streamgauge.core.trial import TrialSpans
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.harness.start_processes import TestBed
from streamgauge.metrics import operators
from streamgauge.metrics.trial_log import Batch
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.settings_checks import check
from streamgauge.system.child_processes import wait_until
from streamgauge.trial.events import Observer
from streamgauge.trial.progress import Show
from streamgauge.trial.trial_result import TrialResult
from tests.helpers_broker_trials import check_events, running, trial

WARM_UP = "4s"


@dataclass
class Case:
    """A workload on a started test bed."""

    resolved: ResolvedExperiment
    testbed: TestBed
    folder: RunFolder
    counted: list[OperatorRows] = field(default_factory=list)
    """What Spark counted in all batches so far."""

    def __post_init__(self) -> None:
        engine, rows = self.testbed.engine, self.testbed.engine.operator_row_counts

        def count(*args: Any, **kwargs: Any) -> OperatorCounts:
            counts = rows(*args, **kwargs)
            self.counted += counts.rows
            return counts

        engine.operator_row_counts = count  # type: ignore[method-assign]

    def trial(self, number: int, on_progress: Show = lambda _: None, observe: Observer | None = None) -> TrialResult:
        return trial(self.resolved, self.testbed, self.folder, number, on_progress, observe)

    def counted_with(self, operators: Sequence[str]) -> dict[str, dict[Batch, int]]:
        """Rows of each operator in each batch, as soon as Spark has told of a batch with all of these, which it may do
        after its results have come.
        """
        found: dict[str, dict[Batch, int]] = defaultdict(dict)

        def known() -> bool:
            self.testbed.engine.operator_row_counts(DRAIN_S)
            for row in self.counted:
                found[row.operator][row.query, row.batch] = row.rows
            return bool(set.intersection(*(set(found[name]) for name in operators)))

        assert wait_until(known, DRAIN_S)
        return found


@contextmanager
def started(
    root: Path,
    workload: str,
    rate: str,
    parameters: dict[str, Any],
    options: dict[str, str],
    warm_up: str = WARM_UP,
    tuning: str = "tuned",
) -> Iterator[Case]:
    """Generators, recorder and Spark, running; ended at the end."""
    # No duration: one as short as these trials is refused, since it could not be judged.
    # While Spark is restarted nothing is read, however long that takes: the queue must not fill meanwhile.
    load = {"rate": rate, "warmup": warm_up, "generators": 2, "bound": "5m"}
    values = {"workload": workload, "parameters": parameters, "options": {"probes": "on", **options}, "load": load,
              "out": str(root), "tuning": tuning}  # fmt: skip
    resolved = check(build(values))
    folder = RunFolder.create(root, workload, "spark", datetime.now(UTC))
    with running(resolved, folder.path) as testbed:
        yield Case(resolved, testbed, folder)


def state_of(judged: TrialResult, check_name: str) -> str:
    return next(one.state for one in judged.result.verdict.checks if one.name == check_name)


UPDATES = ("counts", "count", "status", "countries", "cities", "visits", "uniques")
"""Sinks of updates."""


def check_path(judged: TrialResult) -> None:
    """The connection held, and every event went all the way once."""
    assert state_of(judged, "connected") == "ok"
    assert {one.lost for one in judged.result.operators} <= {0, None}
    check_ways(judged)


def lost_by_count(running: Case, judged: TrialResult) -> set[int | None]:
    """What each operator lost by Spark's count and the driver's, over all batches that Spark told of: where it starts
    slowly, none ends in so short a span, and the last one may still be ending when its results have come.
    """
    known = operators.operator_row_counts(running.testbed.settings.flow, running.counted, judged.record.trial_log)
    known = replace(known, ends={batch: end for batch, end in known.ends.items() if batch in known.engine})
    ever = TrialSpans(0, 0, FAR_FUTURE_US, FAR_FUTURE_US)
    return {one.lost for one in operators.summaries(known, judged.record.trial_log, ever)}


def check_ways(judged: TrialResult) -> None:
    """Latencies are sensible, and every event went all the way."""
    assert state_of(judged, "answers") == "ok"
    assert judged.verified is not None
    for sink in judged.verified.sinks:
        latency = sink.latencies.latencies.event_time_us
        assert latency is not None
        # An update counts from its batch's last event: of few large batches, none of those may lie in the span.
        assert latency.count > 0 or sink.name in UPDATES
        assert latency.min is None or latency.min > 0
    assert judged.verified.negatives == 0
    check_events(judged)
