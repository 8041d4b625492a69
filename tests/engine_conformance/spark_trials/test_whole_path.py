"""The whole path on a real Spark: each workload from plan to verified answers, also killed and restarted."""

from pathlib import Path
from typing import Any

import pytest

from streamgauge.conformance.trials import Restart
from streamgauge.dataflow import graph
from streamgauge.loadgen.plan import Plan
from streamgauge.metrics.trial_log import Batch
from streamgauge.workloads import registry
from streamgauge.workloads.helpers.places import place_of
from tests.engine_conformance.spark_trials.helpers_spark_trials import (
    WARM_UP,
    check_path,
    check_ways,
    lost_by_count,
    started,
)
from tests.helpers_application_variants import operators_of, together, ways_of
from tests.helpers_broker_trials import check_results, check_sinks

pytestmark = pytest.mark.spark
WINDOW = {"range": "2s", "slide": "1s"}
# (name, workload, rate, parameters, options, fewest answers): the ways in which operators are done. Sessions without a
# run around them try most of these in make test (test_nodes.py).
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
    check_results(judged, rows_least)
    check_path(judged)


@pytest.mark.long
def test_a_process_beside_aggregates_is_counted_whole(tmp_path: Path) -> None:
    """Only parts of its rows leave Python, for countries, cities and visits alike. What they state of each batch is how
    many of the clicks delivered in it come from an address in a known place.
    """
    with started(tmp_path, "click_analytics", "10k", {"visitors": "1000", "pages": "100"}, {}) as running:
        judged = running.trial(1)
    check_results(judged, 100)
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
        "25k",
        {
            "trending_topics": {"window": "2s", "frequency": "1s"},
            "ads_analytics": {"window": "2s", "frequency": "1s", "queries": "50"},
            "machine_outlier": {},
        },
        {"rankings": 40, "rates": 500, "alerts": 500},
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
    (
        "6k",
        {"sentiment_analysis": {}, "spam_filter": {}, "voipstream": {}},
        {"sentiments": 2_500, "verdicts": 2_500, "telemarketers": 20},
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
    "rows", "windows", "updates", "clicks", "processes", "texts", "grid", "other ways",
    "counted by window", "minutes remembered", "clicks by window",
)  # fmt: skip
IN_LONG = (
    "rows", "windows", "clicks", "processes", "texts", "grid", "other ways", "counted by window", "minutes remembered",
    "clicks by window",
)  # fmt: skip
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
        restart = Restart(running.testbed)
        judged = running.trial(1, observe=restart if killed else None)
        if {*LEARNING} <= {node.name for node in graph.operators(running.resolved.flow)}:
            check_handed_on(running.counted_with(LEARNING))
    if killed:
        restart.check(judged)
    check_sinks(judged, rows_least)
    check_ways(judged)


IDIOMATIC: dict[str, dict[str, Any]] = {
    "windowed_join": {**WINDOW, "packs": "200"},
    "windowed_aggregation": {**WINDOW, "packs": "200"},
    "word_count": {},
}
IN_A_HURRY = {"probes": "progress", "worker_start": "unpacked"}


@pytest.mark.long
def test_what_a_user_would_write_is_right_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The profile `idiomatic`: windows by Spark's own operators, a join and updates, on one Spark; a result says which
    settings are not Spark's own. Python workers only start as in `tuned`: as Spark starts them, those of three queries
    at once miss its limit of 10 s on a busy machine, for which Spark has no setting.
    """
    workload = together(IDIOMATIC)
    monkeypatch.setitem(registry._all(), workload.name, workload)
    with started(tmp_path, workload.name, "6k", {}, IN_A_HURRY, tuning="idiomatic") as running:
        judged = running.trial(1)
    check_results(judged, 1_000)
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
    check_results(judged, 5_000)
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
    elsewhere = {"identity"} | {name for name in registry.names() if name.startswith("scalability_")}
    assert cases | elsewhere == set(registry.names())  # test_life_of_spark.py, test_applications.py


def test_every_way_of_an_application_is_verified_on_spark() -> None:
    """A parameter that makes another flow of an application, and that nobody put into a case, is found here."""
    parts = [part for _, parts, _ in APPLICATIONS for part in parts.items()]
    tried = {(name, operators_of(name, parameters)) for name, parameters in parts}
    names = sorted({name for name, _ in parts})
    lacking = [(name, choice) for name in names for way, choice in ways_of(name) if (name, way) not in tried]
    assert lacking == []
