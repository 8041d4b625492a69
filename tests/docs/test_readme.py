"""The README: its commands, its result and the times that it promises."""

import re
from typing import Any

from tests.docs.helpers_pages import COMMANDS, code_lines
from tests.helpers_modules import ROOT


def test_readme_gives_the_commands() -> None:
    """The README shows the two commands to begin with, and one line for each command that measures."""
    lines = [line.strip() for line in code_lines((ROOT / "README.md").read_text())]
    for start in ("make demo", "make test"):
        assert any(line.startswith(start) for line in lines), start
    for command in ("run", "sustain", "generate", "compare", "report", "selftest"):
        assert any(f"streamgauge {command}" in line for line in lines), command


REAL_RESULT = {
    "a p99": r"\bp99\b(?!\.| +-)",
    "its time": r"\d (?:ms|s)\b",
    "in memory or over Kafka": r"\bin memory\b|\bKafka\b",
    "its tuning profile": r"\b(?:tuned|idiomatic)\b",
}
"""What the README's real result says, and how that is recognized."""


def missing_parts(readme: str) -> list[str]:
    """What the README's real result lacks."""
    block = readme.split("<!-- real result: begin -->")[1].split("<!-- real result: end -->")[0]
    return [what for what, pattern in REAL_RESULT.items() if not re.search(pattern, block)]


def test_the_readme_shows_a_real_result() -> None:
    """With a p99, over what the events travelled, and the profile: a rate without them misleads. A p99 that was
    withheld is none; what stands outside of the marks does not count.
    """
    assert missing_parts((ROOT / "README.md").read_text()) == []
    begin, end = "<!-- real result: begin -->", "<!-- real result: end -->"
    assert missing_parts(f"{begin}\nin memory, tuned: p50 2 s, p99 3.1 s\n{end}") == []
    assert missing_parts(f"{begin}\n{end}\nin memory, tuned: p99 3.1 s") == list(REAL_RESULT)
    assert missing_parts(f"{begin}\nover Kafka, idiomatic: p50 2 s  p99 -  p99.9 -\n{end}") == ["a p99"]


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
    """Where both state one; that of `make demo`, `make test` and `selftest` is stated in both."""
    readme, makefile = (ROOT / "README.md").read_text(), (ROOT / "Makefile").read_text()
    helps = {name: help_of(command) for name, command in COMMANDS.commands().items()}
    assert other_times(readme, makefile, helps) == []
    for name in ("demo", "test"):
        assert minutes(re.findall(rf"^{name}:.*## (.*)$", makefile, re.MULTILINE)[0]), name
    assert minutes(helps["selftest"])


def test_a_time_promised_twice_is_found() -> None:
    readme = (
        "make demo   # 3 minutes\n| right? | `streamgauge selftest` | 5 min |\n| fast? | `streamgauge run x` | 2 min |"
    )
    assert other_times(readme, "demo: setup ## for 2 minutes\n", {"selftest": "takes 10 minutes", "run": "runs"}) == [
        "make demo: ['3'] in README.md, ['2'] in its help",
        "streamgauge selftest: ['5'] in README.md, ['10'] in its help",
    ]
