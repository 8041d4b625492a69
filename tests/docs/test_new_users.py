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


TASKS = {
    "how many cores a load needs": ("how-to/size-a-job.md", "streamgauge scale my_job.py --resources"),
    "a gate in CI": ("how-to/compare-and-gate.md", '--fail-if "p50 +10%"'),
    "brokers behind TLS": ("how-to/own-brokers.md", "ssl.ca.location="),
    "the result as JSON": ("reference/cli.md", "With `--json`, the answer is the"),
    "the options of spark-submit": ("tutorials/first-user-job.md", "`--conf NAME=VALUE` | `--option NAME=VALUE`"),
    "a file as input": ("how-to/use-your-data.md", "--set data=access.log"),
    "stages of load": ("how-to/faq.md", "`step:RATE@TIME,...`"),
    "a part of the cores": ("how-to/size-a-job.md", "--driver-cpus 0 --sut-cpus 1"),
    "the slow operator": ("how-to/find-the-costly-operator.md", "streamgauge characterize word_count"),
    "two versions": ("how-to/compare-and-gate.md", "streamgauge compare A B"),
    "on after a stop": ("tutorials/first-search.md", "streamgauge sustain --resume RUN"),
    "what a report says": ("how-to/read-a-report.md", "**The check that decided**"),
}  # fmt: skip
"""What users of k6, spark-submit and kcat want to do: the page and the words on it that say how."""


def pages_within(links: int, start: Path) -> set[Path]:
    """The pages that a reader reaches from one page by so many links at most."""
    reached = {start}
    for _ in range(links):
        reached |= {
            (page.parent / target).resolve()
            for page in reached
            for target in re.findall(r"\]\((?!https?:)([^)#\s]+\.md)", page.read_text())
        }
    return reached


def test_tasks_of_new_users_are_two_links_away() -> None:
    """Each page is at most two links from the README, and says how."""
    reached = pages_within(2, ROOT / "README.md")
    lacking = {
        task
        for task, (page, words) in TASKS.items()
        if ROOT / "docs" / page not in reached or words not in (ROOT / "docs" / page).read_text()
    }
    assert lacking == set()


def test_a_page_that_is_further_away_is_found(tmp_path: Path) -> None:
    for name, text in {"a": "[b](b.md#x)", "b": "[c](c.md)", "c": "[d](d.md)", "d": ""}.items():
        (tmp_path / f"{name}.md").write_text(text)
    assert {page.stem for page in pages_within(2, tmp_path / "a.md")} == {"a", "b", "c"}
