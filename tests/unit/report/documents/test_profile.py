"""The page of a characterization: what it shows, what it needs, and what `report` and `compare` say of its folder."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamgauge.artifacts.run_folder import ANATOMY, CHARACTERIZATION, MATRIX, RunFolder, write_study
from streamgauge.core.errors import InputError
from streamgauge.report.charts import profile
from streamgauge.report.document_blocks import Document
from streamgauge.report.documents.breakdown import document as breakdown_document
from streamgauge.report.documents.matrix import document as matrix_document
from streamgauge.report.documents.profile import document
from streamgauge.report.documents.study_pages import rerender_study
from streamgauge.report.page import render
from tests.helpers_study_results import breakdown, breakdown_trial, operator_profile, profiled_operator, tuple_time
from tests.unit.helpers_refusals import problem_of
from tests.unit.report.documents.test_breakdown import FAILED
from tests.unit.report.documents.test_matrix import matrix


def test_the_picture_has_a_bar_for_each_that_was_timed() -> None:
    """And a mark for its p99, where it has one; below a microsecond in nanoseconds."""
    drawn: Any = profile.times(operator_profile().operators)
    assert [part in drawn.wide for part in ("splitter", "(us)", "lines", "filter")] == [True, True, False, False]
    assert [key.label for key in drawn.keys][-1] == "p99"
    few = [profiled_operator("splitter", "explode", tuple_time(0.2, None), "p99 needs 100 slices", None)]
    drawn = profile.times(few)
    assert "(ns)" in drawn.narrow
    assert [key.label for key in drawn.keys] == ["median"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As `characterize` leaves it, without the page."""
    write_study(tmp_path, CHARACTERIZATION, operator_profile())
    return tmp_path


@pytest.mark.parametrize(("file", "study", "shown"), [
    (ANATOMY, breakdown(breakdown_trial(), FAILED), breakdown_document),
    (MATRIX, matrix(), matrix_document),
    (CHARACTERIZATION, operator_profile(), document),
])  # fmt: skip
def test_report_makes_the_page_again(tmp_path: Path, file: str, study: Any, shown: Callable[..., Document]) -> None:
    """Of the folder, of its file, or of the page itself; of a matrix even before its first cell."""
    write_study(tmp_path, file, study)
    page = tmp_path / "report.html"
    assert [rerender_study(tmp_path / name) for name in (".", file, page.name)] == [page] * 3
    assert page.read_text() == render(shown(study))


def test_what_is_no_characterization_is_left_to_others(tmp_path: Path) -> None:
    """A run's folder, a file, or nothing at all."""
    (tmp_path / "result.json").write_text("{}")
    assert [rerender_study(path) for path in (tmp_path, tmp_path / "result.json", tmp_path / "gone")] == [None] * 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (json.dumps({"finished": False, "workload": "word_count"}), "try: streamgauge characterize word_count"),
        (operator_profile().to_json().replace('"source_only"', '"others"'), "must be of this version of streamgauge"),
        ("[]", "must be of this version of streamgauge"),
        ("{", "must be whole, and this one is damaged or cut off"),
    ],
)
def test_what_cannot_be_shown_is_refused(folder: Path, text: str, message: str) -> None:
    """Killed before its end, or of another version; nothing is written."""
    (folder / CHARACTERIZATION).write_text(text)
    with pytest.raises(InputError, match=message):
        rerender_study(folder)
    assert not (folder / "report.html").exists()


@pytest.mark.parametrize("name", [".", CHARACTERIZATION])
def test_where_a_run_is_wanted_the_refusal_says_what_this_is(folder: Path, name: str) -> None:
    """Under runs/ it does lie: what helps is the command that shows it."""
    assert problem_of(RunFolder.open, folder / name).way_out.startswith(f"streamgauge report {folder} shows it")
