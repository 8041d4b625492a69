"""Every refusal that the tests see, as a list to compare with after a refactoring: setting, rule, kind of value.

    python -m pytest -p tools.refusals --refusals RAW --hypothesis-seed 0 -m MARKS   the marks of make test-fast
    python tools/refusals.py RAW            exit 1 and print each refusal that vanished; new ones are printed too
                                            tests/data/refusals_vanished.csv has the reason of each that may be gone
    python tools/refusals.py RAW --write    renew tests/data/refusals.csv

The plugin records each `Problem` that code in `src` makes, whether or not it is raised. Processes that a test starts
are not recorded. Numbers and values are left out of rules, because they differ between machines and runs.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SOURCE = str(Path(__file__).parents[1] / "src")
KNOWN = Path(__file__).parents[1] / "tests" / "data" / "refusals.csv"
VANISHED = KNOWN.with_name("refusals_vanished.csv")
HEAD = "setting", "rule", "value"

Refusal = tuple[str, str, str]


def normalised(setting: str, rule: str, got: object) -> Refusal:
    """A refusal without what differs from run to run: the value in the rule, paths and numbers."""
    value = str(got)
    if len(value) > 1 or value.isdigit():
        rule = rule.replace(repr(got), "VALUE").replace(value, "VALUE")
    return _stable(setting), _stable(rule), type(got).__name__


def _stable(text: str) -> str:
    text = re.sub(r"(?<![\w<])/[\w./-]+", "PATH", text)
    text = re.sub(r"\d+(?:[.,]\d+)*(?:e[+-]?\d+)?", "N", text)
    return " ".join(text.split())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--refusals", metavar="FILE", help="append every refusal of this session to a file")


def pytest_configure(config: pytest.Config) -> None:
    if file := config.getoption("--refusals"):
        config.pluginmanager.register(Recorder(Path(file)))


class Recorder:
    """Appends the refusals of one process to a file when its session ends, so that processes may share the file."""

    def __init__(self, file: Path) -> None:
        from streamgauge.core.errors import Problem

        self._file = file
        self._refusals: set[Refusal] = set()
        Problem.__init__ = self._recording(Problem.__init__)  # type: ignore[method-assign]

    def _recording(self, init: Callable[..., None]) -> Callable[..., None]:
        def record(problem: Any, *values: Any, **named: Any) -> None:
            init(problem, *values, **named)
            made_by = sys._getframe(1)
            while made_by.f_code.co_filename == dataclasses.__file__ and made_by.f_back is not None:  # replace()
                made_by = made_by.f_back
            if made_by.f_code.co_filename.startswith(SOURCE):
                self._refusals.add(normalised(problem.setting, problem.rule, problem.got))

        return record

    def pytest_sessionfinish(self) -> None:
        with self._file.open("a") as lines:
            lines.write("".join(json.dumps(refusal) + "\n" for refusal in self._refusals))


def listed(file: Path) -> set[Refusal]:
    """The refusals of a file, without further columns; those of `VANISHED` have a reason each."""
    with file.open(newline="") as lines:
        return {(setting, rule, value) for setting, rule, value, *_ in list(csv.reader(lines))[1:]}


def main(raw: str, *options: str) -> int:
    refusals: set[Refusal] = {tuple(json.loads(line)) for line in Path(raw).read_text().splitlines()}
    if "--write" in options:
        with KNOWN.open("w", newline="") as lines:
            csv.writer(lines, lineterminator="\n").writerows([HEAD, *sorted(refusals)])
        return 0
    known = listed(KNOWN)
    vanished = known - refusals - listed(VANISHED)
    for word, rows in ("vanished", vanished), ("new", refusals - known):
        print(*(f"{word}: {': '.join(row)}" for row in sorted(rows)), sep="\n", end="\n" if rows else "")
    return 1 if vanished else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
