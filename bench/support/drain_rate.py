"""Drain rate of an engine on its own test bed, for the comparisons of this folder."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from streamgauge.config.experiment import build
from streamgauge.core.clock import Clock
from streamgauge.core.errors import DriverError, EngineError
from streamgauge.core.trial import TrialSnapshot
from streamgauge.dataflow.lineage import needed_columns
from streamgauge.engines.spark.engine import SparkEngine
from streamgauge.harness.start_processes import TestBed, TestBedSettings
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.settings_checks import check
from streamgauge.report.terminal.console import progress
from streamgauge.studies.capacity.saturation_probe import probe_saturation
from streamgauge.studies.capacity.search import TrialOutcome, TrialRequest
from streamgauge.trial.conductor import TrialConductor, testbed_settings
from streamgauge.trial.progress import snapshots

MOST_PER_S = 30e6

Change = Callable[[ResolvedExperiment, TestBedSettings], TestBedSettings]
"""A side's change to the test bed of a run."""


def ready_for(workload: str, **options: str) -> ResolvedExperiment:
    return check(build({"workload": workload, "options": {name.replace("__", "."): v for name, v in options.items()}}))


def without_lineage(resolved: ResolvedExperiment, settings: TestBedSettings) -> TestBedSettings:
    """The same query without lineage."""
    return replace(settings, flow=resolved.flow, columns=needed_columns(resolved.flow))


def drained_per_s(
    resolved: ResolvedExperiment,
    change: Change = lambda _, settings: settings,
) -> float:
    """Events per second that a fresh, warmed-up Spark drains while there is always a backlog.

    Raises:
        StreamgaugeError: Spark or the driver failed, so there is no valid rate.
    """
    settings = change(resolved, testbed_settings(resolved))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="streamgauge-bench-")))
        testbed = stack.enter_context(TestBed(settings, SparkEngine, folder, Clock.fixed_now()))
        conductor = TrialConductor(resolved, testbed, snapshots(_show))
        conductor.start(1e6, "starting Spark")
        outcome = probe_saturation(conductor, TrialRequest(MOST_PER_S, "overload", fresh=True), to_the_end=True)
        return rate_of(outcome, testbed.engine_status().alive)


def _show(snapshot: TrialSnapshot) -> None:
    print(progress(snapshot), flush=True)


def rate_of(outcome: TrialOutcome, alive: bool) -> float:
    """The events per second of a completed drain, after which the engine is alive."""
    if outcome.verdict == "invalid":
        raise DriverError(f"while Spark was drained, {outcome.why}")
    if not alive:
        raise EngineError(f"Spark failed: {outcome.why}")
    return outcome.drained_per_s or 0.0
