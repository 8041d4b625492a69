"""The document of a study, and its page, written into its folder."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from streamgauge.artifacts.atomic_write import OUT, RUN, OutputLocation, write_text
from streamgauge.artifacts.run_folder import STUDIES, StudyResult, read_study
from streamgauge.report.document_blocks import Document
from streamgauge.report.documents import breakdown, matrix, profile, scalability
from streamgauge.report.page import render
from streamgauge.results.breakdown import LatencyBreakdown
from streamgauge.results.matrix import MatrixResult
from streamgauge.results.profile import OperatorProfile
from streamgauge.results.scalability import ScaleResult

_DOCUMENTS: Mapping[type, Callable[[Any], Document]] = {
    LatencyBreakdown: breakdown.document,
    MatrixResult: matrix.document,
    OperatorProfile: profile.document,
    ScaleResult: scalability.document,
}


def document_of(study: StudyResult) -> Document:
    """The whole document of a study."""
    return _DOCUMENTS[type(study)](study)


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


def _write(folder: Path, study: StudyResult, place: OutputLocation) -> Path:
    path = folder / "report.html"
    write_text(path, render(document_of(study)), place)
    return path
