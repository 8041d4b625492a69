"""Code, experiments and messages shown in documents work as shown."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from streamgauge.config.experiment import Experiment, build
from streamgauge.config.experiment_file import read, to_toml
from streamgauge.engines.registry import capabilities
from streamgauge.workloads.registry import get
from tests.docs.helpers_pages import every_page, fences
from tests.helpers_modules import ROOT

EXPERIMENTS = sorted((ROOT / "experiments").rglob("*.toml"))


@every_page
def test_code_in_documents_runs(page: Path) -> None:
    """Blocks under `<!-- tested -->` run from top to bottom in one namespace; their assertions hold. TOML under
    `<!-- tested: experiment -->` is an experiment.
    """
    namespace: dict[str, Any] = {"__name__": page.stem}
    for mark, language, code in fences(page.read_text()):
        if mark == "tested" and language == "python":
            exec(compile(code, str(page), "exec", dont_inherit=True), namespace)
        if mark == "tested: experiment":
            assert language == "toml"
            assert_valid(build(tomllib.loads(code)))


FAKE = """#!/bin/sh
echo "$(basename "$0") $*" >> calls
[ "$1" != run ] || [ -d "$(echo "$*" | sed 's/.*--out //')" ] || exit 2
exit "$(cat "$1.code" 2> /dev/null || echo 0)"
"""
"""Stands for a program: notes its words, wants the folder of --out, ends with the code that stands in a file."""


@pytest.mark.parametrize(
    ("run", "compare", "code", "runs"),
    [(0, 0, 0, 6), (1, 0, 0, 6), (3, 0, 0, 6), (1, 1, 1, 6), (0, 3, 3, 6), (0, 4, 4, 6), (4, 0, 4, 1), (5, 0, 5, 1)],
)
def test_the_script_for_ci_compares_whatever_the_runs_found(
    run: int, compare: int, code: int, runs: int, tmp_path: Path
) -> None:
    """Runs that are not sustained or undecided are compared; any other end of a run is that of the script; else the
    last code is the gate's.
    """
    for program in ("git", "streamgauge"):
        (tmp_path / program).write_text(FAKE)
        (tmp_path / program).chmod(0o755)
    (tmp_path / "run.code").write_text(str(run))
    (tmp_path / "compare.code").write_text(str(compare))
    (script,) = [
        code
        for _, language, code in fences((ROOT / "docs" / "how-to" / "compare-and-gate.md").read_text())
        if language == "sh"
    ]
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=False)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert done.returncode == code
    assert len([line for line in calls if line.startswith("streamgauge run ")]) == runs
    assert [line.split()[:4] for line in calls if " compare " in line] == [
        ["streamgauge", "compare", "runs/base", "runs/new"]
    ] * (runs == 6)


@pytest.mark.parametrize("path", EXPERIMENTS, ids=[path.name for path in EXPERIMENTS])
def test_shipped_experiments_are_valid(path: Path) -> None:
    """Each shipped file reads as an experiment, survives being written out again, and has its row in the README beside
    it.
    """
    experiment = read(path)
    assert_valid(experiment)
    assert build(tomllib.loads(to_toml(experiment))) == experiment
    name = path.relative_to(ROOT / "experiments")
    assert f"[{name}]({name})" in (ROOT / "experiments" / "README.md").read_text()


def assert_valid(experiment: Experiment) -> None:
    """The workload, its parameters and the engine's options are all there; no rule here is about this machine."""
    workload = get(experiment.workload)
    workload.build(workload.read(experiment.parameters), experiment.load.rate)
    engine = capabilities()[experiment.engine]
    settings = {setting.name: setting.choices for setting in engine.settings}
    for name, value in experiment.options.items():
        assert name.startswith("spark.") or name in settings, name
        assert name.startswith("spark.") or not settings[name] or value in settings[name], (name, value)


def test_quoted_messages_are_the_program_s() -> None:
    """Each message that troubleshooting.md quotes stands in the source, so that a reader can search for it."""
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    quotes = re.findall(r"^> (.+)$", (ROOT / "docs" / "how-to" / "troubleshooting.md").read_text(), re.MULTILINE)
    pieces = [piece.strip() for quote in quotes for piece in quote.split("...") if piece.strip()]
    assert len(quotes) > 5
    assert [piece for piece in pieces if piece not in source] == []
