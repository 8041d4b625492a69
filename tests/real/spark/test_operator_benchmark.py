"""Operators timed alone on a real Spark: each kind of them, and a planted slow one is found.

The classes are here, and travel by value: a test is no module that Spark's workers could import.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pyarrow as pa
import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import Experiment, build
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import flow as flow_of
from streamgauge.dataflow.builder import hop, session, source, table, tumble
from streamgauge.dataflow.nodes import Flow
from streamgauge.dataflow.operators.api import ROW, Processor
from streamgauge.engines.spark.parallelism import SETTING
from streamgauge.loadgen.fields import Integer, Key, StreamSpec
from streamgauge.studies.operator_profile.characterize import apply_advice, characterize
from streamgauge.workloads import registry
from streamgauge.workloads.registry import Job, Parameters, Workload

pytestmark = [pytest.mark.spark, pytest.mark.long]

FEW = {"slices": 6, "slice_events": 500, "warmup_slices": 2}
SLEEP_S = 0.5
PURCHASES = StreamSpec("purchases", (Key("user_id", 50), Key("gem_pack_id", 10), Integer("price", 1, 100)), 0.5)
ADS = StreamSpec("ads", (Key("user_id", 50), Key("gem_pack_id", 10)), 0.5)


@pytest.fixture(autouse=True)
def by_value() -> Iterator[None]:
    """The classes of this module travel with the operators."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


