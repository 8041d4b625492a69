"""The page of a study, written into its folder."""

from pathlib import Path

from streamgauge.artifacts.run_folder import OUT, RUN, STUDIES, OutputLocation, StudyResult, read_study, write_text
from streamgauge.report.document_blocks import Document
from streamgauge.report.documents import breakdown, matrix, profile, scalability
from streamgauge.report.page import render
from streamgauge.results.breakdown import LatencyBreakdown
from streamgauge.results.matrix import MatrixResult
from streamgauge.results.scalability import ScaleResult


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
