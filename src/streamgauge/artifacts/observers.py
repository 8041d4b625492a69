"""What a trial or a search reports while it goes on, and to whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from streamgauge.artifacts.run_folder import RunFolder, StudyResult
from streamgauge.results.run import Result
from streamgauge.results.search import TrialSummary

FlowNodes = Sequence[Mapping[str, Any]]
"""A flow as `dataflow.describe.describe` gives it."""
OnResult = Callable[[RunFolder, FlowNodes], object]
"""Called with each run folder whose result has been written, and with the flow that was run."""
OnStudy = Callable[[StudyResult], object]
"""Called with a study's findings as far as they go, whenever they have been written to its folder."""


def ignore(*_: object) -> None:
    """For whoever does not want to hear of results."""


@dataclass(frozen=True)
class TrialSnapshot:
    """How a trial stands; None where a figure is not known yet. Latency is of the last seconds' results: the median
    of the batch that was latest, as a few batches carry no more.
    """

    phase: str
    elapsed_s: float
    planned_s: float
    offered_per_s: float | None = None
    ingested_per_s: float | None = None
    backlog_events: int | None = None
    event_time_p50_us: float | None = None
    note: str = ""


class SearchObserver(Protocol):
    """Whoever follows a search."""

    def header(self, text: str) -> None:
        """What is asked, on what machine."""

    def trial_progress(self, snapshot: TrialSnapshot) -> None:
        """How the trial that runs stands."""

    def trial(self, trial: TrialSummary) -> None:
        """A trial that has ended."""

    def finish(self, result: Result) -> None:
        """The search's answer."""
