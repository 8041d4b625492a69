"""Run folders for the tests of the report. All figures are made up by the functions below; nothing was measured."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.artifacts import series_files
from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import Experiment, Load, build
from streamgauge.core.clock import US
from streamgauge.results.latency import Latencies, Latency
from streamgauge.results.run import (
    Backlog,
    DelayPercentiles,
    DriverResult,
    Operator,
    Phase,
    ProcessUse,
    Rates,
    Result,
    SinkResult,
    Verification,
)
from streamgauge.results.search import SearchResult, TrialSummary
from streamgauge.results.verdict import Check, Verdict
from tests.unit.metrics.test_histogram import hdr_of

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
START_US = int(NOW.timestamp()) * US
WARMUP_S, MEASURED_S, TAIL_S = 20, 60, 12
RATE_PER_S = 200_000


def made_up_series(seconds: int = WARMUP_S + MEASURED_S + TAIL_S) -> pa.Table:
    """Synthetic seconds: a steady plan, deliveries every other second, results each fourth second."""
    second = np.arange(seconds)
    rng = np.random.default_rng(7)
    handed = np.where(second % 2 == 1, 2 * RATE_PER_S, 0)
    handed[:6], handed[6:7] = 0, 7 * RATE_PER_S
    backlog = np.maximum(np.cumsum(RATE_PER_S - handed), 0) + 1000
    closes = second % 4 == 3
    late_us = 2.1e6 + 9e5 * rng.random(seconds) + 8e6 * np.exp(-second / 6)
    phases = np.repeat(["warm-up", "measured", "tail"], [WARMUP_S, max(0, seconds - WARMUP_S - TAIL_S), TAIL_S])[
        :seconds
    ]
    return series_files.conform(
        pa.table(
            {
                "time_us": START_US + second * US,
                "phase": phases,
                "planned": np.full(seconds, RATE_PER_S),
                "offered": np.full(seconds, RATE_PER_S),
                "handed_out": handed,
                "committed": handed,
                "backlog_events": backlog,
                "lag_events": backlog + RATE_PER_S,
                "event_time_us_p50": pa.array(late_us, mask=~closes),
                "event_time_us_p99": pa.array(late_us * 1.4, mask=~closes),
                "processing_time_us_p50": pa.array(np.full(seconds, 1.2e6), mask=~closes),
                "processing_time_us_p99": pa.array(1.6e6 + 2e5 * rng.random(seconds), mask=~closes),
                "results": np.where(closes, 1000, 0),
                "slip_us_max": 40_000 + 9000 * rng.random(seconds),
                "sut_cpu_percent": 130 + 30 * rng.random(seconds),
                "driver_cpu_percent": 12 + 4 * rng.random(seconds),
                "sut_memory_bytes": np.linspace(1.1e9, 1.9e9, seconds).astype(np.int64),
                "driver_memory_bytes": np.full(seconds, 310_000_000),
                "frontier_lag_us": 3e6 + 4e6 * (second % 4) / 4,
            }
        )
    )


def made_up_batches(count: int = 44) -> pa.Table:
    """Synthetic micro-batches, one every two seconds."""
    n = np.arange(count)
    work = 900 + 300 * np.sin(n) + np.where(n == 0, 3500, 0)
    return pa.table(
        {
            "batch_id": n,
            "start_us": START_US + 1_500_000 + n * 2 * US,
            "end_us": START_US + 1_500_000 + n * 2 * US + ((work + 240) * 1000).astype(np.int64),
            "rows": np.full(count, 2 * RATE_PER_S),
            "latest_offset_ms": np.full(count, 12.0),
            "wal_commit_ms": np.full(count, 55.0),
            "query_planning_ms": np.full(count, 38.0),
            "add_batch_ms": work,
            "commit_offsets_ms": np.full(count, 61.0),
            "trigger_ms": work + 240.0,
        }
    )


def made_up_hlog() -> str:
    """A log with two synthetic intervals of each kind of latency, of as many results as `made_up_latencies` has."""
    lines = [
        "#[StartTime: 1767323045.0 (seconds since epoch)]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]
    rng = np.random.default_rng(11)
    for tag, middle_us in (("event_time", 2.6e6), ("processing_time", 1.2e6), ("closing_delay", 2.4e6)):
        for interval in range(2):
            histogram = hdr_of([int(value) for value in rng.lognormal(np.log(middle_us), 0.22, 1500)] * 5)
            lines.append(
                f"Tag={tag},{interval}.000,1.000,{histogram.get_max_value() / 1e6:.3f},{histogram.encode().decode()}"
            )
    return "\n".join(lines) + "\n"


def made_up_latencies() -> Latencies:
    """Synthetic figures in which the independent results do not carry p99.9."""
    event = Latency(
        min=1.1e6, mean=2.7e6, p50=2.6e6, p90=3.4e6, p95=3.7e6, p99=4.3e6, max=5.2e6, count=15_000, effective_count=300
    )
    processing = event.model_copy(
        update={"min": 6e5, "mean": 1.25e6, "p50": 1.2e6, "p90": 1.6e6, "p95": 1.7e6, "p99": 1.9e6, "max": 2.2e6}
    )
    return Latencies(
        event_time_us=event,
        processing_time_us=processing,
        closing_delay_us=event.model_copy(update={"min": 9e5, "p50": 2.4e6}),
        notes=("match time does not apply: the flow has no join",),
    )


def made_up_checks() -> tuple[Check, ...]:
    return (
        Check(name="driver", value=62_000.0, limit=100_000.0, unit="us", ok=True, state="ok", sentence="slip is small"),
        Check(name="connected", value=0.0, limit=0.0, unit="", ok=True, state="ok", sentence="no process died"),
        Check(
            name="backlog_trend", value=0.2, limit=1.0, unit="%/s", ok=True, state="ok", low=-0.1, high=0.5,
            sentence="the backlog does not grow",
        ),
        Check(name="answers", value=0.0, limit=0.0, unit="rows", ok=True, state="ok", sentence="every answer is right"),
    )  # fmt: skip


def made_up_result(**changes: object) -> Result:
    """A synthetic result of one sustained trial; `changes` replace fields."""
    experiment = build({"workload": "made_up_aggregation", "load": {"rate": "200k"}, "parameters": {"range": "8s"}})
    values: dict[str, object] = {
        "run_id": "2026-01-02T03-04-05Z-made_up_aggregation-spark",
        "start_time": "2026-01-02T03:04:05.678901Z",
        "workload": "made_up_aggregation",
        "engine": "spark",
        "isolation": "shared",
        "experiment": experiment.model_dump(mode="json"),
        "environment": {"machine": {"cores": 2, "memory_bytes": 25_000_000_000}, "python": "3.11.2 (made up)"},
        "settings": {"spark.sql.shuffle.partitions": "2"},
        "verdict": Verdict(value="sustained", checks=made_up_checks(), sentence="All checks hold."),
        "rate": Rates(
            offered_per_s=200_000.0,
            achieved_per_s=200_000.0,
            ingested_per_s=199_900.0,
            planned_per_s=200_000.0,
            generator_ceiling_per_s=9_000_000.0,
            shares={"purchases": 1.0},
        ),
        "latency": made_up_latencies(),
        "sinks": (SinkResult(name="revenue", rows=15_000, latency=made_up_latencies()),),
        "backlog": Backlog(max=1_400_000, end=201_000, slope_per_s=10.0, max_s=7.0),
        "driver": DriverResult(
            slip_us=DelayPercentiles(p50=41_000, p99=62_000, max=71_000),
            events_planned=18_400_000,
            events_offered=18_400_000,
            events_handed_out=18_400_000,
            events_reread=0,
            events_committed=18_400_000,
            hand_out_share=0.021,
            receive_share=0.004,
            disk_share=0.0125,
        ),
        "verification": Verification(
            judged=True, independent=True, reference="DuckDB", expected=15_000, matched=15_000, seconds=1.5
        ),
        "operators": (
            Operator(name="aggregate", batches=40, batches_unknown=3, selectivity=0.00125, throughput_per_s=400_000.0),
        ),
        "processes": (
            ProcessUse(name="spark", role="sut", cpu_percent_mean=146, cpu_percent_max=171, memory_bytes_max=2**31),
            ProcessUse(name="load 0", role="driver", cpu_percent_mean=9, cpu_percent_max=14, memory_bytes_max=2**28),
            ProcessUse(
                name="sut: jvm", role="sut_part", cpu_percent_mean=117, cpu_percent_max=130, memory_bytes_max=2**30
            ),
        ),
        "phases": (
            Phase(name="warmup", start_us=START_US, end_us=START_US + WARMUP_S * US),
            Phase(name="measured", start_us=START_US + WARMUP_S * US, end_us=START_US + (WARMUP_S + MEASURED_S) * US),
            Phase(name="tail", start_us=START_US + 80 * US, end_us=START_US + 92 * US),
        ),
    }  # fmt: skip
    return Result.model_validate(values | changes)


def made_up_trials() -> tuple[TrialSummary, ...]:
    """A synthetic search: an overload trial, a bracket, a bisection, a confirmation."""
    rows = (
        ("overload", None, None, None, None, "drained 1.8 M/s: looking around 1.5 M/s"),
        ("lower end", 1_450_000.0, "sustained", 5.2e6, 0.0, "7 windows closed, 41 batches"),
        ("upper end", 1_640_000.0, "not_sustained", 14e6, 0.041, "backlog grows; stopped early"),
        ("bisection", 1_540_000.0, "undecided", 5.9e6, 0.009, "interval across its limit"),
        ("confirmation", 1_540_000.0, "sustained", 5.8e6, 0.0004, "confirmed on a fresh engine"),
    )
    return tuple(
        TrialSummary(
            number=number,
            purpose=purpose,
            offered_per_s=rate,
            verdict=verdict,
            event_time_p50_us=None if p99 is None else p99 * 0.6,
            event_time_p99_us=p99,
            backlog_slope_share=share,
            why=why,
            seconds=61.0,
        )
        for number, (purpose, rate, verdict, p99, share, why) in enumerate(rows, 1)
    )


def made_up_search() -> Result:
    """A synthetic result of a search."""
    trials = made_up_trials()
    search = SearchResult(
        sustained_per_s=1_540_000.0,
        low=1_540_000.0,
        high=1_640_000.0,
        high_verdict="not_sustained",
        relative_width=0.06,
        confirmed=True,
        at_90_percent=trials[1].model_copy(update={"number": 6, "offered_per_s": 1_463_000.0, "verdict": "undecided"}),
        trials=trials,
        seconds=372.0,
        limit="SUT CPU 188 % of 200 %: the engine is CPU bound; driver used 9 %",
    )
    gone = {"rate": None, "latency": Latencies(), "sinks": (), "backlog": None, "driver": None, "operators": ()}
    return made_up_result(search=search, processes=(), phases=(), **gone)


LABEL = "8 s every 4 s by gem_pack_id: revenue = sum(price)"
FLOW = [
    {"name": "purchases", "kind": "source", "label": "user_id int, gem_pack_id int, price int", "inputs": []},
    {"name": "aggregate", "kind": "window aggregate", "label": LABEL, "inputs": ["purchases"]},
    {"name": "revenue", "kind": "sink", "label": "append", "inputs": ["aggregate"]},
]  # fmt: skip


@pytest.fixture
def now() -> datetime:
    return NOW


@pytest.fixture
def flow() -> list[dict[str, object]]:
    return made_up_flow()


@pytest.fixture
def experiment() -> Experiment:
    return made_up_experiment()


def made_up_experiment() -> Experiment:
    return Experiment(workload="made_up_aggregation", load=Load(rate=200_000.0))


def made_up_flow() -> list[dict[str, object]]:
    return [dict(node) for node in FLOW]


def whole_run(at: Path, experiment: Experiment) -> RunFolder:
    """A whole made-up run in a new folder below `at`."""
    folder = RunFolder.create(at / "runs", "made_up_aggregation", "spark", NOW)
    folder.write_experiment(experiment)
    folder.write_series(made_up_series())
    folder.write_engine_table("batches", made_up_batches())
    folder.write_hlog(made_up_hlog())
    folder.write_result(made_up_result())
    return folder


@pytest.fixture
def run_folder(tmp_path: Path, experiment: Experiment) -> RunFolder:
    """A whole made-up run."""
    return whole_run(tmp_path, experiment)


@pytest.fixture
def bare_folder(tmp_path: Path, experiment: Experiment) -> RunFolder:
    """A made-up run of which only the result was kept: quick to render."""
    folder = RunFolder.create(tmp_path / "runs", "made_up_aggregation", "spark", NOW)
    folder.write_experiment(experiment)
    folder.write_result(made_up_result())
    return folder


@pytest.fixture
def search_folder(tmp_path: Path, experiment: Experiment) -> RunFolder:
    """A made-up search with the folders of its first three trials."""
    folder = RunFolder.create(tmp_path / "runs", "made_up_aggregation", "spark", NOW)
    folder.write_experiment(experiment)
    for number in (1, 2, 3):
        folder.trial(number, NOW).write_result(made_up_result())
    folder.write_result(made_up_search())
    return folder
