"""`make demo`: one run, and what a verdict other than "sustained" means for the installation."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.metrics.interference import BACKGROUND_SHARE_MAX
from streamgauge.results.run import Result
from streamgauge.system.machine import machine_percent

ASKED = "run windowed_aggregation --rate 200k --duration 30s"
"""The default warm-up of a fresh JVM. In a span after only 25 s, batches took half as long again while the JVM
compiled, and their trend stayed undecided."""


def main() -> int:
    """The exit code of `make demo`: 0 if only the figure is missing, else the run's."""
    runs = Path("runs")
    before = set(runs.glob("*/result.json"))
    print(f"streamgauge {ASKED}", flush=True)
    code = subprocess.run([sys.executable, "-m", "streamgauge", *shlex.split(ASKED)], check=False).returncode
    new = set(runs.glob("*/result.json")) - before
    said = lacking(RunFolder(new.pop().parent).read_result()) if code and len(new) == 1 else ""
    print(said, end="\n" if said else "")
    return 0 if said else code


def lacking(result: Result) -> str:
    """Why there is no figure although nothing is wrong; empty for any other verdict."""
    if result.verification is None or not result.verification.right:
        return ""
    verdict = result.verdict
    answers = "all answers were right" if result.verification.matched else "no answer was due before the run ended"
    works = f"The installation works and {answers}; "
    if verdict.value == "undecided":
        return f"{works}this run could not be decided."
    if verdict.value == "invalid" and _by_neighbours(result):
        return f"{works}this machine was too busy for a figure."
    return ""


def _by_neighbours(result: Result) -> bool:
    """Whether background processes made a run invalid: directly, or by taking CPU time from the driver."""
    by_themselves = not any(check.state == "invalid" for check in result.verdict.checks)
    return by_themselves or (result.others_cpu_percent or 0.0) > BACKGROUND_SHARE_MAX * machine_percent()


if __name__ == "__main__":
    sys.exit(main())
