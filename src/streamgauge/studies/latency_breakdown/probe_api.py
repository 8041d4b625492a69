"""What an anatomy has to know of the way in which an engine streams: each fills this, in a file of its own.

Which stages a result's way has, from which evidence their ends are known, what is held against what, and what cannot be
taken apart. All the rest is the same for all (`studies.latency_breakdown.command`,
`studies.latency_breakdown.decompose`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from streamgauge.config.experiment import Experiment
from streamgauge.core.errors import Problem
from streamgauge.studies.latency_breakdown.saved_results import SavedResults
from streamgauge.studies.latency_breakdown.stages import StageTimes, Times

if TYPE_CHECKING:
    from streamgauge.harness.testbed import TestBed
    from streamgauge.trial.conductor import TrialResult

DOUBT_SHARE = 0.02
"""Of a latency, or of what is held against each other: more of it that does not agree, and stages are doubtful."""


@dataclass(frozen=True)
class Breakdown:
    """A trial's results taken apart.

    `ways` are those of the results whose moments are known, which may be a sample; `latencies_us` are of all of them,
    `firsts_us` of the one of each batch whose event came first. `independent`: how many observations all this stands
    for; `batches`: None where there are none. `left_out`: results of which some moment is not known, but for those that
    are in no sample. `more`: what this mode alone knows, by the names of `EXTRA_FIELDS`. `doubts`: why stages may be
    wrong.
    """

    ways: StageTimes
    latencies_us: Times
    firsts_us: Times
    independent: int
    batches: int | None
    left_out: int
    more: Mapping[str, Any]
    doubts: tuple[str, ...]


EXTRA_FIELDS = (
    "contradicting_batches", "contradicting_results", "contradiction_us_max", "tasks_share", "commit_after_us",
)  # fmt: skip
"""What some modes know of a trial and others do not."""


class ProbeInput(Protocol):
    """What is known of one trial besides the driver's own stamps: gathered beside it, and read after it."""

    @property
    def options(self) -> Mapping[str, str]:
        """Options of the engine's by which it writes down what is wanted."""

    def look(self, rig: TestBed, judged: TrialResult) -> None:
        """Called after the trial, while everything still stands."""

    def taken(self, judged: TrialResult, folder: Path, results: SavedResults) -> Breakdown | str:
        """The results' ways; or why they cannot be told."""


class LatencyProbe(Protocol):
    """One way in which an engine streams."""

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
