"""Performs one cell of a matrix with the command of its experiment, and takes the figures of its row."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgauge.artifacts.run_folder import RunFolder, disk
from streamgauge.config.options_and_settings import Experiment
from streamgauge.core.errors import MachineError, StreamgaugeError
from streamgauge.core.trial import TrialSnapshot
from streamgauge.results.breakdown import LatencyBreakdown
from streamgauge.results.matrix import CellFigures
from streamgauge.results.run import Result
from streamgauge.results.search import TrialSummary
from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.capacity.command import sustain
from streamgauge.studies.latency_breakdown.command import anatomy
from streamgauge.studies.operator_profile.command import characterize
from streamgauge.trial.observers import OnResult, OnStudy, ignore
from streamgauge.trial.progress import Show, snapshots
from streamgauge.trial.run import run_single

_WORST: tuple[VerdictValue, ...] = ("interrupted", "invalid", "undecided", "not_sustained", "sustained")


@dataclass(frozen=True)
class Observers:
    """What observes a cell: its progress, its run folders, and its study's findings."""

    show: Show = ignore
    on_result: OnResult = ignore
    on_study: OnStudy = ignore


def perform(experiment: Experiment, observers: Observers) -> CellFigures:
    """Runs a cell to its end. A cell that could not start is invalid, with the reason, and the matrix goes on.

    Raises:
        MachineError: this machine lacks something, as it would in the other cells.
    """
    try:
        return _COMMANDS[experiment.command](experiment, observers)
    except MachineError:
        raise
    except StreamgaugeError as error:
        return CellFigures(verdict="invalid", sentence=" ".join(str(error).split()), folder=error.folder)


def perform_within(study: Path, number: int, experiment: Experiment, observers: Observers) -> CellFigures:
    """Runs a cell in `cells/NNN` of a study's folder. Ctrl-C makes it interrupted; it may then have figures so far."""
    place, started = study / "cells" / f"{number:03d}", time.monotonic()
    with disk(place):
        place.mkdir(parents=True, exist_ok=True)
    try:
        figures = perform(experiment.model_copy(update={"out": str(place)}), observers)
    except KeyboardInterrupt:
        figures = CellFigures(verdict="interrupted", sentence="stopped before its end")
    report = Path(figures.folder, "report.html")
    update = {
        "seconds": round(time.monotonic() - started, 1),
        "folder": os.path.relpath(figures.folder, study) if figures.folder else "",
        "report": os.path.relpath(report, study) if figures.folder and report.exists() else "",
    }
    return figures.model_copy(update=update)


def figures_of(result: Result) -> CellFigures:
    """The figures of a run, or of a search's best trial."""
    rate, latency, driver = result.rate, result.latency, result.driver
    sut = next((process for process in result.processes if process.role == "sut"), None)
    compared = result.verification if result.verification is not None and result.verification.judged else None

    def latencies(kind: str, *statistics: str) -> dict[str, Any]:
        of = getattr(latency, f"{kind}_us")
        return {f"{kind}_{name}_us": getattr(of, name, None) for name in statistics}

    return CellFigures(
        verdict=result.verdict.value,
        sentence=result.verdict.sentence,
        decided_by=", ".join(result.verdict.decided_by),
        folder=result.folder,
        sustained_per_s=result.search.sustained_per_s if result.search else None,
        planned_per_s=rate.planned_per_s if rate else None,
        offered_per_s=rate.offered_per_s if rate else None,
        ingested_per_s=rate.ingested_per_s if rate else None,
        achieved_per_s=rate.achieved_per_s if rate else None,
        backlog_max=result.backlog.max if result.backlog else None,
        faults=compared.fault_count if compared else None,
        sut_cpu_percent=sut.cpu_percent_mean if sut else None,
        sut_memory_bytes=sut.memory_bytes_max if sut else None,
        driver_cpu_percent=driver.cpu_percent if driver else None,
        driver_memory_bytes=driver.memory_bytes_max if driver else None,
        others_cpu_percent=result.others_cpu_percent,
        reference_work_us=result.reference_work_us,
        **latencies("event_time", "mean", "p50", "p90", "p99", "max"),
        **latencies("processing_time", "p50", "p99"),
        **latencies("until_counted", "p50", "p99"),
    )


class _SearchProgress:
    """Observes a search within a matrix: only its progress is shown."""

    def __init__(self, show: Show) -> None:
        self._show = show

    def header(self, text: str) -> None:
        """Ignored: the matrix has a header of its own."""

    def trial_progress(self, snapshot: TrialSnapshot) -> None:
        self._show(snapshot)

    def trial(self, trial: TrialSummary) -> None:
        """Ignored: the cell's report has the trials."""

    def finish(self, result: Result) -> None:
        """Ignored: the cell has a row."""


def _run(experiment: Experiment, observers: Observers) -> CellFigures:
    return figures_of(run_single(experiment, snapshots(observers.show), observers.on_result))


def _sustain(experiment: Experiment, observers: Observers) -> CellFigures:
    return figures_of(sustain(experiment, _SearchProgress(observers.show), observers.on_result))


def _anatomy(experiment: Experiment, observers: Observers) -> CellFigures:
    return _figures_of_breakdown(anatomy(experiment, observers.show, observers.on_study, observers.on_result))


def _figures_of_breakdown(breakdown: LatencyBreakdown) -> CellFigures:
    """The figures of its trial; of several trials only the worst verdict."""
    if len(breakdown.trials) == 1 and breakdown.trials[0].run:
        figures = figures_of(RunFolder.open(breakdown.trials[0].run).read_result())
    else:
        worst = min(breakdown.trials, key=lambda trial: _WORST.index(trial.verdict))
        figures = CellFigures(verdict=worst.verdict, sentence=worst.sentence)
    return figures.model_copy(update={"folder": breakdown.folder})


def _characterize(experiment: Experiment, observers: Observers) -> CellFigures:
    def show(step: str) -> None:
        observers.show(TrialSnapshot("start", 0.0, 0.0, note=step))

    return CellFigures(folder=characterize(experiment, show, observers.on_study).folder)


_COMMANDS: Mapping[str, Callable[[Experiment, Observers], CellFigures]] = {
    "run": _run,
    "sustain": _sustain,
    "anatomy": _anatomy,
    "characterize": _characterize,
}
