"""Run folders for the tests of comparisons, and a study folder for those of searches.

All figures are made up by the functions below; nothing was measured.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.artifacts import series_files
from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import build
from streamgauge.core.clock import US
from streamgauge.metrics.histogram import Histogram, counts_of, log_lines
from streamgauge.results.latency import Latencies, Latency
from streamgauge.results.run import ProcessUse, Rates, Result, Verification
from streamgauge.results.verdict import Verdict
from tests.unit.studies.helpers_studies import FAILED_PER_S, HELD_PER_S, remember

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
START = 1_767_323_045
SECONDS = 40

Make = Callable[..., Path]


@pytest.fixture
def make_run(tmp_path: Path) -> Make:
    """Makes a run folder: `make_run("a/1", seed=1, slower=1.1, rate=..., offered=..., **changes of the result)`."""
    count = iter(range(1000))

    def one(name: str, seed: int, slower: float = 1.0, rate: float = 1e5, offered: float = 1e5, **changes: Any) -> Path:
        rng = np.random.default_rng(seed)
        # Starts differ by 1 %, seconds by 10 %, results by 30 %.
        level_us = 2e5 * slower * (1 + 0.01 * rng.normal())
        rows = {
            START + second: (level_us * np.exp(0.1 * rng.normal() + 0.3 * rng.normal(size=200))).astype(np.int64)
            for second in range(SECONDS)
        }
        path = tmp_path / name
        path.mkdir(parents=True)
        folder = RunFolder(path)
        started = NOW + timedelta(minutes=next(count))
        ingested = rate * (1 + 0.002 * rng.normal())
        rates = Rates(offered_per_s=offered, achieved_per_s=ingested, ingested_per_s=ingested, planned_per_s=offered)
        folder.write_result(_result(path, started, rows, {"rate": rates, **changes}))
        folder.write_hlog(
            log_lines({second: Histogram(counts_of(values)) for second, values in rows.items()}, "event_time")
        )
        folder.write_series(_series(rate, rng))
        return path

    return one


def _result(path: Path, started: datetime, rows: dict[int, Any], changes: dict[str, Any]) -> Result:
    whole = Histogram(counts_of(np.concatenate(list(rows.values()))))
    percentiles = {
        name: float(whole.percentile(q) or 0) for name, q in (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99))
    }
    latency = Latency(mean=whole.mean, count=whole.count, effective_count=whole.count, **percentiles)
    values = {
        "run_id": path.name, "start_time": started.isoformat(), "workload": "identity", "engine": "spark",
        "isolation": "shared", "folder": str(path), "verdict": Verdict(value="sustained"),
        "experiment": build({"workload": "identity", "load": {"rate": "100k"}}).model_dump(mode="json"),
        "settings": {"spark.sql.shuffle.partitions": "2"}, "environment": {"cpu_model": "made up", "cpus": 2},
        "latency": Latencies(event_time_us=latency),
        "processes": (
            ProcessUse(name="sut", role="sut", cpu_percent_mean=100, cpu_percent_max=120, memory_bytes_max=2**30),
        ),
        "verification": Verification(judged=True, independent=True, reference="DuckDB", expected=9, matched=9),
    }  # fmt: skip
    return Result.model_validate(values | changes)


def _series(rate: float, rng: np.random.Generator) -> pa.Table:
    cpu, memory = 100 + 5 * rng.normal(size=SECONDS), 1e9 + 1e7 * rng.normal(size=SECONDS)
    handed = (rate * (1 + 0.05 * rng.normal(size=SECONDS))).astype(np.int64)
    names = {"time_us": (START + np.arange(SECONDS)) * US, "phase": ["measured"] * SECONDS, "handed_out": handed,
             "sut_cpu_percent": cpu, "sut_memory_bytes": memory.astype(np.int64)}  # fmt: skip
    return series_files.conform(pa.table(names))


@pytest.fixture
def three(make_run: Make) -> Callable[..., str]:
    """Makes a folder of three runs that differ by their seeds."""

    def folder(side: str, first_seed: int, **changes: Any) -> str:
        folders = [make_run(f"{side}/{n}", seed=first_seed + n, **changes) for n in range(3)]
        return str(folders[0].parent)

    return folder


@pytest.fixture
def study(tmp_path: Path) -> RunFolder:
    """A study with a trial that held, and a later one that did not; both were made before a kill."""
    folder = RunFolder.create(tmp_path, "filter", "known", datetime.now(UTC))
    for number, (rate, verdict) in enumerate([(HELD_PER_S, "sustained"), (FAILED_PER_S, "not_sustained")], start=1):
        remember(folder, number, rate, verdict)
    return folder
