"""Generated blocks of documents are up to date, and each has its place."""

import re
from pathlib import Path

import pytest

from bench.studies import tuning_profiles
from streamgauge.core.exit_codes import VERDICT_CODES, ExitCode
from streamgauge.results.labels import VERDICTS
from streamgauge.workloads.registry import names
from tests.docs.helpers_pages import PAGES, TABLES, TUNING_PROFILES, every_page
from tests.helpers_modules import ROOT


@every_page
def test_tables_are_those_of_the_code(page: Path) -> None:
    """Tables made from the code are as it would make them now; if not: python tools/docs_tables.py."""
    text = page.read_text()
    assert text == TABLES.renewed(text), "out of step with the code: run `python tools/docs_tables.py`"


def test_generated_blocks_have_what_readers_look_for() -> None:
    """Facts, because a generator agrees with what it has made, whatever that leaves out."""
    cli, files = ((ROOT / "docs" / "reference" / name).read_text() for name in ("cli.md", "result-files.md"))
    codes = re.findall(r"^\| (\d+) \|", cli, re.MULTILINE)
    assert codes == [str(int(code)) for code in sorted(ExitCode)]
    assert "From best to worst: 0, 3, 1, 4, 2, 5, 70" in cli
    assert "- `--duration` (60s; sustain: 30s; " in cli
    assert "- `latency.event_time_us.p99?`" in files


TYPED = {
    0: "holds|decided|pass|nothing", 1: "fail|crash|[Ww]rong|not sustained|above 0",
    2: "refuse|problem|without that profile|before", 3: "unknown|undecided|not known|decided",
    4: "invalid|figures|quiet", 5: "Java|disk|cannot start", 70: "defect", 130: "missing|stopped|Ctrl-C",
}  # fmt: skip
"""What a sentence with an exit code is about."""


def mistyped(text: str) -> list[str]:
    """Sentences and rows with an exit code, typed by hand, that are not about it."""
    plain = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    parts = re.split(r"(?<=[.:;])\s+|\n\n|\n(?=\|)", plain)
    about = [
        (int(found[1]), part)
        for part in parts
        for found in re.finditer(r"exit(?:s with|\s+code)(?: is)?\s+(\d+)", part)
    ]
    rows = re.findall(rf"^\| ({'|'.join(map(re.escape, VERDICTS.values()))}) \|.*\| (\d+) \|$", plain, re.MULTILINE)
    codes = {text: VERDICT_CODES[name] for name, text in VERDICTS.items()}
    return [part for code, part in about if not re.search(TYPED.get(code, "(?!)"), part)] + [
        f"{verdict}: {code}" for verdict, code in rows if codes[verdict] != int(code)
    ]


@every_page
def test_exit_codes_typed_by_hand_are_those_of_the_table(page: Path) -> None:
    assert mistyped(page.read_text()) == []


@pytest.mark.parametrize("text", [
    "| undecided | neither way | 5 |", "A missing Java is shown, with exit code 1.", "It ends with exit code 7.",
])  # fmt: skip
def test_a_mistyped_exit_code_is_found(text: str) -> None:
    assert len(mistyped(text)) == 1


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
