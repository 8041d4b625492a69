"""What is particular of the anatomy of DStreams; its stages are those of micro-batches."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.config.experiment import build
from streamgauge.core.errors import InputError
from streamgauge.core.schema import EVENT_ID, event_id_base
from streamgauge.engines.spark.latency_probe import STAGES as OF_MICRO_BATCHES
from streamgauge.engines.spark.latency_probe import Batch
from streamgauge.engines.spark.latency_probe_dstream import (
    READ_KNOWN_BEFORE_START,
    STAGES,
    Blocks,
    blocks_of,
    stage_times_of,
)
from streamgauge.engines.spark.session.reports import BATCH_ID, BATCH_TIME, DStreamProgress, batch_times
from streamgauge.studies.latency_breakdown import decompose
from streamgauge.studies.latency_breakdown.anatomy import check_trials
from streamgauge.studies.latency_breakdown.decompose import SavedResults, result_times
from tests.unit.engines.spark.test_latency_probe import at, trial_log

ASKED = {"command": "anatomy", "workload": "identity", "engine": "spark-dstream", "anatomy": {"rates": "1k"}}


def job(batch: int, when_ms: int, **more: str) -> str:
    message = {BATCH_ID: str(batch), BATCH_TIME: str(when_ms), **more}
    return json.dumps({"Event": "SparkListenerJobStart", "Stage IDs": [batch], "Properties": message})


def test_a_batch_was_made_at_the_time_of_its_jobs(tmp_path: Path) -> None:
    """Jobs of no batch, or of a query's, say nothing of it."""
    other = json.dumps({"Event": "SparkListenerJobStart", "Stage IDs": [7], "Properties": {BATCH_ID: "7"}})
    lines = [job(3, 1000), job(3, 1000), job(4, 2000), other]
    (tmp_path / "log").write_text("\n".join([*lines, json.dumps({"Event": "SparkListenerJobStart", "Stage IDs": []})]))
    assert batch_times(tmp_path) == {3: 1_000_000, 4: 2_000_000}


def test_stages_that_both_have_mean_the_same() -> None:
    """But for the wait, as a DStream's batch is made at its time, and for why nobody sees what is read."""
    both = STAGES.keys() & OF_MICRO_BATCHES.keys()
    unseen = "read, processed and written"
    assert both == {"generated", "waiting", "scheduled", "read", "processed and written", unseen}
    assert {name for name in both if STAGES[name] != OF_MICRO_BATCHES[name]} == {"waiting", unseen}


def test_an_interval_is_requested_as_of_micro_batches() -> None:
    """By the words in which Spark has it."""
    (resolved,) = check_trials(build({**ASKED, "anatomy": {"rates": "1k", "batch_windows": "500ms"}}))
    assert resolved.experiment.options["batch_interval"] == "500 milliseconds"


@pytest.mark.parametrize(
    ("more", "setting"),
    [
        ({"options": {"spark.eventLog.enabled": "true"}}, "option spark.eventLog.enabled"),
        (
            {"transport": "socket", "options": {"spark.driver.extraJavaOptions": "-Xint"}},
            "option spark.driver.extraJavaOptions",
        ),
    ],
)
def test_what_is_not_known_is_refused(more: dict[str, object], setting: str) -> None:
    """Before anything starts."""
    with pytest.raises(InputError) as refused:
        check_trials(build({**ASKED, **more}))
    assert [problem.setting for problem in refused.value.problems] == [setting]


def test_what_blocks_need_is_free_where_there_are_none() -> None:
    """Over a queue nothing is logged of them."""
    assert check_trials(build({**ASKED, "options": {"spark.driver.extraJavaOptions": "-Xint"}}))


