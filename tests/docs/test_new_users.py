"""What a new user looks for is two links from the README."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
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
    "a published table": ("research/reproduce.md", "streamgauge experiment experiments/karimov/"),
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
