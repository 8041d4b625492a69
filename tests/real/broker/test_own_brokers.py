"""Brokers of a user's own that die in mid-trial: they come back and the trial goes on, or its verdict says what is
missing. One that was started for the run is in the files of each engine.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from streamgauge.core.clock import US
from streamgauge.harness.start_processes import TestBed
from streamgauge.system.child_processes import wait_until
from streamgauge.transports.kafka.broker import Broker
from tests.helpers_broker_trials import WINDOW, InMidTrial, check_answers, require_jars, started, trial

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.long]
GONE_S = 10.0
SOON = "broker.session.timeout.ms=1000\nbroker.heartbeat.interval.ms=200\n"
"""A broker that was killed may come back when it is held to be gone: after a second, where Kafka waits nine."""
CLIENTS_WORDS = re.compile("the broker lost \\d+ messages|the brokers .* do not answer|the broker has not kept")


@contextmanager
def own_broker(root: Path, engine: str) -> Iterator[Broker]:
    """One of which the run knows nothing but where it is."""
    require_jars(engine)
    with Broker(root / "own", root / "own.log") as broker:
        with (root / "own" / "server.properties").open("a") as properties:
            properties.write(SOON)
        yield broker


class Gap:
    """Kills a broker, and starts it again at the same place and on the same data; `us` is how long it was away."""

    def __init__(self, broker: Broker, testbed: TestBed) -> None:
        self._broker, self._now_us, self.us = broker, testbed.clock.now_us, 0
        self._back = threading.Thread(target=self._come_back)

    def __call__(self) -> None:
        self._broker.kill()
        self._since_us = self._now_us()
        self._back.start()

    def _come_back(self) -> None:
        self._broker.restart()
        self.us = self._now_us() - self._since_us


@pytest.mark.parametrize(
    ("engine", "workload"), [("spark", "identity"), ("spark", "windowed_aggregation"), ("spark-rtm", "count")]
)
def test_one_that_comes_back_is_seen_in_latency(tmp_path: Path, engine: str, workload: str) -> None:
    """Every client finds it again and no answer is lost; latency counts from the plan, which went on meanwhile."""
    parameters = WINDOW if workload == "windowed_aggregation" else {"packs": "200"}
    with own_broker(tmp_path, engine) as broker:
        at = {"brokers": broker.location}
        with started(tmp_path / "runs", workload, "2k", engine, transport_options=at, **parameters) as started_:
            resolved, testbed, folder = started_
            gap = Gap(broker, testbed)
            judged = trial(resolved, testbed, folder, on_progress=InMidTrial(gap))
    check_answers(judged, 1000)
    latency = judged.result.latency.event_time_us
    assert latency is not None
    assert latency.max is not None
    assert latency.max > gap.us - US > US  # a window may end as much as a second after the broker does


@pytest.mark.parametrize("engine", ["spark", "spark-rtm"])
def test_one_that_stays_away_ends_the_trial(tmp_path: Path, engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In the client's words, when it has waited for as long as it does; topics that may be left are told of, and no
    process is.
    """
    with own_broker(tmp_path, engine) as broker:
        at = {"brokers": broker.location}
        with started(tmp_path / "runs", "identity", "2k", engine, transport_options=at) as (resolved, testbed, folder):
            assert testbed.engine is not None
            processes = testbed.engine.pids()
            judged = trial(resolved, testbed, folder, on_progress=InMidTrial(broker.kill))
    assert judged.result.verdict.value == "invalid"
    assert CLIENTS_WORDS.search(judged.record.driver_failed), judged.record.driver_failed
    assert "topics of this run may remain" in capsys.readouterr().err
    assert wait_until(lambda: not any(map(psutil.pid_exists, processes)), GONE_S)
