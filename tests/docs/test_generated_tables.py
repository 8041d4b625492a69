"""Generated blocks of documents are up to date, and each has its place."""

import re
from pathlib import Path

from bench.studies import tuning_profiles
from streamgauge.workloads.registry import names
from tests.docs.helpers_pages import PAGES, TABLES, TUNING_PROFILES, every_page
from tests.helpers_modules import ROOT


@every_page
def test_tables_are_those_of_the_code(page: Path) -> None:
    """Tables made from the code are as it would make them now; if not: python tools/docs_tables.py."""
    text = page.read_text()
    assert text == TABLES.renewed(text), "out of step with the code: run `python tools/docs_tables.py`"


def test_a_stale_table_is_found() -> None:
    """A table that differs from the code's is made anew, and the text around it stays."""
    text = "before\n<!-- generated: workloads -->\nold\n<!-- end of workloads -->\nafter"
    assert re.fullmatch(r"before\n.*`identity`.*\nafter", TABLES.renewed(text), re.DOTALL)


def test_every_table_has_its_place() -> None:
    """Every workload, engine, option, command and check is documented: each table stands on exactly one page."""
    pages = "\n".join(page.read_text() for page in PAGES)
    assert {name: pages.count(f"<!-- generated: {name} -->") for name in TABLES.makers()} == dict.fromkeys(
        TABLES.makers(), 1
    )


def test_the_study_of_tuning_profiles_writes_the_columns_that_its_table_reads() -> None:
    assert tuning_profiles.HEAD == TUNING_PROFILES.NEEDED


def test_every_workload_has_its_section() -> None:
    """The pages of the families have a section for each workload and for no other, each with its right answer."""
    pages = sorted((ROOT / "docs" / "reference" / "workloads").glob("*.md"))
    texts = [page.read_text() for page in pages if page.stem != "index"]
    sections = [section for text in texts for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]]
    titled = {section.split("\n", 1)[0]: section for section in sections}
    assert len(titled) == len(sections)
    assert set(titled) == set(names())
    assert [name for name, section in titled.items() if "**Right answer.**" not in section] == []
