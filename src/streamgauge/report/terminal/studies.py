"""The terminal's view of studies: a growing list of cells with the progress of the current one, and the result."""

from streamgauge.artifacts.run_folder import RunFolder, StudyResult
from streamgauge.core.formatting import format_duration
from streamgauge.core.output import print_answer
from streamgauge.report.documents import matrix, profile, scalability, sweep
from streamgauge.report.documents.study_pages import Plan, document_of
from streamgauge.report.terminal.console import STYLES, TrialView, page_in, show, show_result
from streamgauge.report.terminal.lines import say
from streamgauge.results.matrix import MatrixCell, MatrixResult
from streamgauge.results.profile import AppliedAdvice, OperatorProfile
from streamgauge.results.scalability import ScaleCell, ScalePlan, ScaleResult

_INDENT = "  "


class _GrowingList(TrialView):
    """A list of cells, one line each, which replaces the progress of its cell. A context manager."""

    _indent = _INDENT
    progress = TrialView.update

    def _add(self, line: str, style: str) -> None:
        self.close()
        say(self._console, _INDENT, (line, style))


class MatrixView(_GrowingList):
    """A matrix, with a line for each cell."""

    def begin(self, result: MatrixResult, to_run: int) -> None:
        """The matrix, then its earlier cells."""
        self._planned = result.planned
        varied = f"   varied: {', '.join(result.varied)}" if result.varied else ""
        cells = f"{to_run} of {result.planned} cells"
        what = f"matrix of {result.command}" if result.sweep is None else f"sweep: {sweep.scale_text(result.sweep)}"
        say(self._console, f"{result.workload}   {what}, {cells}{varied}")
        say(self._console, f"folder   {result.folder}")
        for cell in result.cells:
            self.cell(cell)
        if result.cells:
            seconds = sum(cell.seconds for cell in result.cells)
            many = f"{len(result.cells)} earlier cell{'s' * (len(result.cells) > 1)}"
            say(self._console, f"{_INDENT}{many}, {format_duration(seconds)}")

    def cell(self, cell: MatrixCell) -> None:
        """Adds a cell to the list."""
        self._add(matrix.cell_line(cell, self._planned), STYLES.get(cell.verdict or "", ""))


class ScaleView(_GrowingList):
    """A scalability study, with a line for each trial."""

    def begin(self, result: ScaleResult, plan: ScalePlan) -> None:
        """The study, then its earlier trials."""
        levels = ",".join(map(str, plan.resources))
        most = f"at most {plan.trials_max} trials, about {format_duration(plan.seconds)}"
        grid = f"scale over {plan.resource} {levels}   {len(plan.loads)} loads"
        say(self._console, f"{result.workload}   {grid}   {most}")
        say(self._console, f"folder   {result.folder}")
        for note in result.notes:
            say(self._console, f"note   {note}")
        for cell in result.cells:
            self.cell(result, cell)

    def cell(self, result: ScaleResult, cell: ScaleCell) -> None:
        """Adds a trial to the list."""
        self._add(scalability.cell_line(result, cell), STYLES.get(cell.outcome, ""))


def show_study(study: StudyResult) -> None:
    """A study that ended. Cells and trials of a growing list were shown as they ended."""
    show(document_of(study), page_in(study.folder))


def show_characterization(study: OperatorProfile, apply: bool) -> None:
    """The whole characterization; `apply`: also the option that is now set, and why other operators have none."""
    show(profile.document(study, apply), page_in(study.folder))


def show_applied(applied: AppliedAdvice) -> None:
    """The option that was set, the command that repeats its trial, and that trial's result."""
    again = f"streamgauge experiment {applied.experiment} runs it again"
    print_answer(f"\n{'applied':<12}{profile.change(applied)}; {again}")
    show_result(RunFolder.open(applied.run).read_result(), verbose=False)


def show_plan(plan: Plan) -> None:
    """What a command would run, and how long that takes."""
    show(document_of(plan))
