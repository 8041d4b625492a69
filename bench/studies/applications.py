"""The sustained rate of each application, by `streamgauge sustain APPLICATION --quick`.

Each search starts at the application's floor, the least rate expected of it. The floor is 150 k/s for those in
`NATIVE`, whose state is entirely in Spark's own expressions. (Two of them look up places in a stateless Python class,
`geo_finder`.) It is 20 k/s for the others. Most of those keep their state in a Python class; `sentiment_analysis`,
`trending_topics` and `throughput` are native, but have the lower floor.

The goal is a bracket 20 % wide, so a figure gives the order of magnitude; a separate search gives a finer one. Each
search's own sentence on its limit is shown beside the figure. A search has at most three trials and takes five to
twelve minutes.

    python -m bench.studies.applications [FOLDER [APPLICATION...]]

FOLDER keeps every search, and finished ones are not repeated. Without FOLDER the searches are discarded.
`python tools/docs_applications.py FOLDER/*` makes docs/results/data/application-rates.csv from it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.support.row import Row, row
from bench.support.run_command import run_search

FLOOR_PER_S, NATIVE_FLOOR_PER_S = 20e3, 150e3
NATIVE = ("word_count", "log_processing", "click_analytics", "ads_analytics", "yahoo_streaming")
OTHERS = (
    "throughput", "spike_detection", "bargain_index", "fraud_detection", "trending_topics", "sentiment_analysis",
    "spam_filter", "traffic_monitoring", "machine_outlier", "reinforcement_learner", "smart_grid", "voipstream",
)  # fmt: skip
EVERY = (*NATIVE, *OTHERS)
VERIFYING_FLOOR_S, VERIFYING_GOAL_S = 1.0, 0.1
"""Verification must take less time than the trial."""
TOLERANCE = 0.2
TRIALS_MAX = 3
DURATION = "60s"
"""Batches of several queries take three to four seconds near the limit, so a span of 30 s has too few of them."""
BOUND = "2m"
"""Bound of the queue: on a slow machine, a fresh engine's first batch of a long flow takes half a minute."""
WARMUP = {"click_analytics": "120s"}
"""Warm-up where the usual 45 s are too short: batches of its two queries still became shorter in the third minute, and
each trial of a flow with unbounded state starts with a fresh JVM.
"""


def floor_of(application: str) -> float:
    return NATIVE_FLOOR_PER_S if application in NATIVE else FLOOR_PER_S


def kept(folder: Path) -> dict[str, dict[str, Any]]:
    """The latest finished search of each application in a folder.

    A search in which the driver failed proves nothing, and is repeated.
    """
    found = {}
    for path in sorted(folder.glob("*/result.json")):
        result = json.loads(path.read_text())
        if (result.get("search") or {}).get("trials") and result["verdict"]["value"] not in ("interrupted", "invalid"):
            found[result["workload"]] = result
    return found


def searched(folder: Path, applications: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(application, result) of each, searched unless the folder has it; None if the search failed."""
    there = kept(folder)
    for application in applications:
        if application in there:
            environment = there[application]["environment"]
            made = f"{there[application]['start_time']}, {environment['streamgauge']}, {environment['cpu_model']}"
            print(f"{application}: kept, of {made}", file=sys.stderr, flush=True)
        result = there.get(application) or _search(application, folder)
        if result is not None:
            yield application, result


def _search(application: str, folder: Path) -> dict[str, Any] | None:
    arguments = [
        application, "--quick", "--tolerance", str(TOLERANCE), "--trials-max", str(TRIALS_MAX),
        "--duration", DURATION, "--start-rate", f"{floor_of(application):.0f}", "--queue-limit", BOUND,
        *(["--warmup", WARMUP[application]] if application in WARMUP else []),
    ]  # fmt: skip
    return run_search(application, arguments, folder)


def rate_of(result: dict[str, Any]) -> float:
    """The sustained events per second; 0 without a sustained rate."""
    return float(result["search"]["sustained_per_s"] or 0.0)


def verifying_s(result: dict[str, Any]) -> float:
    """Seconds of verification per second of the sustained trial."""
    trial_us = sum(phase["end_us"] - phase["start_us"] for phase in result["phases"])
    return float(result["verification"]["seconds"]) / (trial_us / 1e6)


def rows_of(application: str, result: dict[str, Any]) -> Iterator[Row]:
    rate, limit = [rate_of(result)], result["search"].get("limit") or ""
    yield row(f"applications: {application}, sustained", rate, "events/s", floor_of(application), note=limit)
    if rate_of(result):
        name = f"applications: {application}, verification per second of trial"
        yield row(name, [verifying_s(result)], "s", VERIFYING_FLOOR_S, VERIFYING_GOAL_S)


def main(folder: Path | None = None, applications: Sequence[str] = EVERY) -> list[Row]:
    with tempfile.TemporaryDirectory() as thrown_away:
        return [line for each in searched(folder or Path(thrown_away), applications) for line in rows_of(*each)]


if __name__ == "__main__":
    for each in main(Path(sys.argv[1]) if sys.argv[1:] else None, sys.argv[2:] or EVERY):
        print(each)
