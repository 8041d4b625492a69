"""Each application alone by `streamgauge run`, at half the least rate that it must hold, by the command's own verdict.

What it sustains is for `python -m bench.studies.applications` to show, which takes ten times as long and prints the
machine's speed beside: here a slow day must not fail.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.studies.applications import NATIVE, OTHERS, floor_of
from streamgauge.cli.commands import EXITS
from streamgauge.results.run import Result

pytestmark = [pytest.mark.spark, pytest.mark.long]

WARM_UP, DURATION = "30s", "20s"
"""Short: a run goes on for longer by itself where its engine still starts, or a trend is undecided."""
SHARE_OF_FLOOR = 0.5


def run_of(application: str, out: Path) -> tuple[int, Result]:
    """(exit code, result) of a run at `SHARE_OF_FLOOR` of the application's floor, as a user types it."""
    rate = f"{SHARE_OF_FLOOR * floor_of(application):.0f}"
    words = ["run", application, "--rate", rate, "--warmup", WARM_UP, "--duration", DURATION]
    command = [sys.executable, "-m", "streamgauge", *words, "--json", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, Result.model_validate(json.loads(done.stdout))


@pytest.mark.parametrize("application", [*NATIVE, *OTHERS])
def test_nothing_speaks_against_half_its_floor_and_it_is_right(tmp_path: Path, application: str) -> None:
    """No check fails, and every answer is right by an independent reference.

    The verdict may be undecided, as of so short a span a trend's interval may lie on both sides of its limit; and then
    invalid, where other programs use the machine meanwhile.
    """
    code, result = run_of(application, tmp_path)
    states = {check.name: check.state for check in result.verdict.checks}
    assert (states["driver"], states["connected"], states["answers"]) == ("ok", "ok", "ok"), result.verdict.sentence
    assert set(states.values()) <= {"ok", "undecided"}, result.verdict.sentence
    assert code == EXITS[result.verdict.value]
    found = result.verification
    assert found is not None
    assert (found.independent, found.right) == (True, True)
    assert found.matched == found.expected > 0
