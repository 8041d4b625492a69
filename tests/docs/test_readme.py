"""The README: its commands, its result and the times that it promises."""

import re
from typing import Any

import pytest

from tests.docs.helpers_pages import COMMANDS
from tests.helpers_modules import ROOT

REAL_RESULT = {
    "a p99": r"\bp99\b(?!\.| +-)",
    "its time": r"\d (?:ms|s)\b",
    "in memory or over Kafka": r"\bin memory\b|\bKafka\b",
    "its tuning profile": r"\b(?:tuned|idiomatic)\b",
}
"""What the README's real result says, and how that is recognized."""


BEGIN, END = "<!-- real result: begin -->", "<!-- real result: end -->"


@pytest.mark.parametrize(("readme", "missing"), [
    ((ROOT / "README.md").read_text(), []), (f"{BEGIN}\nin memory, tuned: p50 2 s, p99 3.1 s\n{END}", []),
    (f"{BEGIN}\n{END}\nin memory, tuned: p99 3.1 s", [*REAL_RESULT]),
    (f"{BEGIN}\nover Kafka, idiomatic: p50 2 s  p99 -  p99.9 -\n{END}", ["a p99"]),
], ids=["README.md", "planted", "after the mark", "withheld"])  # fmt: skip
def test_the_readme_shows_a_real_result(readme: str, missing: list[str]) -> None:
    """With a p99, over what the events travelled, and the profile: a rate without them misleads."""
    block = readme.split(BEGIN)[1].split(END)[0]
    assert [what for what, pattern in REAL_RESULT.items() if not re.search(pattern, block)] == missing


def minutes(text: str) -> list[str]:
    """The times of a text in minutes, as `3` or `10 to 15`."""
    return re.findall(r"(\d+(?: to \d+)?) min(?:utes?)?\b", text)


def help_of(command: Any) -> str:
    """Everything that `streamgauge COMMAND --help` says."""
    return " ".join([command.help or "", *(getattr(parameter, "help", None) or "" for parameter in command.params)])


def other_times(readme: str, makefile: str, helps: dict[str, str]) -> list[str]:
    """Each time of the README that the help of the same command or make target contradicts."""
    helps = {f"streamgauge {name}": text for name, text in helps.items()} | {
        f"make {name}": text for name, text in re.findall(r"^([a-z-]+):.*?## (.*)$", makefile, re.MULTILINE)
    }
    lines = [
        (" ".join(re.findall(r"`(streamgauge [a-z]+)", line) or re.findall(r"^(make [a-z-]+) .*#", line)[:1]), line)
        for line in readme.splitlines()
    ]
    return [
        f"{name}: {minutes(line)} in README.md, {minutes(helps[name])} in its help"
        for name, line in lines
        if minutes(line) and minutes(helps.get(name, "")) and set(minutes(helps[name])) != set(minutes(line))
    ]


def test_the_readme_and_the_help_state_the_same_times() -> None:
    """Where both state one."""
    readme, makefile = (ROOT / "README.md").read_text(), (ROOT / "Makefile").read_text()
    helps = {name: help_of(command) for name, command in COMMANDS.commands().items()}
    assert other_times(readme, makefile, helps) == []
    planted = "make demo # 3 minutes\n| `streamgauge selftest` | 5 min |\n| `streamgauge run x` | 2 min |"
    assert other_times(planted, "demo: setup ## for 2 minutes\n", {"selftest": "10 minutes", "run": "runs"}) == [
        "make demo: ['3'] in README.md, ['2'] in its help",
        "streamgauge selftest: ['5'] in README.md, ['10'] in its help",
    ]
