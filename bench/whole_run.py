"""What a whole run at 2 M events/s for 60 s takes of the driver: memory, and time to verify its answers.

`streamgauge run windowed_aggregation --rate 2M --duration 60s --json`, as a user would type it; figures are those of
its result. The baseline of the verification is the run itself. `STREAMGAUGE_REPEATS` says how often (default 3; a run
takes about two and a half minutes). Run alone: `python -m bench.whole_run`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from bench._row import Row, row

REPEATS = int(os.environ.get("STREAMGAUGE_REPEATS", "3"))
RATE, DURATION = "2M", "60s"
US = 1_000_000


def result() -> dict[str, Any]:
    """The result of one run, whose progress is shown. RuntimeError where it was not sustained."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "streamgauge", "run", "windowed_aggregation", "--json", "--out", out]
        asked = [*command, "--rate", RATE, "--duration", DURATION]
        done = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the run ended with exit code {done.returncode}; why, it has said above")
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def span_s(found: dict[str, Any]) -> float:
    """From the first planned event to the end of the drain, seconds."""
    phases = found["phases"]
    return float(phases[-1]["end_us"] - phases[0]["start_us"]) / US


def main() -> list[Row]:
    runs = [result() for _ in range(REPEATS)]
    memory = [run["driver"]["memory_bytes_max"] / 1e9 for run in runs]
    faster = [span_s(run) / run["verification"]["seconds"] for run in runs]
    return [
        row(f"whole run: driver's memory at {RATE}/s for {DURATION}", memory, "GB", 2.0, 0.7),
        row("whole run: the run / its verification", faster, "times", 1.0, 10.0),
    ]


if __name__ == "__main__":
    for each in main():
        print(each)
