"""The document of a study or of a plan, and a study's page, written into its folder."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from streamgauge.artifacts.atomic_write import OUT, RUN, OutputLocation, write_text
from streamgauge.artifacts.run_folder import STUDIES, StudyResult, read_study
from streamgauge.report.document_blocks import Document
from streamgauge.report.documents import breakdown, dry_run, matrix, profile, scalability, sweep
from streamgauge.report.page import render
from streamgauge.results.breakdown import LatencyBreakdown
from streamgauge.results.dry_run import ScaleTrialPlan, TrialPlan
from streamgauge.results.matrix import MatrixPlan, MatrixResult
from streamgauge.results.profile import OperatorProfile
from streamgauge.results.scalability import ScaleResult

Plan = MatrixPlan | TrialPlan
_DOCUMENTS: Mapping[type, Callable[[Any], Document]] = {
    LatencyBreakdown: breakdown.document,
    MatrixResult: lambda result: (matrix.document if result.sweep is None else sweep.document)(result),
    OperatorProfile: profile.document,
    ScaleResult: scalability.document,
    MatrixPlan: matrix.plan_document,
    ScaleTrialPlan: dry_run.plan_document,
    TrialPlan: dry_run.plan_document,
}


def document_of(study: StudyResult | Plan) -> Document:
    """The whole document of a study, or of what a command would run."""
    return _DOCUMENTS[type(study)](study)


def write_study_page(study: StudyResult, folder: Path | None = None, place: OutputLocation = OUT) -> Path:
    """The page of a study, beside its file; `folder`: where that is, if it was moved."""
    path = (folder or Path(study.folder)) / "report.html"
    write_text(path, render(document_of(study)), place)
    return path


def rerender_study(path: Path) -> Path | None:
    """Renders the page of a study again, from its folder or file; None if `path` is neither.

    `InputError` if the study has nothing to show yet, or another version wrote it.
    """
    folder = path.parent if path.is_file() else path
    file = next((file for file in STUDIES if (folder / file).is_file()), None)
    return None if file is None else write_study_page(read_study(folder, file), folder, RUN)
