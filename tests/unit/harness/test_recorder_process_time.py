"""The recorder's stamps, and the standstills that make them late."""

import io
from collections.abc import Callable
from itertools import count
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.core.schema import EMISSION_TIME
from streamgauge.harness import recorder_process as recorder_module
from streamgauge.harness.recorder_process import BEAT_US, Heartbeat
from streamgauge.metrics.records import STILL_US_MIN
from streamgauge.transports.spi import BusyTracker
from tests.unit.harness.helpers_recorder import Served, results


@pytest.fixture
def by_hand(served: Served, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock by which the recorder's own time is taken; only slow disks and slow work move it, microseconds."""
    clock = SimpleNamespace(at_us=0)
    for name in ("_receiving", "_writing"):
        monkeypatch.setattr(served.recorder, name, BusyTracker(lambda: clock.at_us))
    return clock


def slowed(clock: SimpleNamespace, work: Callable[..., Any]) -> Callable[..., Any]:
    """`work`, which takes 30 ms of a clock."""
    return lambda *given: vars(clock).update(at_us=clock.at_us + 30_000) or work(*given)


class SlowFile(io.BytesIO):
    """A disk on which every write, the last one at the closing too, takes 30 ms of a clock."""

    def __init__(self, clock: SimpleNamespace) -> None:
        super().__init__()
        self._clock = clock

    def write(self, data: Any) -> int:
        self._clock.at_us += 30_000
        return super().write(data)


def spent_us(spent: list[tuple[int, int]]) -> int:
    return sum(until - since for since, until in spent)


def test_the_time_that_senders_wait_for_the_disk_is_known(
    served: Served, by_hand: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it and nothing else, what came since the last look."""
    served.send(0, [results(0, 10)])
    assert spent_us(served.recorder.status()["writing"]) == 0
    monkeypatch.setattr(pa, "OSFile", lambda path, mode: pa.PythonFile(SlowFile(by_hand), "w"))
    served.send(1, [results(0, 10), results(10, 10)])
    served.send(1, [results(0, 10)], partition=1)
    status = served.recorder.status()
    heads_us = 2 * 30_000  # the file's own head, written when it is opened
    assert by_hand.at_us - heads_us <= spent_us(status["writing"]) <= by_hand.at_us
    assert spent_us(status["receiving"]) == 0
    assert served.recorder.status()["writing"] == []


@pytest.mark.parametrize("slow", ["_stamped", "_note"])
def test_the_time_that_the_recorder_works_on_results_is_known(
    served: Served, by_hand: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    """Each batch of results from its arrival on, without the disk's part; the sender waits as long."""
    monkeypatch.setattr(recorder_module, slow, slowed(by_hand, getattr(recorder_module, slow)))
    served.send(0, [results(0, 10), results(10, 10)])
    status = served.recorder.status()
    assert (spent_us(status["receiving"]), spent_us(status["writing"])) == (60_000, 0)


def test_the_time_of_a_commit_is_the_recorders_too(
    served: Served, by_hand: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sender waits for that as well."""
    ledger = served.recorder.ledger
    monkeypatch.setattr(ledger, "commit", slowed(by_hand, ledger.commit))
    served.send(0, [results(0, 10)])
    served.commit(0, [[0, 0]])
    assert spent_us(served.recorder.status()["receiving"]) == 30_000


def test_each_batch_of_an_attempt_is_stamped_as_it_arrives(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """One time a batch, later ones later: a long attempt's first rows did not come with its last."""
    monkeypatch.setattr(served.recorder, "_clock", SimpleNamespace(now_us=count(1000).__next__))
    commit = served.recorded(0, *(results(10 * number, 10) for number in range(3)))
    (path,) = commit["paths"]
    with pa.OSFile(path, "rb") as file:
        stamps = pa.ipc.open_file(file).read_all().column(EMISSION_TIME).to_pylist()
    of_batches = stamps[::10]
    assert stamps == [stamp for stamp in of_batches for _ in range(10)]
    assert of_batches == sorted(set(of_batches))
    assert commit["emitted_us"] == of_batches[-1]


def woken(*at_us: int) -> Heartbeat:
    """A heart that began at 0 and beat at these times; whoever asks for its news does so at the last of them."""
    times = iter([0, *at_us, at_us[-1]])
    heart = Heartbeat(lambda: next(times))
    for _ in at_us:
        heart.beat()
    return heart


def test_a_process_that_runs_keeps_nothing_of_it() -> None:
    """Beats that are late by no more than a slip may be are forgotten, however many there are."""
    usual, latest = BEAT_US + 500, BEAT_US + STILL_US_MIN
    assert woken(*range(usual, 1000 * usual, usual)).news() == []
    assert woken(latest, 2 * latest).news() == []


def test_a_standstill_is_reported_once_with_its_end_and_its_length() -> None:
    """What the beat itself takes is not part of it."""
    heart = woken(BEAT_US, 2_000_000 + 2 * BEAT_US, 2_000_000 + 3 * BEAT_US)
    assert heart.news() == [(2_000_000 + 2 * BEAT_US, 2_000_000)]
    assert not heart._stood_still


def test_a_standstill_that_the_heart_has_not_noticed_yet_is_reported() -> None:
    """After it the request may be answered first, and the last look of a trial asks no second time."""
    times = iter([0, 500_000, 500_100])
    heart = Heartbeat(lambda: next(times))
    assert heart.news() == [(500_000, 500_000 - BEAT_US)]
    heart.beat()
    assert not heart._stood_still
