"""The terminal's view of a scalability study: a line for each trial, and the progress of the current one."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console

from streamgauge.core.formatting import format_duration
from streamgauge.core.trial import TrialSnapshot
from streamgauge.report.documents.scalability import cell_line
from streamgauge.report.terminal.console import STYLES, TrialView, console, say
from streamgauge.results.scalability import ScaleCell, ScalePlan, ScaleResult

_INDENT = "  "


class ScaleView:
    """A study as a list that grows: a context manager; each trial's line replaces its progress."""

    def __init__(self, on: Console | None = None) -> None:
        self._console = on or console()
        self._progress = TrialView(self._console, _INDENT)

    def __enter__(self) -> ScaleView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.close()

    def begin(self, result: ScaleResult, plan: ScalePlan) -> None:
        """The study, then its earlier trials."""
        levels = ",".join(map(str, plan.resources))
        most = f"at most {plan.trials_max} trials, about {format_duration(plan.seconds_max)}"
        grid = f"scale over {plan.resource} {levels}   {len(plan.loads)} loads"
        say(self._console, f"{result.workload}   {grid}   {most}")
        say(self._console, f"folder   {result.folder}")
        for note in result.notes:
            say(self._console, f"note   {note}")
        for cell in result.cells:
            self.cell(result, cell)

    def progress(self, snapshot: TrialSnapshot) -> None:
        self._progress.update(snapshot)

    def cell(self, result: ScaleResult, cell: ScaleCell) -> None:
        """Adds a trial to the list."""
        self._progress.close()
        say(self._console, _INDENT, (cell_line(result, cell), STYLES.get(cell.outcome, "")))
