"""The page of a characterization: what it shows, what it needs, and what `report` and `compare` say of its folder."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from streamgauge.artifacts.run_folder import CHARACTERIZATION, RunFolder, write_study
from streamgauge.core.errors import InputError
from streamgauge.report.charts import profile
from streamgauge.report.documents.profile import document
from streamgauge.report.documents.study_pages import rerender_study
from streamgauge.report.page import render as page_of
from streamgauge.report.terminal.studies import show_characterization
from streamgauge.results.profile import AppliedAdvice, OperatorProfile, ParallelismPlan, ParallelismPlans
from tests.helpers_study_results import operator_profile, profiled_operator, tuple_time
from tests.unit.helpers_refusals import problem_of
from tests.unit.report.documents.test_comparison import check_page


def render(profiled: OperatorProfile) -> str:
    return page_of(document(profiled))


def test_the_page_has_all_figures() -> None:
    """Each operator with its figures, the reasons, what applies, memory, methods; all of it escaped, in both colour
    schemes.
    """
    text = render(operator_profile())
    check_page(text)
    for part in (
        "prefers-color-scheme: dark",
        "made &lt;up&gt;", "100 slices of 10,000 events", "splitter<small>&lt;explode&gt;</small>", "2 us", "9.5 us",
        "9 (9-10)", "filter: not distinguishable.", "x2 2_18_2", "--option s=9", "splitter 5 (splitter)",
        "variable, low; 7 samples. Of what was &lt;sampled&gt;.",
        "8 MiB", "difference: one less the other.", "Note: a note", "of the test", "2 GiB",
    ):  # fmt: skip
        assert part in text, part
    for noise in ("100 ns", "3 us"):  # what the sign test cannot tell from only reading is no figure
        assert noise not in text


def test_a_job_that_the_thesis_does_not_have_is_not_compared_with_it() -> None:
    """No column of dashes for a user job, in the page or the terminal; the formula is reported in a clause."""
    own = profiled_operator("dear", "user_job", tuple_time(2.0, 9.5), None, 9, thesis=())
    profiled = operator_profile(operators=(own,), thesis=())
    assert [">thesis</th>" in render(each) for each in (operator_profile(), profiled)] == [True, False]
    assert "rounded up" in render(profiled)
    to = Console(width=100, file=io.StringIO(), record=True)
    show_characterization(profiled, on=to)
    text = to.export_text()
    assert " thesis\n" not in text.replace("instances  thesis", " thesis\n")
    assert "eq. 3.4 of the thesis: each operator's share" in text


def test_the_page_says_what_was_applied() -> None:
    """The setting before and after, the trial with it, and where that is; nothing where none was requested."""
    applied = AppliedAdvice(
        setting="s", before="2", after="9", verdict="not_sustained", sentence="slow <er>",
        run="runs/made/trial", experiment="runs/made/applied.toml",
    )  # fmt: skip
    text = render(operator_profile(applied=applied))
    assert (
        "Applied: <code>s 2 -&gt; 9</code>. A trial with it at 10 k events/s: not sustained (slow &lt;er&gt;)" in text
    )
    assert "runs/made/trial" in text
    assert "Applied" not in render(operator_profile())


def test_what_is_not_known_is_left_out() -> None:
    """Nothing timed, nothing advised, nothing sampled: no picture, and words in their places."""
    one = ParallelismPlan(times=1, instances=(1,))
    nothing = ParallelismPlans(formula=None, one_each=(one,), source_only=None)
    source = profiled_operator("lines", "source", None, "only reading", None)
    text = render(operator_profile(operators=(source,), ways=nothing, memory=None, thesis=()))
    assert ("<figure" in text, "x1 1" in text, "no operator was timed" in text) == (False, True, True)
    assert text.count("- (nothing is advised)") == 2


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


@pytest.mark.parametrize("name", [".", CHARACTERIZATION])
def test_report_makes_the_page_again(folder: Path, name: str) -> None:
    """Of the folder, or of its file."""
    assert rerender_study(folder / name) == folder / "report.html"
    assert (folder / "report.html").read_text() == render(operator_profile())
    assert rerender_study(folder / "report.html") == folder / "report.html"


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


def test_it_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """A folder that is gone is reported."""
    with pytest.raises(InputError, match="must be in an existing folder"):
        write_study(tmp_path / "gone", CHARACTERIZATION, operator_profile())