INTERVAL_US = 10_000
BATCH = Batch(
    started_us=at(50), fixed_us=at(55), planned_us=at(55), ended_us=at(110), launched_us=at(70), finished_us=at(85),
    run_us=15_000, read_us=at(60), committed_us=at(90),
)  # fmt: skip
SAID = [
    DStreamProgress("", 1, 0, blocks=[(0, 3, 1050, 5)]),
    DStreamProgress("", 0, 0, blocks=[(0, 3, 1010, 2), (0, 3, 1020, 3), (1, 4, 1010, 5)]),
    DStreamProgress("", 2, 0),
]
TOLD = {(3, 1010): at(25), (3, 1020): at(33), (3, 1050): at(61), (4, 1010): at(27)}


def results(event_ms: list[float], ids: list[int], partitions: list[int]) -> SavedResults:
    event_us = np.array([at(ms) for ms in event_ms], np.int64)
    event_ids = [event_id_base(0, partition) + number for partition, number in zip(partitions, ids, strict=True)]
    names = pa.table({EVENT_ID: np.array(event_ids, np.int64)})
    return SavedResults(event_us, np.full(len(ids), at(100), np.int64), np.array(partitions, np.int64), names)


def stages_of(found: SavedResults, blocks: dict[int, Blocks]) -> tuple[dict[str, Any], list[bool], Any]:
    ways, _, known = stage_times_of({0: BATCH}, result_times(trial_log(), found), blocks, INTERVAL_US)
    spent = {name: (of / 1000).tolist() for name, of in zip(ways.names, ways.spent_us.T, strict=True)}
    return spent, known.tolist(), ways


def test_blocks_are_in_the_order_of_their_batches() -> None:
    """Of each partition, with the lines that it had brought by each."""
    found = blocks_of(SAID, TOLD)
    assert found.keys() == {0, 1}
    assert found[0].ends.tolist() == [2, 5, 10]
    assert found[0].batches.tolist() == [0, 0, 1]
    assert found[0].started_us.tolist() == [at(10), at(20), at(50)]
    assert found[0].reported_us.tolist() == [at(25), at(33), at(61)]


def test_after_a_block_without_a_time_nothing_is_known() -> None:
    """Of its partition, so that no line is counted into a wrong block."""
    found = blocks_of(SAID, {block: when for block, when in TOLD.items() if block != (3, 1020)})
    assert found[0].ends.tolist() == [2]
    assert found[1].ends.tolist() == [5]


def test_stages_are_worked_out_by_hand() -> None:
    """Of an event of 4 ms, offered at 11 within its block's interval, which was over at 20; Spark was told at 25, made
    the batch at 50, began it at 55, and launched a task at 70. Another waited in the socket for a block that began at
    20. The third is in another batch than it was read in, and the last is in no block.
    """
    found, known, ways = stages_of(results([4, 6, 4, 8], [0, 2, 5, 10], [0, 0, 0, 0]), blocks_of(SAID, TOLD))
    assert known == [True, True, False, False]
    assert found == {
        "generated": [7, 5], "received": [0, 9], "in a block": [9, 10], "stored and announced": [5, 3],
        "in a batch": [25, 17], "queued": [5, 5], "scheduled": [15, 15], "read, processed and written": [30, 30],
    }  # fmt: skip
    assert not ways.contradicted_us.any()


@pytest.mark.parametrize("moved_us", [-30_000, 40_000])
def test_announcements_that_are_moved_are_noticed(moved_us: int) -> None:
    """Before their events were offered, or after their batch began."""
    reported = {block: when + moved_us for block, when in TOLD.items()}
    _, _, ways = stages_of(results([4], [0], [0]), blocks_of(SAID, reported))
    assert decompose.contradicted_share(ways) > 0.02


@pytest.mark.parametrize(("read_us", "apart"), [(at(60), []), (at(75), [5000]), (at(49), [6000])])
def test_a_batch_is_reported_before_its_first_task(read_us: int, apart: list[int]) -> None:
    """And after Spark began with it: so what Spark says of its begin is held from both sides."""
    assert list(Batch(**{**BATCH.__dict__, "read_us": read_us}).contradictions_us(READ_KNOWN_BEFORE_START)) == apart
