"""The terminal's view of a matrix: a line for each cell, and the progress of the current one."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console

from streamgauge.core.formatting import format_duration
from streamgauge.core.trial import TrialSnapshot
from streamgauge.report.documents.matrix import cell_line
from streamgauge.report.terminal.console import STYLES, TrialView, console, say
from streamgauge.results.matrix import MatrixCell, MatrixResult

_INDENT = "  "


class MatrixView:
    """A matrix as a list that grows: a context manager; each cell's line replaces its progress."""

    def __init__(self, on: Console | None = None) -> None:
        self._console = on or console()
        self._progress = TrialView(self._console, _INDENT)
        self._planned = 0

    def __enter__(self) -> MatrixView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.close()

    def begin(self, result: MatrixResult, to_run: int) -> None:
        """The matrix, then its earlier cells."""
        self._planned = result.planned
        varied = f"   varied: {', '.join(result.varied)}" if result.varied else ""
        cells = f"{to_run} of {result.planned} cells"
        say(self._console, f"{result.workload}   matrix of {result.command}, {cells}{varied}")
        say(self._console, f"folder   {result.folder}")
        for cell in result.cells:
            self.cell(cell)
        if result.cells:
            seconds = sum(cell.seconds for cell in result.cells)
            many = f"{len(result.cells)} earlier cell{'s' * (len(result.cells) > 1)}"
            say(self._console, f"{_INDENT}{many}, {format_duration(seconds)}")

    def progress(self, snapshot: TrialSnapshot) -> None:
        self._progress.update(snapshot)

    def cell(self, cell: MatrixCell) -> None:
        """Adds a cell to the list."""
        self._progress.close()
        say(self._console, _INDENT, (cell_line(cell, self._planned), STYLES.get(cell.verdict or "", "")))
