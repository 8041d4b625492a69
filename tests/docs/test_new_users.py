"""What a new user looks for: a published table to reproduce, and exit codes that every page and the code agree on."""

import re
from pathlib import Path

from streamgauge.core.errors import InputError, MachineError
from tests.docs.helpers_pages import RESULTS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
JAVA_MISSING = re.compile(r"^(?=.*\bJava\b)(?=.*\bexit code\b).*$", re.MULTILINE)


def codes_beside_java(text: str) -> set[int]:
    """The exit codes in the lines that speak of Java and of an exit code."""
    pairs = (re.findall(r"exit code (\d)(?: or (\d))?", line) for line in JAVA_MISSING.findall(text))
    return {int(one) for line in pairs for pair in line for one in pair if one}


def test_no_page_gives_a_missing_java_another_exit_code() -> None:
    """The table in docs/reference/cli.md is made from the code."""
    assert codes_beside_java("| Java is missing | an error, exit code 3 or 2 |") == {3, InputError.exit_code}
    other = {page: codes_beside_java(page.read_text()) - {MachineError.exit_code} for page in PAGES}
    assert {page: codes for page, codes in other.items() if codes} == {}


def test_every_data_file_is_listed() -> None:
    """A page links each one and says what it holds; a column that a table shows is in its file."""
    page = (ROOT / "docs" / "results" / "performance.md").read_text()
    assert [file.name for file in RESULTS.DATA.glob("*.csv") if f"](data/{file.name})" not in page] == []
    for name, columns in RESULTS.SHOWN.items():
        assert {*columns} <= {*RESULTS.rows_of(RESULTS.DATA / f"{name}.csv")[0]}


def test_a_published_table_is_one_click_away() -> None:
    """The README leads to the page, the site has it, and it names every experiment after that study."""
    assert "](docs/research/reproduce.md)" in (ROOT / "README.md").read_text()
    assert "research/reproduce.md" in (ROOT / "mkdocs.yml").read_text()
    page = (ROOT / "docs" / "research" / "reproduce.md").read_text()
    files = sorted(path.name for path in (ROOT / "experiments").glob("karimov_*.toml"))
    assert files
    assert all(f"streamgauge experiment experiments/{name}" in page for name in files)
