"""The whole path on a real Spark: each workload from plan to verified answers, a restart, a death, starts that fail."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.options_and_settings import build
from streamgauge.core.clock import Clock
from streamgauge.core.errors import EngineError
from streamgauge.core.operator_rows import OperatorCounts, OperatorRows
from streamgauge.core.trial_snapshot import TrialSnapshot
from streamgauge.core.trial_spans import TrialSpans
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.dataflow import graph
from streamgauge.engines.registry import starter_of
from streamgauge.harness.testbed import TestBed
from streamgauge.loadgen.plan import Plan
from streamgauge.metrics.log.trial_log import Batch
from streamgauge.metrics.records import RUNNER
from streamgauge.metrics.summary import operators
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.validate import check
from streamgauge.system.child_processes import wait_until
from streamgauge.trial.conductor import START_LEAD_US, TrialConductor, next_start, testbed_settings
from streamgauge.trial.extension_policy import JudgedTrial
from streamgauge.trial.progress import snapshots
from streamgauge.trial.trial_result import TrialResult
from streamgauge.workloads import registry
from streamgauge.workloads.helpers.places import place_of
from tests.helpers_application_variants import operators_of, together, ways_of
from tests.helpers_restart import RESTARTED_S, Restart
from tests.helpers_verdicts import sentence_against

pytestmark = pytest.mark.spark

WINDOW = {"range": "2s", "slide": "1s"}
WARM_UP, DURATION_S = "4s", 6.0
Progress = Callable[[TrialSnapshot], None]


@dataclass
class Case:
    """A workload on a started test bed."""

    resolved: ResolvedExperiment
    testbed: TestBed
    folder: RunFolder
    rate_per_s: float
    counted: list[OperatorRows] = field(default_factory=list)
    """What Spark counted in all batches so far."""

    def __post_init__(self) -> None:
        engine, rows = self.testbed.engine, self.testbed.engine.operator_row_counts

        def count(*args: Any, **kwargs: Any) -> OperatorCounts:
            counts = rows(*args, **kwargs)
            self.counted += counts.rows
            return counts

        engine.operator_row_counts = count  # type: ignore[method-assign]

    def trial(self, number: int, on_progress: Progress = lambda _: None) -> TrialResult:
        """A short real trial in a folder of its own."""
        folder = self.folder.trial(number, datetime.now(UTC))
        settings = JudgedTrial(
            self.resolved, self.rate_per_s, fresh=True, duration_s=DURATION_S, may_extend=False, drain_s=RESTARTED_S
        )
        return TrialConductor(self.resolved, self.testbed, snapshots(on_progress)).run(folder, settings)

    def counted_with(self, operators: Sequence[str]) -> dict[str, dict[Batch, int]]:
        """Rows of each operator in each batch, as soon as Spark has told of a batch with all of these, which it may do
        after its results have come.
        """
        found: dict[str, dict[Batch, int]] = defaultdict(dict)

        def known() -> bool:
            self.testbed.engine.operator_row_counts(RESTARTED_S)
            for row in self.counted:
                found[row.operator][row.query, row.batch] = row.rows
            return bool(set.intersection(*(set(found[name]) for name in operators)))

        assert wait_until(known, RESTARTED_S)
        return found


@contextmanager
def started(
    root: Path,
    workload: str,
    rate: str,
    parameters: dict[str, Any],
    options: dict[str, str],
    warm_up: str = WARM_UP,
    tuning: str = "tuned",
) -> Iterator[Case]:
    """Generators, recorder and Spark, running; ended at the end."""
    # No duration: one as short as these trials is refused, since it could not be judged.
    # While Spark is restarted nothing is read, however long that takes: the queue must not fill meanwhile.
    load = {"rate": rate, "warmup": warm_up, "generators": 2, "bound": "5m"}
    values = {"workload": workload, "parameters": parameters, "options": {"probes": "on", **options}, "load": load,
              "out": str(root), "tuning": tuning}  # fmt: skip
    resolved = check(build(values))
    folder = RunFolder.create(root, workload, "spark", datetime.now(UTC))
    rate_per_s = resolved.experiment.load.rate
    with TestBed(testbed_settings(resolved), starter_of("spark", None), folder.path, Clock.fixed_now()) as testbed:
        testbed.start(resolved.plan(next_start(testbed) - START_LEAD_US, rate_per_s, 1.0))
        yield Case(resolved, testbed, folder, rate_per_s)


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def spark_pids(testbed: TestBed) -> list[int]:
    return [pid for _, role, pid in testbed.processes() if role == "sut"]


def check_answers(judged: TrialResult, rows_least: int) -> None:
    """Judged by an independent reference, and nothing wrong with any answer."""
    found = judged.result.verification
    assert found is not None
    assert judged.record.drained
    assert (found.judged, found.independent) == (True, True)
    assert found.fault_count == 0, found.examples
    assert found.matched == found.expected >= rows_least


def state_of(judged: TrialResult, check_name: str) -> str:
    return next(one.state for one in judged.result.verdict.checks if one.name == check_name)


# (name, workload, rate, parameters, options, fewest answers): the ways in which operators are done. Sessions without a
# run around them try most of these in make test (test_spark_nodes.py).
CASES: list[tuple[str, str, str, dict[str, Any], dict[str, str], int]] = [
    ("filter", "filter", "20k", {"above": "50"}, {}, 80_000),
    ("stamped_text", "stamped_text", "20k", {}, {}, 80_000),
    ("windowed_aggregation, panes", "windowed_aggregation", "20k", WINDOW | {"packs": "200"}, {}, 1500),
    (
        "windowed_aggregation, window",
        "windowed_aggregation",
        "20k",
        WINDOW | {"packs": "200"},
        {"lowering.aggregate": "window"},
        1500,
    ),
    ("count", "count", "20k", {"packs": "100"}, {}, 100),
    ("windowed_join, stream_stream", "windowed_join", "5k", WINDOW, {"lowering.join": "stream_stream"}, 1000),
    ("windowed_join, packed", "windowed_join", "5k", WINDOW, {"lowering.join": "packed"}, 1000),
]


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_every_answer_is_verified(tmp_path: Path, case: tuple[Any, ...]) -> None:
    """A short real trial: every result that the plan implies comes once, with the right values and lineage."""
    _, workload, rate, parameters, options, rows_least = case
    with started(tmp_path, workload, rate, parameters, options) as running:
        judged = running.trial(1)
        lost = lost_by_count(running, judged)
    assert lost <= {0, None}
    assert 0 in lost or "packed" in options.values()  # it reads blocks, whose rows Spark does not see
    check_answers(judged, rows_least)
    check_path(judged)


@pytest.mark.long
def test_a_process_beside_aggregates_is_counted_whole(tmp_path: Path) -> None:
    """Only parts of its rows leave Python, for countries, cities and visits alike. What they state of each batch is how
    many of the clicks delivered in it come from an address in a known place.
    """
    with started(tmp_path, "click_analytics", "10k", {"visitors": "1000", "pages": "100"}, {}) as running:
        judged = running.trial(1)
    check_answers(judged, 100)
    trial_log = judged.record.trial_log
    counted = {(row.query, row.batch): row.rows for row in running.counted if row.operator == "geo_finder"}
    assert sum(counted.values()) > 0
    expected = dict.fromkeys(counted, 0)
    for partition, parts in enumerate(trial_log.deliveries):
        for part in parts:
            if (batch := (part.query, part.batch)) in expected:
                expected[batch] += clicks_from_known_places(trial_log.plan, partition, part.from_us, part.to_us)
    assert counted == expected


def clicks_from_known_places(plan: Plan, partition: int, from_us: int, to_us: int) -> int:
    first, last = (plan.count_before(0, partition, when_us) for when_us in (from_us, to_us))
    clicks = plan.batch(0, partition, first, last, ("ip", "url")).to_pylist()
    return sum(bool(click["url"]) and place_of("", click["ip"])[0] is not None for click in clicks)


UPDATES = ("counts", "count", "status", "countries", "cities", "visits", "uniques")
"""Sinks of updates."""
GRID = {"range": "2s", "slide": "1s", "slice_length": "1s", "slices_per_day": "3"}
"""Windows and slices of `smart_grid` that close within a short trial."""

# Applications that share a Spark, each with an equal part of the rate: (rate, sink of each to its fewest answers)
APPLICATIONS: list[tuple[str, dict[str, dict[str, Any]], dict[str, int]]] = [
    (
        "30k",
        {
            "spike_detection": {"sd.moving_average.window": "100"},
            "fraud_detection": {"customers": "1000", "frauds": "0.1"},
            "bargain_index": {},
        },
        {"spikes": 25, "outliers": 250, "bargains": 5_000},
    ),
    (
        "20k",
        {
            "trending_topics": {"window": "2s", "frequency": "1s"},
            "ads_analytics": {"window": "2s", "frequency": "1s", "queries": "50"},
        },
        {"rankings": 40, "rates": 500},
    ),
    (
        "20k",
        {
            "word_count": {},
            "log_processing": {"lines_per_second": "20"},
            "windowed_aggregation": WINDOW | {"packs": "200"},
        },
        {"revenue": 1000, "counts": 1000, "count": 5, "status": 5, "countries": 20, "cities": 80},
    ),
    (
        "30k",
        {"click_analytics": {"visitors": "1000", "pages": "100"}, "yahoo_streaming": {"window": "1s"}},
        {"visits": 1, "uniques": 1, "countries": 20, "cities": 80, "campaigns": 300},
    ),
    (
        "30k",
        {"traffic_monitoring": {}, "reinforcement_learner": {}},
        {"speeds": 10_000, "actions": 10_000},
    ),
    ("10k", {"machine_outlier": {}}, {"alerts": 500}),
    (
        "9k",
        {"sentiment_analysis": {}, "spam_filter": {}, "voipstream": {}},
        {"sentiments": 4_000, "verdicts": 4_000, "telemarketers": 30},
    ),
    (
        "20k",
        {"smart_grid": GRID, "throughput": {}},
        {"house_outliers": 10, "house_predictions": 10, "plug_predictions": 300, "echoes": 40_000},
    ),
    (
        "15k",
        {
            "voipstream": {"filter": "bloom"},
            "sentiment_analysis": {"classifier_type": "basic"},
            "spam_filter": {"training_share": "0"},
        },
        {"telemarketers": 30, "sentiments": 4_000, "verdicts": 4_000},
    ),
    (
        "15k",
        {"word_count": {"window": "1s"}, "smart_grid": {**GRID, "second_range": "4s"}},
        {
            "counts": 1000,
            "house_outliers": 10,
            "second_house_outliers": 10,
            "house_predictions": 10,
            "plug_predictions": 300,
        },
    ),
    (
        "15k",
        {"log_processing": {"lines_per_second": "20", "lp.volume_counter.window": "60"}},
        {"count": 80_000, "status": 5, "countries": 20, "cities": 80},
    ),
    (
        "15k",
        {"click_analytics": {"window": "1s", "visitors": "1000", "pages": "100"}},
        {"visits": 3, "uniques": 3, "countries": 20, "cities": 80},
    ),
]
NAMES = (
    "rows", "windows", "updates", "clicks", "processes", "machines", "texts", "grid", "other ways",
    "counted by window", "minutes remembered", "clicks by window",
)  # fmt: skip
IN_LONG = ("clicks", "grid", "other ways", "counted by window", "minutes remembered", "clicks by window")
KILLED = "updates"
"""The group whose Spark is killed in make test: rows of windows, and updates of several sinks."""
GROUPS = [
    pytest.param(
        *group, killed, id=f"{name}{', killed' * killed}", marks=[pytest.mark.long] * (killed and name != KILLED)
    )
    for name, group in zip(NAMES, APPLICATIONS, strict=True)
    for killed in (False, True)
    if killed or name not in (KILLED, *IN_LONG)
]


@pytest.mark.parametrize(("rate", "parts", "rows_least", "killed"), GROUPS)
def test_every_application_is_exactly_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    restart: Restart,
    rate: str,
    parts: dict[str, dict[str, Any]],
    rows_least: dict[str, int],
    killed: bool,
) -> None:
    """Several applications beside each other, also killed in mid-trial and started again from their checkpoints: every
    result of each sink comes once, with the right values and lineage.
    """
    workload = together(parts)
    monkeypatch.setitem(registry._all(), workload.name, workload)
    warm_up = "20s" if "machine_outlier" in parts else WARM_UP  # its results wait for two batches more
    with started(tmp_path, workload.name, rate, {}, {}, warm_up) as running:
        judged = running.trial(1, restart.once(running.testbed) if killed else lambda _: None)
        if {*LEARNING} <= {node.name for node in graph.operators(running.resolved.flow)}:
            check_handed_on(running.counted_with(LEARNING))
    if killed:
        restart.check(judged)
    check_answers(judged, sum(rows_least.values()))
    check_ways(judged)
    assert judged.verified is not None
    found = {sink.name: sink.verification.matched for sink in judged.verified.sinks}
    assert found.keys() == rows_least.keys()
    assert all(found[name] >= least for name, least in rows_least.items()), found


IDIOMATIC: dict[str, dict[str, Any]] = {
    "windowed_join": {**WINDOW, "packs": "200"},
    "windowed_aggregation": {**WINDOW, "packs": "200"},
    "word_count": {},
}
IN_A_HURRY = {"probes": "progress", "worker_start": "unpacked"}


def test_what_a_user_would_write_is_right_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The profile `idiomatic`: windows by Spark's own operators, a join and updates, on one Spark; a result says which
    settings are not Spark's own. Python workers only start as in `tuned`: as Spark starts them, those of three queries
    at once miss its limit of 10 s on a busy machine, for which Spark has no setting.
    """
    workload = together(IDIOMATIC)
    monkeypatch.setitem(registry._all(), workload.name, workload)
    with started(tmp_path, workload.name, "6k", {}, IN_A_HURRY, tuning="idiomatic") as running:
        judged = running.trial(1)
    check_answers(judged, 1_000)
    check_ways(judged)
    result = judged.result
    assert (result.tuning, result.settings["lowering.aggregate"]) == ("idiomatic", "window")
    left = {"source", "columns", "nullable", "trigger", "jit", "lowering.aggregate", "file_system", "python_workers"}
    assert left <= set(result.settings)
    assert not left & set(result.changed_settings)
    assert {"spark.driver.memory", "spark.sql.shuffle.partitions", "worker_start"} <= set(result.changed_settings)


