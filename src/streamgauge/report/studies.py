"""Shows the result of a study: in the terminal, and as the page of its folder."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from streamgauge.artifacts.run_folder import (
    OUT,
    RUN,
    STUDIES,
    OutputLocation,
    RunFolder,
    StudyResult,
    read_study,
    write_text,
)
from streamgauge.report.document_blocks import Document
from streamgauge.report.documents import breakdown, matrix, profile, scalability
from streamgauge.report.html.render import render
from streamgauge.report.terminal.console import console, say, show, show_result
from streamgauge.results.breakdown import LatencyBreakdown
from streamgauge.results.matrix import MatrixPlan, MatrixResult
from streamgauge.results.profile import AppliedAdvice, OperatorProfile
from streamgauge.results.scalability import ScalePlan, ScaleResult


def show_characterization(study: OperatorProfile, apply: bool = False, on: Console | None = None) -> None:
    """The whole characterization; `apply`: also the option that is now set, and why other operators have none."""
    show(profile.document(study, apply), f"{study.folder}/report.html", on=on)


def show_applied(applied: AppliedAdvice, on: Console | None = None) -> None:
    """The option that was set, the command that repeats its trial, and that trial's result."""
    to = on or console()
    change = profile.change(applied)
    say(to, "")
    say(to, f"{'applied':<12}{change}; streamgauge experiment {applied.experiment} runs it again")
    show_result(RunFolder.open(applied.run).read_result(), verbose=False, on=to)


def show_anatomy(study: LatencyBreakdown, on: Console | None = None) -> None:
    """The mean latency of each trial by stage, and each trial's verdict."""
    show(breakdown.document(study), f"{study.folder}/report.html", on=on)


def show_matrix(study: MatrixResult, on: Console | None = None) -> None:
    """How many cells were run and how they ended; each cell was shown as it ended."""
    show(matrix.document(study), f"{study.folder}/report.html", on=on)


def show_plan(plan: MatrixPlan, on: Console | None = None) -> None:
    """The cells that a matrix would run."""
    show(matrix.plan_document(plan), on=on)


def show_scale(study: ScaleResult, on: Console | None = None) -> None:
    """The capacity of each level, and the fitted laws; each trial was shown as it ended."""
    show(scalability.document(study), f"{study.folder}/report.html", on=on)


def show_scale_plan(plan: ScalePlan, on: Console | None = None) -> None:
    """How long a scalability study takes at most."""
    show(scalability.plan_document(plan), on=on)


def write_study_page(study: StudyResult) -> None:
    """The page of a study, beside its file."""
    _write(Path(study.folder), study, OUT)


def rerender_study(path: Path) -> Path | None:
    """Renders the page of a study again, from its folder or file; None if `path` is neither.

    `InputError` if the study has nothing to show yet, or another version wrote it.
    """
    folder = path.parent if path.is_file() else path
    file = next((file for file in STUDIES if (folder / file).is_file()), None)
    return None if file is None else _write(folder, read_study(folder, file), RUN)


def _document(study: StudyResult) -> Document:
    if isinstance(study, MatrixResult):
        return matrix.document(study)
    if isinstance(study, ScaleResult):
        return scalability.document(study)
    return breakdown.document(study) if isinstance(study, LatencyBreakdown) else profile.document(study)


def _write(folder: Path, study: StudyResult, place: OutputLocation) -> Path:
    path = folder / "report.html"
    write_text(path, render(_document(study)), place)
    return path
