"""What the runner keeps of a trial in an hour, of whatever it is told of: nothing of that is ever thrown away.

A trial's answers of generators and recorder, made by rule and as JSON gives them, are taken in as `trial.phases` does,
twice a second; nothing is started, and no time passes. Memory is what Python's allocator holds (tracemalloc), so that
neither the machine nor its other processes play a part; one processor. Generators and recorder forget what was told.
Baseline: what the same answers take as they came. Run alone: `python -m bench.metrics.journal`.
"""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from bench.support.row import Row, row
from streamgauge.core.clock import US
from streamgauge.harness.testbed import tick_of
from streamgauge.loadgen.fields import Integer, Key, StreamSpec
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.metrics.log.trial_log import TrialLog
from streamgauge.metrics.records import Role, Usage

START_US, TICK_US = 1_700_000_000 * US, US // 2
GENERATORS = TASKS = 2
FIRST_TICKS, TICKS, TICKS_AN_HOUR = 240, 2400, 7200
"""Two minutes that are not counted, twenty that are."""
RATE_PER_S = 100_000.0
DRIVER = ("generator 0", "generator 1", "recorder", "runner")
SUT = ("python", "jvm", *("python workers",) * 6)


@dataclass(frozen=True)
class Case:
    """How much event time travels at once, and how far apart the engine's batches are; microseconds."""

    name: str
    chunk_us: int
    batch_us: int


CASES = (Case("windows", 50_000, 1_400_000), Case("row by row, short chunks", 10_000, 350_000))


def answers(case: Case, tick: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What generators and recorder have to tell of half a second."""
    low, high = START_US + tick * TICK_US, START_US + (tick + 1) * TICK_US
    ends = [end for end in range(START_US, high + 1, case.batch_us) if low < end <= high]
    batches = [((end - START_US) // case.batch_us, end) for end in ends]
    chunks = [(at, at + case.chunk_us, 500, at + case.chunk_us + 700) for at in range(low, high, case.chunk_us)]
    reads = [
        ("purchases", end - case.batch_us, end, 70_000, end + 900, batch, False, "revenue", 0, False, end + 900)
        for batch, end in batches
    ]
    said: dict[str, Any] = {
        "frontier_us": high,
        "overflowed": False,
        "memory_full_us": None,
        "ended": False,
        "aborted_us": [],
    }
    generator = {**said, "chunks": chunks, "deliveries": reads, "delivering": [(at + 900, at + 5000) for at in ends]}
    spent = [(end + 90_000 + 700 * task, end + 90_300 + 700 * task) for end in ends for task in range(2 * TASKS)]
    commits = [commit_of(batch, end) for batch, end in batches]
    none: list[Any] = []
    recorder = {"commits": commits, "rows_ignored": {}, "retried_us": none, "receiving": spent, "writing": spent}
    return [generator] * GENERATORS, {**recorder, "stood_still": none}


def commit_of(batch: int, end_us: int) -> dict[str, Any]:
    paths = [f"/tmp/streamgauge-rig-abcdefgh/spool/revenue-{batch}-{task}-{batch}-revenue-9.arrow" for task in (0, 1)]
    return {
        "query": "revenue", "batch": batch, "sink": "revenue", "committed_us": end_us + 400_000,
        "emitted_us": end_us + 399_000, "rows": 2000, "frontier_us": end_us - 1, "latency_us_p50": 4e5, "paths": paths,
    }  # fmt: skip


def usages(when_us: int) -> Iterator[Usage]:
    """One second of every process."""
    sides: tuple[tuple[Role, tuple[str, ...]], ...] = (("driver", DRIVER), ("sut", SUT))
    for role, names in sides:
        for number, name in enumerate(names):
            kind = name if role == "sut" else ""
            yield Usage(
                when_us + number, f"{name} {number}", role, when_us % 97 / 3, when_us * 3, when_us % 89 / 7, kind
            )


def told(case: Case, tick: int) -> Any:
    """The same, over a pipe and back."""
    return json.loads(json.dumps(answers(case, tick)))


def look(case: Case, trial_log: TrialLog, tick: int) -> None:
    """One look at a trial, and what is asked of it then."""
    trial_log.add(tick_of(*told(case, tick)))
    now_us = START_US + (tick + 1) * TICK_US
    if tick % 2:
        trial_log.usages.extend(usages(now_us))
        for log in (trial_log.background, trial_log.loopback, trial_log.reference_work):
            log.append((now_us, now_us % 9973))
    trial_log.forgettable_until()
    for query in trial_log.queries():
        trial_log.of_query(query).backlog_waits()


def kept_mb_an_hour(case: Case) -> float:
    trial_log = empty()
    return grown_mb_an_hour(lambda tick: look(case, trial_log, tick))


def empty() -> TrialLog:
    """That of a trial of an hour, before its first look."""
    purchases = StreamSpec("purchases", (Key("gem_pack_id", 100), Integer("price", 1, 100)), 1.0)
    profile = parse_profile("constant", RATE_PER_S, 3600.0)
    return TrialLog(Plan((purchases,), profile, START_US, 3600.0, GENERATORS, 1), ("revenue",))


def as_told_mb_an_hour(case: Case) -> float:
    kept: list[Any] = []
    return grown_mb_an_hour(lambda tick: kept.append(told(case, tick)))


def grown_mb_an_hour(take_in: Callable[[int], None]) -> float:
    """By how much memory grows in an hour of ticks, MB."""
    tracemalloc.start()
    try:
        for tick in range(FIRST_TICKS):
            take_in(tick)
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for tick in range(FIRST_TICKS, FIRST_TICKS + TICKS):
            take_in(tick)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return (after - before) / 1e6 * TICKS_AN_HOUR / TICKS


def main() -> list[Row]:
    rows = []
    for case in CASES:
        rows += [
            row(f"journal: kept of an hour, {case.name}", [kept_mb_an_hour(case)], "MB", 100.0, 20.0),
            row(f"journal: an hour as it is told, {case.name} (baseline)", [as_told_mb_an_hour(case)], "MB"),
        ]
    return rows


if __name__ == "__main__":
    for line in main():
        print(f"{line['what']:60} {line['value']:10.4g} {line['unit']}")
