"""Pages of published studies agree with their data."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from streamgauge.results.matrix import CellFigures, MatrixResult
from tests.docs.helpers_pages import TABLES
from tests.docs.test_prose import too_long
from tests.helpers_modules import ROOT, load
from tests.unit.studies.scorecard.helpers_scorecard import fast, study_of

PAGES = load(ROOT / "tools" / "research_pages.py")
NAME = "karimov_exp2_join"
COPIED = ("mkdocs.yml", "experiments/README.md", "docs/research/reproduce.md")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the program reads and writes, without data."""
    for name in COPIED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    PAGES.write(PAGES.expected(tmp_path))
    return tmp_path


def put(root: Path, name: str = NAME, **changes: Any) -> Path:
    """A study with an undecided trial at 90 % and a cell that was not sustained, added as `--add` does."""
    at_90 = CellFigures(
        verdict="undecided", decided_by="evidence, backlog_trend", planned_per_s=9e4, ingested_per_s=9e4
    )

    def of(settings: Any) -> dict[str, Any] | None:
        figures = {**fast(1e5, 2.0), "at_90_percent": at_90} if settings["engine"] == "spark" else None
        return {"verdict": "not_sustained", "decided_by": "queue_bound"} if settings["engine"] == "flink" else figures

    study = study_of("exp2_join", of, folder="runs/elsewhere/m", start_time="2026-12-01T00:00:00+00:00", **changes)
    folder = root / "runs"
    folder.mkdir(exist_ok=True)
    (folder / "matrix.json").write_text(study.to_json())
    added: Path = PAGES.add(folder, name, root)
    return added


def test_pages_are_those_of_the_data() -> None:
    """If not: python tools/research_pages.py."""
    assert PAGES.stale(PAGES.expected()) == []


def test_a_study_has_a_page_a_line_and_an_entry(checkout: Path) -> None:
    """Without the data all three go again."""
    before = {name: (checkout / name).read_text() for name in COPIED}
    assert PAGES.write(PAGES.expected(checkout)) == []
    data, page = put(checkout), checkout / "docs" / "research" / f"{NAME}.md"
    assert {file.name for file in PAGES.write(PAGES.expected(checkout))} == {page.name, "mkdocs.yml", "reproduce.md"}
    assert PAGES.stale(PAGES.expected(checkout)) == []
    assert f"]({NAME}.md), 2026-12-01" in (checkout / COPIED[2]).read_text()
    assert f'      - "Karimov et al. 2018: exp2 join": research/{NAME}.md' in (checkout / COPIED[0]).read_text()
    assert MatrixResult.model_validate_json(data.read_text()).folder == "m"
    data.unlink()
    PAGES.write(PAGES.expected(checkout))
    assert ({name: (checkout / name).read_text() for name in COPIED}, page.exists()) == (before, False)


def test_a_page_has_the_paper_both_profiles_and_every_verdict(checkout: Path) -> None:
    """In tables of their own, with command, date and machine."""
    put(checkout).with_suffix(".txt").write_text("Our join has fewer matches.\n")
    text = PAGES.research.page(checkout / "docs" / "research" / "data" / f"{NAME}.json")
    published, idiomatic, tuned, others = (part.partition("\n")[2] for part in text.split("\n## ")[1:])
    assert "|Flink|maximum|2|850&nbsp;k/s|4.3&nbsp;s|" in published
    assert ("|spark|" in idiomatic, "|spark|" in tuned, "|100&nbsp;k/s|2&nbsp;s|" in idiomatic) == (True, True, True)
    assert others.count("undecided, by `evidence`, `backlog_trend`") == 3
    assert others.count("not sustained, by `queue_bound`") == 1
    assert "850&nbsp;k/s" not in idiomatic + tuned + others
    for words in (
        "streamgauge experiment experiments/karimov/exp2_join.toml --cells 1,2,", "2026-12-01: made up, 2 CPUs",
        "Our join has fewer matches.", f"[Data](data/{NAME}.json)", "What differs: the paper gives no selectivity",
    ):  # fmt: skip
        assert words in text
    assert ("look" in text, too_long(text)) == (False, [])


def test_cells_of_another_day_replace_those_of_the_first(checkout: Path) -> None:
    """The page names both days, machines and versions; other settings are refused."""
    first = put(checkout, environment={"cpu_model": "one", "streamgauge": "0.1.0+a"})
    whole = json.loads(first.read_text())
    later = {**whole, "start_time": "2026-12-03T00:00:00+00:00", "environment": {"cpu_model": "two"},
             "cells": [{**whole["cells"][0], "sustained_per_s": 4.2e4, "reference_work_us": 3e3}]}  # fmt: skip
    (checkout / "runs" / "matrix.json").write_text(json.dumps(later))
    second = PAGES.add(checkout / "runs", NAME, checkout)
    text = PAGES.research.page(first)
    assert second.name == f"{NAME}.2.json"
    first_number, *others = [str(cell["number"]) for cell in whole["cells"]]
    assert f"on 2026-12-01, cells {', '.join(others)}: one, " in text
    assert f"on 2026-12-03, cells {first_number}: two, " in text
    for words in ("reference work 3 ms", "streamgauge 0.1.0+a", f"(data/{NAME}.2.json)", "|42&nbsp;k/s|"):
        assert words in text
    assert f"({NAME}.md), 2026-12-03" in PAGES.research.index([first])
    second.write_text(json.dumps({**later, "planned": 99}))
    with pytest.raises(ValueError, match=f"{NAME}.json: must have the planned"):
        PAGES.research.page(first)


def test_a_quick_look_is_called_a_look(checkout: Path) -> None:
    """In title, list, text and command."""
    put(checkout, quick=True, left_out=({"engine": "storm"},), no_cells={"spark-rtm": "it joins no streams"})
    PAGES.write(PAGES.expected(checkout))
    text = (checkout / "docs" / "research" / f"{NAME}.md").read_text()
    for words in (
        "exp2 join (a look)\n", "**A look**", " --quick\n", "left out of the look: storm", "no cell has spark-rtm: it",
    ):  # fmt: skip
        assert words in text
    assert "(a look)]" in (checkout / COPIED[2]).read_text()


def test_a_page_that_differs_from_its_data_is_found(checkout: Path) -> None:
    """One figure of the page, or of the data; the tables of all documents check it too."""
    data, page = put(checkout), checkout / "docs" / "research" / f"{NAME}.md"
    PAGES.write(PAGES.expected(checkout))
    whole = page.read_text()
    page.write_text(whole.replace("|100&nbsp;k/s|", "|101&nbsp;k/s|", 1))
    assert PAGES.stale(PAGES.expected(checkout)) == [page]
    page.write_text(whole)
    study = json.loads(data.read_text())
    study["cells"][0]["sustained_per_s"] = 101_000.0
    data.write_text(json.dumps(study))
    assert PAGES.stale(PAGES.expected(checkout)) == [page]
    assert "research" in TABLES.makers()


@pytest.mark.parametrize(("name", "changes", "remark"), [
    ("karimov_exp9", {}, ""), (NAME, {"environment": {"java": "/usr/lib/java"}}, ""), (NAME, {}, "word " * 300),
])  # fmt: skip
def test_data_that_cannot_be_published_are_refused(
    checkout: Path, name: str, changes: dict[str, Any], remark: str
) -> None:
    """An unknown experiment, a path of this machine, more than 300 words."""
    put(checkout, name, **changes).with_suffix(".txt").write_text(remark)
    with pytest.raises(ValueError, match=f"{name}.json: must have"):
        PAGES.expected(checkout)
