"""The page of a comparison: its sections, its picture, and where it can be written."""

import errno
import os
import re
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from streamgauge.core.errors import InputError, MachineError
from streamgauge.report.charts import difference as difference_chart
from streamgauge.report.documents import comparison as comparison_document
from streamgauge.report.page import render
from streamgauge.results.comparison import ComparedRun, ComparedSide, Comparison, Difference, Gate, NotTheSame
from tests.unit.helpers_refusals import problem_of


def difference(name: str, low: float | None, middle: float, high: float | None, says: str) -> Difference:
    """A made-up figure."""
    return Difference.model_validate({
        "name": name, "label": name.replace("_", " "), "unit": "us", "better": "lower", "a": 2e5,
        "b": 2e5 * (1 + middle), "difference": middle, "low": low, "high": high, "method": "runs", "says": says,
    })  # fmt: skip


def side(name: str) -> ComparedSide:
    runs = tuple(
        ComparedRun(
            run_id=f"{name}{n}", folder=f"runs/{name}{n}", engine="spark", start_time="2026-01-02", verdict="sustained"
        )
        for n in range(3)
    )
    return ComparedSide(given=name, runs=runs)


def comparison(gates: tuple[Gate, ...] = (), warnings: tuple[str, ...] = ("made <up>",)) -> Comparison:
    figures = (
        difference("event_time_p50", 0.05, 0.12, 0.19, "worse"),
        difference("event_time_p99", -0.08, 0.02, None, "no_difference"),
        difference("cpu", -0.2, -0.1, -0.01, "better"),
        Difference(
            name="memory", label="memory", unit="bytes", better="lower", a=1e9, b=None, reason="B: not recorded"
        ),
    )
    return Comparison(
        workload="identity", kind="run", confidence=0.95, a=side("base"), b=side("new"), figures=figures, gates=gates,
        not_the_same=(NotTheSame(setting="isolation", a=("shared",), b=("pinned",)),), warnings=warnings,
    )  # fmt: skip


GATES = (
    Gate(
        rule="p50 +10%", figure="event_time_p50", limit=0.1, state="unknown", sentence="the interval crosses the limit"
    ),
    Gate(rule="cpu +5%", figure="cpu", limit=0.05, state="passed", sentence="within the limit"),
)


class Tags(HTMLParser):
    """Tags left open, ids, and links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.ids += [value for value in [values.get("id")] if value]
        self.links += [value for name in ("href", "src") if (value := values.get(name))]
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check_page(text: str) -> None:
    """Every tag is closed, every id is there once, and addresses lead within the file or to reports in its folder."""
    tags = Tags(text)
    assert tags.open == []
    assert len(tags.ids) == len(set(tags.ids))
    assert {link[1:] for link in tags.links if link.startswith("#")} <= set(tags.ids)
    assert all(re.match(r"#|data:,|[\w./-]+/report\.html$", link) for link in tags.links)
    assert not re.search(r"https?://|@import|<script|url\((?!#)", text)


def rendered(of: Comparison) -> str:
    return render(comparison_document.document(of))


@pytest.mark.parametrize(
    ("engine", "measured"), [("spark", "identity on spark"), ("storm", "identity, A on spark, B on storm")]
)
def test_the_headline_names_the_engines(engine: str, measured: str) -> None:
    """Once if both sides have the same."""
    other = side("new").model_copy(update={"runs": tuple(
        run.model_copy(update={"engine": engine}) for run in side("new").runs)})  # fmt: skip
    document = comparison_document.document(comparison().model_copy(update={"b": other}))
    assert document.headline.startswith(f"{measured}: B is better in ")


def test_a_refusal_names_the_option_that_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`compare` has no --out; the same where the disk is full."""

    errors = [OSError(number, os.strerror(number)) for number in (errno.EACCES, errno.ENOSPC)]
    monkeypatch.setattr(tempfile, "mkstemp", Mock(side_effect=errors))
    page, document = tmp_path / "page.html", comparison_document.document(comparison())
    problem = problem_of(comparison_document.write_comparison, page, document)
    assert (problem.setting, problem.way_out) == ("--html", "--html NAME.html in a folder you may write to")
    with pytest.raises(MachineError, match=r"--html NAME\.html elsewhere"):
        comparison_document.write_comparison(page, document)


@pytest.mark.parametrize(("gates", "badges"), [((), []), (GATES, ["unknown"]), (GATES[1:], ["passed"])])
def test_the_worst_gate_is_the_badge(gates: tuple[Gate, ...], badges: list[str]) -> None:
    """Unknown outranks passed; without a gate there is nothing to pass."""
    assert re.findall(r'class="badge">(\w+)<', rendered(comparison(gates))) == badges


def test_settings_that_one_side_lacks_are_counted_and_what_is_the_same_is_said() -> None:
    """The page has them all; the headline names another transport, and doubts stand with what it says."""
    given = [("transport", "memory", "kafka"), ("settings.memory", "2GiB", "-"), ("settings.x", "-", "1"),
             ("settings.y", "-", "2"), ("load.seed", "1", "2")]  # fmt: skip
    differing = tuple(NotTheSame(setting=name, a=(a,), b=(b,)) for name, a, b in given)
    of = comparison().model_copy(update={"not_the_same": differing})
    facts = [fact.parts for fact in comparison_document.document(of).facts if fact.name == "not the same"]
    assert [values[0] for values in facts] == ["transport", "load.seed", "settings of one side only"]
    assert str(facts[-1][1]).startswith("A 1, B 2;")
    assert "settings.y" in rendered(of)
    assert comparison_document.same_parts(of) == ["workload", "parameters", "engine", "isolation", "machine"]
    assert comparison_document.headline(of).startswith("A and B differ in transport; B is better in 1 of 4")
    assert comparison_document.headline(of).endswith("with the warnings below")
    assert not comparison_document.headline(comparison(warnings=())).endswith("below")


def test_the_picture_is_of_intervals_only() -> None:
    """A figure without an interval is in the table alone; an open end is an arrow, and that is reported."""
    drawn: Any = difference_chart.differences(comparison().figures, GATES)
    assert "memory" not in drawn.wide
    assert "event time p99" in drawn.wide
    assert any("arrow" in note for note in drawn.notes)
    assert [key.label for key in drawn.keys][-1] == "limit of a --fail-if"
    assert difference_chart.differences(comparison().figures[3:], ()) is None


def test_a_difference_that_is_unknown_has_its_key() -> None:
    """Both ends open: the arrows are drawn, and what their colour says stands beside them."""
    one = comparison().figures[0].model_copy(update={"low": None, "high": None, "says": "unknown"})
    over_runs = one.model_copy(update={"label": "event time, mean of the runs' p99"})
    drawn: Any = difference_chart.differences([over_runs], ())
    assert [key.label for key in drawn.keys] == ["neither end is known"]
    assert "event time p99" in drawn.wide


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """Nothing is left behind."""
    with pytest.raises(InputError, match="must be in an existing folder"):
        comparison_document.write_comparison(tmp_path / "no" / "page.html", comparison_document.document(comparison()))
    assert list(tmp_path.iterdir()) == []