LEARNING = ("addressed", "mails", "training_sum", "each_word", "word_probability", "bayes_rule")


def check_handed_on(counted: dict[str, dict[Batch, int]]) -> None:
    """What goes from class to class is never rows of Spark, and counted batch by batch all the same: all mails, some
    forty words of each, the words of those that are judged, which as many mails come of as were addressed.
    """
    known = set.intersection(*(set(counted[name]) for name in LEARNING))
    assert len(set(counted["mails"]) - known) <= 1  # Spark may not have told of the last one yet
    addressed, mails, summed, words, judged, verdicts = (
        {batch: counted[name][batch] for batch in known} for name in LEARNING
    )
    assert summed == mails
    assert sum(words.values()) == pytest.approx(40 * sum(mails.values()), rel=0.05)
    assert all(rows <= words[batch] for batch, rows in judged.items())
    assert sum(judged.values()) == pytest.approx(40 * sum(addressed.values()), rel=0.05)
    assert verdicts == addressed


@pytest.mark.long
def test_malformed_records_of_own_data_stop_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells that are no value or are not there, keys among them, and a line that is no row: Spark's answer is that of
    the reference, in native windows and in a keyed process, and what was malformed is counted in the result.
    """
    workload = together({"spike_detection": {"moving_average_window": "20"}, "windowed_aggregation": WINDOW})
    monkeypatch.setitem(registry._all(), workload.name, workload)
    sensors, purchases = tmp_path / "sensors.csv", tmp_path / "purchases.csv"
    readings = [f"mote-{n % 7},{20 + n % 3 + 10 * (n % 11 == 0)}" for n in range(500)]
    readings[3:7] = ["mote-3", ",21.5", "mote-5,", "mote-6,warm"]
    sensors.write_text("\n".join(["device,temp", *readings]) + "\n")
    bought = [f"{n % 90},{n % 100}" for n in range(500)]
    bought[3:7] = [",3", "much,4", "5,", "6,3.5"]
    purchases.write_text("\n".join(["gem_pack_id,price", *bought]) + "\n")
    files = {"data.sensors": str(sensors), "data.purchases": str(purchases)}
    with started(tmp_path, workload.name, "10k", files, {}) as running:
        judged = running.trial(1)
    check_answers(judged, 5_000)
    check_ways(judged)
    counted = {
        column.name: (column.unreadable, column.empty, column.numbered)
        for each in judged.result.data
        for column in each.columns
    }
    assert counted == {"device": (0, 1, 7), "temp": (1, 1, None), "gem_pack_id": (1, 1, None), "price": (1, 1, None)}
    assert {each.stream: each.left_out for each in judged.result.data} == {"sensors": 1, "purchases": 0}
    assert any("temp is null in 2 of " in note for note in judged.result.notes)


def test_every_workload_is_verified_on_spark() -> None:
    """A workload that nobody put into a case is found here."""
    cases = {workload for _, workload, *_ in CASES} | {name for _, parts, _ in APPLICATIONS for name in parts}
    assert cases | {"identity"} == set(registry.names())  # identity: the warm test bed's, below


def test_every_way_of_an_application_is_verified_on_spark() -> None:
    """A parameter that makes another flow of an application, and that nobody put into a case, is found here."""
    parts = [part for _, parts, _ in APPLICATIONS for part in parts.items()]
    tried = {(name, operators_of(name, parameters)) for name, parameters in parts}
    names = sorted({name for name, _ in parts})
    lacking = [(name, choice) for name in names for way, choice in ways_of(name) if (name, way) not in tried]
    assert lacking == []


def check_path(judged: TrialResult) -> None:
    """The connection held, and every event went all the way once."""
    assert state_of(judged, "connected") == "ok"
    assert {one.lost for one in judged.result.operators} <= {0, None}
    check_ways(judged)


def lost_by_count(running: Case, judged: TrialResult) -> set[int | None]:
    """What each operator lost by Spark's count and the driver's, over all batches that Spark told of: where it starts
    slowly, none ends in so short a span, and the last one may still be ending when its results have come.
    """
    known = operators.operator_row_counts(running.counted, judged.record.trial_log)
    known = replace(known, ends={batch: end for batch, end in known.ends.items() if batch in known.engine})
    ever = TrialSpans(0, 0, FAR_FUTURE_US, FAR_FUTURE_US)
    return {
        one.lost for one in operators.summaries(running.testbed.settings.flow, known, judged.record.trial_log, ever)
    }


def check_ways(judged: TrialResult) -> None:
    """Latencies are sensible, and every event went all the way."""
    assert state_of(judged, "answers") == "ok"
    assert judged.verified is not None
    for sink in judged.verified.sinks:
        latency = sink.latencies.latencies.event_time_us
        assert latency is not None
        # An update counts from its batch's last event: of few large batches, none of those may lie in the span.
        assert latency.count > 0 or sink.name in UPDATES
        assert latency.min is None or latency.min > 0
    assert judged.verified.negatives == 0
    driver = judged.result.driver
    assert driver is not None
    assert driver.events_planned == driver.events_offered == driver.events_handed_out == driver.events_committed


def test_a_warm_rig_carries_trials_until_spark_is_killed(tmp_path: Path) -> None:
    """A verified trial; in the second on the same Spark it is killed: `connected` fails, and nothing is left."""
    with started(tmp_path, "identity", "20k", {}, {}) as running:
        judged = running.trial(1)
        assert lost_by_count(running, judged) == {0}
        check_answers(judged, 90_000)
        check_path(judged)
        pids = spark_pids(running.testbed)
        assert len(pids) >= 2

        def kill(shown: TrialSnapshot) -> None:
            if shown.elapsed_s > 5 and not gone(pids[0]):
                psutil.Process(pids[0]).kill()

        judged = running.trial(2, kill)
        verdict = judged.result.verdict
        assert "-9" in sentence_against(verdict, "connected")
        trial = running.folder.trials()[1]
        assert trial.read_result() == judged.result
        assert json.loads((trial.path / "result.json").read_text())["verdict"]["value"] == verdict.value
        driver = [pid for name, role, pid in running.testbed.processes() if role == "driver" and name != RUNNER]
        assert len(driver) == 3
    assert wait_until(lambda: all(map(gone, [*pids, *driver])), 20)


def test_a_start_that_fails_gives_sparks_own_reason(tmp_path: Path) -> None:
    """A few lines that name the cause, the file with the rest, and no process left behind."""
    options, reason = {"spark.serializer": "no.such.Serializer"}, "no.such.Serializer"
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with pytest.raises(EngineError) as caught, started(tmp_path, "identity", "20k", {}, options):
        pass
    lines = str(caught.value).splitlines()
    assert reason in str(caught.value)
    assert len(lines) <= 4
    assert "whole log:" in lines[-1]
    assert caught.value.log is not None
    assert Path(caught.value.log).exists()
    assert "Traceback" not in str(caught.value)

    def left() -> set[int]:
        return {child.pid for child in psutil.Process().children(recursive=True)} - before

    assert wait_until(lambda: all(map(gone, left())), 20)
