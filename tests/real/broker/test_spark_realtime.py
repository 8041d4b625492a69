"""The whole path over a real broker and Spark in real-time mode: rows, first rows, updates, and windows so far, all
verified, across a restart too; a dead broker.
"""

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from streamgauge.conformance.trials import Restart
from streamgauge.dataflow.builder import Stream, source
from streamgauge.dataflow.nodes import Flow
from streamgauge.system.child_processes import wait_until
from streamgauge.workloads import registry
from streamgauge.workloads.micro.purchases import PRICE_MAX, Purchases, purchases
from streamgauge.workloads.registry import Job, Workload
from tests.helpers_broker_trials import (
    WINDOW,
    InMidTrial,
    broker_of,
    check_answers,
    on_a_broker,
    require_jars,
    started,
    trial,
)
from tests.helpers_verdicts import sentence_against

ENGINE = "spark-rtm"
USERS = {"users": "20000"}
"""So few that about half of all events are of one who has bought before."""
GONE_S = 10.0
SLICES = 4
"""A second's: what Spark has written since it kept how far it is, and will write again."""


@pytest.fixture(scope="module")
def jars() -> None:
    require_jars(ENGINE)


@on_a_broker
def test_rows_are_verified_until_the_broker_dies(tmp_path: Path) -> None:
    """On one query that never ends, whose rows come long before it keeps how far it is. In the second trial the broker
    dies: the driver's failure, though no batch ends any more, and nothing of the broker is left, nor of Spark.
    """
    with started(tmp_path, "identity", "5k", ENGINE) as (resolved, testbed, folder):
        first = trial(resolved, testbed, folder, 1)
        processes, data = [*testbed._broker.pids(), *testbed.engine.pids()], testbed._private / "broker"  # type: ignore[union-attr]
        assert data.is_dir()
        kill = InMidTrial(broker_of(testbed).kill)
        second = trial(resolved, testbed, folder, 2, on_progress=kill)
    check_answers(first, 30_000)
    latency = first.result.latency.event_time_us
    assert latency is not None
    assert latency.mean is not None
    assert latency.mean < 30e6
    assert "linger.ms=2" in first.result.settings["sink"]
    assert first.result.settings["trigger"] == "1 minute (auto)"
    assert "Real-time Mode" in (folder.path / "engine" / "spark.log").read_text()
    assert {sink.kind for sink in first.result.sinks} == {"row"}
    assert kill.done
    assert second.result.verdict.value == "invalid"
    assert "the broker ended" in second.record.driver_failed
    assert wait_until(lambda: not any(map(psutil.pid_exists, processes)), GONE_S)
    assert not data.exists()


def first_rows(bought: Stream) -> Flow:
    return bought.distinct(keys="user_id").sink("firsts")


def counted_first_rows(bought: Stream) -> Flow:
    return bought.distinct(keys="user_id").running(keys="gem_pack_id", n="count(*)").sink("firsts")


def first_rows_of_an_array(bought: Stream) -> Flow:
    return bought.explode(number="array(user_id, price)").distinct(keys="number").sink("firsts")


def asking(requested: Callable[[Stream], Flow]) -> Workload:
    """A workload of purchases."""

    def build(parameters: Purchases, _: float) -> Job:
        bought = purchases(parameters, parameters.users)
        return Job(requested(source("purchases", bought.schema)), (bought,))

    return Workload(requested.__name__, "", "", "", Purchases, build)


@pytest.mark.long
@on_a_broker
@pytest.mark.parametrize("requested", [first_rows, counted_first_rows, first_rows_of_an_array])
def test_first_rows_are_the_earliest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, requested: Callable[[Stream], Flow]
) -> None:
    """Of every user, by the event that they come from, though nothing is put in order; an aggregate may follow."""
    monkeypatch.setitem(registry._all(), requested.__name__, asking(requested))
    with started(tmp_path, requested.__name__, "2k", ENGINE, **USERS) as (resolved, testbed, folder):
        judged = trial(resolved, testbed, folder)
    check_answers(judged, 3000)
    driver = judged.result.driver
    assert driver is not None
    expected = 0
    for sink in judged.result.sinks:
        assert sink.verification is not None
        expected += sink.verification.expected
    assert expected < driver.events_planned
    assert judged.result.settings["trigger"] == "5 seconds (auto)"


@pytest.mark.long
@on_a_broker
@pytest.mark.parametrize("workload", ["identity", "windowed_aggregation"])
def test_a_restart_repeats_what_was_written_since_it_kept_how_far_it_is(tmp_path: Path, workload: str) -> None:
    """Spark is killed in mid-trial and comes back with its state: no answer is lost or wrong, and what comes twice is
    counted as what it is.
    """
    options, parameters = {"trigger": "5 seconds"}, WINDOW if workload == "windowed_aggregation" else {}
    with started(tmp_path, workload, "2k", ENGINE, options=options, **parameters) as (resolved, testbed, folder):
        restart = Restart(testbed, SLICES)
        judged = trial(resolved, testbed, folder, observe=restart)
    restart.check(judged)
    found = judged.result.verification
    assert found is not None
    assert judged.record.drained
    assert (found.judged, found.independent) == (True, True)
    assert (found.missing, found.extra, found.wrong, found.late) == (0, 0, 0, 0), found.examples
    assert found.matched == found.expected > 0
    assert found.duplicate > 0
    assert f"{found.duplicate:,} duplicate" in sentence_against(judged.result.verdict, "answers")


@pytest.mark.long
@on_a_broker
def test_rows_that_leave_nothing_are_known_to_be_read(tmp_path: Path) -> None:
    """A filter lets nothing through: how far it has read is known when it keeps it, long before the queue is full."""
    with started(tmp_path, "filter", "2k", ENGINE, bound="15s", above=str(PRICE_MAX)) as (resolved, testbed, folder):
        judged = trial(resolved, testbed, folder)
    assert judged.record.drained
    assert not judged.record.trial_log.overflowed
    assert judged.result.settings["trigger"] == "5 seconds (auto)"
