"""The observers of trials and searches, and what they receive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from streamgauge.artifacts.run_folder import RunFolder, StudyResult
from streamgauge.results.run import Result
from streamgauge.results.search import TrialSummary

FlowNodes = Sequence[Mapping[str, Any]]
"""A flow in the form of `dataflow.describe.describe`."""
OnResult = Callable[[RunFolder, FlowNodes], object]
"""Called with each run folder after its result was written, and with its flow."""
OnStudy = Callable[[StudyResult], object]
"""Called with a study's findings so far, after they were written to its folder."""


def ignore(*_: object) -> None:
    """The observer that does nothing."""


@dataclass(frozen=True)
class TrialSnapshot:
    """The current figures of a trial; None if unknown.

    The latency is the median of the latest batch, because a few batches do not carry higher percentiles.
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
    """An observer of a search."""

    def header(self, text: str) -> None:
        """Receives the question and the machine, as text."""

    def trial_progress(self, snapshot: TrialSnapshot) -> None:
        """Receives the state of the current trial."""

    def trial(self, trial: TrialSummary) -> None:
        """Receives a finished trial."""

    def finish(self, result: Result) -> None:
        """Receives the result of the search."""
