"""Every kind of workload over a broker, with one partition and with several, each verified.

Partitions are read up to their own offsets, so no batch ends at one event time.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.loadgen.random.key_hash import partitions_of
from streamgauge.trial.trial_result import TrialResult
from tests.helpers_broker_trials import check_answers, on_a_broker, require_jars, started, trial

EXAMPLES = Path(__file__).parents[2] / "examples"
WINDOW = {"range": "2s", "slide": "1s"}
WORKLOADS: dict[str, tuple[str, dict[str, str]]] = {
    "windowed_aggregation": ("20k", {**WINDOW, "packs": "200"}),
    "word_count": ("2k", {}),
    "count": ("5k", {"packs": "50"}),
    "ads_analytics": ("2k", {}),
    "windowed_join": ("5k", {**WINDOW, "packs": "200"}),
    "spike_detection": ("5k", {"moving_average_window": "20", "devices": "40"}),
    str(EXAMPLES / "revenue.py"): ("5k", {}),
    str(EXAMPLES / "enrich.py"): ("5k", {}),
}


@pytest.fixture(scope="module")
def jars() -> None:
    require_jars("spark")


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda name: Path(name).stem)
@on_a_broker
def test_a_workload_is_right_with_any_number_of_partitions(tmp_path: Path, workload: str, partitions: int) -> None:
    """Two generators write four partitions; lag is there for each of them."""
    rate, parameters = WORKLOADS[workload]
    load: dict[str, Any] = {"generators": min(2, partitions), "partitions": partitions}
    with started(tmp_path, workload, rate, **load, **parameters) as (resolved, testbed, folder):
        assert (resolved.generators, resolved.partitions) == (min(2, partitions), partitions)
        judged = trial(resolved, testbed, folder)
    check(judged, partitions)


def check(judged: TrialResult, partitions: int) -> None:
    found, lag = judged.result.verification, judged.result.lag
    assert found is not None
    assert found.judged
    assert found.fault_count == 0, (found.sentence, found.examples, judged.result.warnings)
    assert found.matched == found.expected > 0
    assert not found.late_rows
    assert judged.result.latency.processing_time_us is None
    assert lag is not None
    assert len(lag.partitions) % partitions == 0
    assert lag.sum.end == sum(one.end for one in lag.partitions)
    assert judged.record.drained


@on_a_broker
def test_messages_are_where_their_key_belongs(tmp_path: Path) -> None:
    """By the key in the message, which is that of its row."""
    with started(tmp_path, "count", "2k", partitions=3, transport_options={"encoding": "json"}, packs="50") as made:
        resolved, testbed, folder = made
        judged = trial(resolved, testbed, folder)
        broker = testbed._broker
        assert broker is not None
        log = broker._topics.log  # type: ignore[attr-defined]
        topic = next(name for name in broker._names if name.endswith("purchases"))  # type: ignore[attr-defined]
        for partition in range(3):
            messages = log(topic, partition).at(range(50))
            keys = [message.key().decode() for message in messages]
            assert set(partitions_of(pa.array(keys), 3).tolist()) == {partition}
            assert [str(json.loads(message.value())["gem_pack_id"]) for message in messages] == keys
    check_answers(judged, 1000)
