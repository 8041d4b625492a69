"""The observer of a search."""

from __future__ import annotations

from typing import Protocol

from streamgauge.core.trial import TrialSnapshot
from streamgauge.results.run import Result
from streamgauge.results.search import TrialSummary


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
