"""The interface of a latency probe: what a breakdown needs from an engine's execution mode.

A probe names the stages, the evidence for their ends, the consistency checks, and what cannot be decomposed. Everything
else is the same for every probe (`studies.latency_breakdown.command`, `studies.latency_breakdown.decompose`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from streamgauge.config.options_and_settings import Experiment
from streamgauge.core.errors import Problem
from streamgauge.studies.latency_breakdown.saved_results import SavedResults
from streamgauge.studies.latency_breakdown.stages import StageTimes, Times

if TYPE_CHECKING:
    from streamgauge.harness.testbed import TestBed
    from streamgauge.trial.trial_result import TrialResult

DOUBT_SHARE = 0.02
"""Of a latency, or of what is held against each other: more of it that does not agree, and stages are doubtful."""


@dataclass(frozen=True)
class Breakdown:
    """The decomposed latencies of a trial's results.

    `stage_times` covers the results whose timestamps are known, which may be a sample; `latencies_us` covers all
    results, and `firsts_us` the result of each batch whose event came first. `independent`: number of independent
    observations. `batches`: None without batches. `left_out`: results without some timestamp, except those outside the
    sample. `extra_fields`: fields of `Decomposition` that only this mode knows. `doubts`: why stages may be wrong.
    """

    stage_times: StageTimes
    latencies_us: Times
    firsts_us: Times
    independent: int
    batches: int | None
    left_out: int
    extra_fields: Mapping[str, Any]
    doubts: tuple[str, ...]


class ProbeInput(Protocol):
    """Evidence about one trial beyond the driver's own timestamps: collected during it, read after it."""

    @property
    def options(self) -> Mapping[str, str]:
        """Engine options that make it log what the probe reads."""

    def collect(self, test_bed: TestBed, judged: TrialResult) -> None:
        """Called after the trial, before its processes end."""

    def break_down(self, judged: TrialResult, folder: Path, results: SavedResults) -> Breakdown | str:
        """The decomposed results; or why they cannot be decomposed."""


class LatencyProbe(Protocol):
    """A probe for one execution mode of an engine."""

    @property
    def stages(self) -> Mapping[str, str]:
        """Stage to what its time is spent on, in order."""

    @property
    def interval(self) -> str | None:
        """The option that sets the batch interval; None without batches."""

    def seconds(self, interval: str) -> float:
        """The seconds of an interval as that option writes it; 0 if it is not an interval."""

    def problems(self, trial: Experiment) -> Iterator[Problem]:
        """Why a requested trial cannot be decomposed."""

    def evidence(self, trial: Experiment, private: Path) -> ProbeInput:
        """The evidence of one trial; `private` is its own folder, which is removed afterwards."""
