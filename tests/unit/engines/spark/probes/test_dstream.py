"""What is particular of the anatomy of DStreams; its stages are those of micro-batches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamgauge.config.options_and_settings import build
from streamgauge.core.errors import InputError
from streamgauge.engines.spark.latency_probe import STAGES as OF_MICRO_BATCHES
from streamgauge.engines.spark.latency_probe_dstream import STAGES
from streamgauge.engines.spark.session.logs import BATCH_ID, BATCH_TIME, batch_times
from streamgauge.studies.latency_breakdown.anatomy import check_trials

ASKED = {"command": "anatomy", "workload": "identity", "engine": "spark-dstream", "anatomy": {"rates": "1k"}}


def job(batch: int, when_ms: int, **more: str) -> str:
    said = {BATCH_ID: str(batch), BATCH_TIME: str(when_ms), **more}
    return json.dumps({"Event": "SparkListenerJobStart", "Stage IDs": [batch], "Properties": said})


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


def test_an_interval_is_asked_for_as_of_micro_batches() -> None:
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
    options = {"spark.driver.extraJavaOptions": "-Xint"}
    assert check_trials(build({**ASKED, "options": options}))
