"""The interface of a latency probe: what a breakdown needs from an engine's execution mode.

A probe names the stages, the evidence for their ends, the consistency checks, and what cannot be decomposed.
Everything else is the same for every probe (`studies.latency_breakdown.command`,
`studies.latency_breakdown.decompose`).
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
    """The latencies of a trial's results, decomposed.

    `stage_times` are of the results whose timestamps are known, which may be a sample; `latencies_us` are of all of
    them, `firsts_us` of the one of each batch whose event came first. `independent`: how many observations all this
    stands for; `batches`: None where there are none. `left_out`: results without some timestamp, except those outside
    the sample. `extra_fields`: those of `Decomposition` that only this mode knows. `doubts`: why stages may be wrong.
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
    """Evidence about one trial beyond the driver's own timestamps: gathered beside it, read after it."""

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
        """A stage to what its time is spent on, in their order."""

    @property
    def interval(self) -> str | None:
        """The option by which its batches have an interval; None where it has no batches."""

    def seconds(self, interval: str) -> float:
        """So long an interval is that is written as that option has it; 0 where it is not."""

    def problems(self, trial: Experiment) -> Iterator[Problem]:
        """What of a trial that is asked for cannot be taken apart."""

    def evidence(self, trial: Experiment, private: Path) -> ProbeInput:
        """Of one trial; `private` is a folder of its own, which is removed after it."""