class Slow(Processor):
    """Passes everything on, after a sleep."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        time.sleep(self._seconds)
        rows = pa.array(np.arange(batch.num_rows))
        return pa.RecordBatch.from_arrays([batch.column("price"), rows], ["price", ROW])

    def snapshot(self) -> bytes:
        return b""

    def restore(self, state: bytes) -> None:
        pass


def everything() -> Flow:
    """An operator of each kind, in each way that it is done, and a slow one."""
    bought, shown = source("purchases", PURCHASES.schema), source("ads", ADS.schema)
    names = table(
        "names", {"gem_pack_id": [1, 2], "title": ["a", "b"]}, Schema.from_types(gem_pack_id="int", title="string")
    )
    both = ("user_id", "gem_pack_id")
    passed = {"reads": "price", "gives": Schema.from_types(price="int"), "truth": "SELECT price, _row FROM input"}
    windows = bought.window(hop(2, 1), keys="gem_pack_id").aggregate(revenue="sum(price)", name="panes")
    users = bought.select(user_id="user_id", name="buyers").union(shown.select(user_id="user_id", name="viewers"))
    return flow_of(
        windows.top(3, by="revenue", name="top").sink("tops"),
        bought.window(tumble(1), keys="gem_pack_id").aggregate(mean="avg(price)", name="whole_windows").sink("means"),
        bought.window(session(0.05), keys="user_id").aggregate(n="count(*)", name="sessions").sink("sessions_out"),
        bought.join(shown, window=tumble(1), on=both, name="join").sink("joined"),
        bought.join(shown, window=tumble(1), on=both, name="packed").sink("packed_out"),
        bought.interval_join(shown, on=both, latest=1, name="near").sink("near_out"),
        bought.distinct(keys="user_id", name="first").running(keys="gem_pack_id", n="count(*)", name="firsts")
        .sink("n"),
        bought.distinct(keys="user_id", window=tumble(1), name="first_of_windows").sink("first_out"),
        users.where("user_id > 10", name="some").sink("users"),
        bought.lookup(names, on="gem_pack_id", how="left", name="titles").sink("titled"),
        bought.select(parts="array(price, user_id)", name="arrays").explode(part="parts", name="parts")
        .select(part="part", name="part").sink("parts_out"),
        bought.process(Slow, parameters={"seconds": SLEEP_S}, name="slow", **passed).sink("slow_out"),
        bought.process(Slow, parameters={"seconds": 0.0}, keys="user_id", name="keyed", **passed).sink("keyed_out"),
    )  # fmt: skip


def experiment_of(tmp_path: Path, workload: str, settings: dict[str, int], **more: Any) -> Experiment:
    values = {"command": "characterize", "workload": workload, "out": str(tmp_path), **more}
    return build({**values, "characterize": settings, "load": {"rate": 1000}})


def characterized(tmp_path: Path, workload: str, settings: dict[str, int], **more: Any) -> dict[str, Any]:
    return characterize(experiment_of(tmp_path, workload, settings, **more)).model_dump(mode="json")


def test_word_count_is_characterized_and_its_advice_applied(tmp_path: Path) -> None:
    """A hundred small slices: exact selectivities, a p99 of each operator, and so instances for each, with which Spark
    runs a trial, and its answers are right.
    """
    experiment = experiment_of(tmp_path, "word_count", {"slices": 100, "slice_events": 50, "warmup_slices": 3})
    profile = characterize(experiment)
    found = profile.model_dump(mode="json")
    rows = {row["name"]: row for row in found["operators"]}
    assert (rows["splitter"]["rows_in"], rows["splitter"]["selectivity"]) == ([103 * 50], 10.0)
    assert rows["counter"]["rows_in"] == [103 * 500]
    for name in ("splitter", "counter"):
        time_, row = rows[name]["time_per_tuple_us"], rows[name]
        # Fifty lines are few: on a restless machine they cannot always be told from only reading.
        assert (row["time_reason"] is None) is time_["distinguishable"]
        assert (time_["slices"], row["time_method"]) == (100, "difference")
        assert (time_["p99"] is not None) is time_["distinguishable"]
        assert row["advised_instances"] >= 1
    for name in ("sentences", "counts"):
        assert rows[name]["time_per_tuple_us"] is None
        assert rows[name]["time_reason"]
    assert found["memory"]["p50"] > 2**26
    assert found["settings"]["master"] == "local[1]"
    assert list(tmp_path.glob("*-characterize/engine/spark.log"))
    short = experiment.load.model_copy(update={"duration": 10.0, "warmup": 5.0})
    applied = apply_advice(experiment.model_copy(update={"load": short}), profile, lambda _: None).applied
    assert applied is not None
    trial = RunFolder.open(applied.run).read_result()
    assert Path(applied.run).parent == Path(profile.folder)
    assert trial.settings[SETTING] == applied.after == str(profile.apply.value)
    assert trial.verification is not None
    assert trial.verification.right
    assert trial.verification.expected > 0


def test_every_kind_of_operator_is_timed_and_the_slow_one_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has a time by the method that is said; the one that sleeps has the greatest, and what it slept is in it."""
    job = Job(everything(), (PURCHASES, ADS))
    made = Workload("everything", "everything", "", "test", Parameters, lambda *_: job)
    monkeypatch.setitem(registry._all(), made.name, made)
    found = characterized(tmp_path, "everything", FEW, options={"lowering.packed": "packed"})
    rows = {row["name"]: row for row in found["operators"] if row["kind"] not in ("source", "sink")}
    assert {name: row["time_reason"] for name, row in rows.items() if row["time_per_tuple_us"] is None} == {}
    times = {name: row["time_per_tuple_us"] for name, row in rows.items()}
    # Of a handful of rows a slice, a few milliseconds more or less make each look slow.
    medians = {
        name: time_["median"]
        for name, time_ in times.items()
        if time_["distinguishable"] and time_["rows_per_slice"] >= 100
    }
    assert max(medians, key=medians.__getitem__) == "slow"
    a_tuple_us = 1e6 * SLEEP_S / rows["slow"]["time_per_tuple_us"]["rows_per_slice"]
    assert medians["slow"] > a_tuple_us / 2
    assert rows["keyed"]["time_method"] == "class_alone"
    assert {row["time_method"] for name, row in rows.items() if name != "keyed"} == {"difference"}
    assert found["notes"][0].startswith("fewer than 100 slices")


@pytest.mark.parametrize(
    ("job", "selectivity"), [("enrich", (1.0, 1.0)), ("revenue", (1e-6, 0.5)), ("rewards", (0.0, 0.1))]
)
def test_an_own_job_is_characterized(tmp_path: Path, job: str, selectivity: tuple[float, float]) -> None:
    """Each of the examples, as one operator: by its reference or in batch, and timed slice by slice."""
    path = Path(__file__).parents[3] / "examples" / f"{job}.py"
    found = characterized(tmp_path, str(path), {"slices": 6, "slice_events": 2_000, "warmup_slices": 1})
    (row,) = [row for row in found["operators"] if row["kind"] == "user_job"]
    assert (row["name"], row["rows_in"]) == (job, [14_000])
    assert selectivity[0] <= row["selectivity"] <= selectivity[1]
    assert row["time_per_tuple_us"] is not None, row["time_reason"]
    assert (row["time_reason"] or "p99 needs 100").startswith(("p99 needs 100", "below what can be told"))
    assert (row["time_per_tuple_us"]["median"] or 1) > 0
