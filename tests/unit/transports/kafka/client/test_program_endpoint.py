"""When a program is rejected by what it writes; the consumer of its results is made up."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.core.clock import US
from streamgauge.transports.kafka.client.program_endpoint import (
    COMMITS_S,
    FOREIGN_MIN,
    FOREIGN_S,
    QUIET_S,
    ProgramInlet,
    _Output,
)
from streamgauge.transports.kafka.client.program_results import ResultParser
from streamgauge.transports.kafka.program_topics import OutputTopic, ProgramTopics

NOW_US = 1_800_000_000 * US
OF = OutputTopic({"ts": "bigint"}, ("ts",), "ts", reach_s=20.0)
RIGHT, HEARTBEAT = json.dumps({"ts": NOW_US // 1000}).encode(), b'{"alive": true}'


class Followed:
    """An inlet that followed once, with these messages on its outputs, `waited_s` after the first event.

    Its group has committed all events, or none if it `commits` nothing.
    """

    def __init__(
        self, waited_s: float, of: Mapping[str, OutputTopic] | None = None, commits: bool = True, **outputs: list[bytes]
    ) -> None:
        self.rejected: list[str] = []
        self.read: list[list[tuple[str, int, int, int]]] = []
        inlet = ProgramInlet.__new__(ProgramInlet)
        topics = ProgramTopics({}, {"results": OF}, timeout_s=40.0)
        receiver: Any = SimpleNamespace(
            reject=self.rejected.append,
            read=lambda *read: self.read.append(read[-1]),
            commit=lambda *_: None,
            remark=lambda *_: None,
        )
        events = {("orders", 0): 1000}
        committed = events if commits else {}
        inlet._topics, inlet._receiver = topics, receiver
        inlet._group_id, inlet._streams = "group", {"orders": "orders"}
        inlet._consumer = SimpleNamespace(sleep=lambda _: None)  # type: ignore[assignment]
        offsets = SimpleNamespace(committed=lambda: committed, ends=lambda: events)
        inlet._group = offsets  # type: ignore[assignment]
        inlet._firsts, inlet._offsets, inlet._moves_s, inlet._batch = {("orders", 0): 0}, {}, [], 0
        inlet._lock, inlet._ends, inlet._last_result_s = threading.Lock(), ({}, 0.0), 0.0
        inlet._inferred = {}
        inlet._outputs = {}
        for topic, messages in outputs.items():
            output = inlet._outputs[topic] = _Output(topic, topic, ResultParser((of or {}).get(topic, OF)))
            output.values, output.received_us = list(messages), [NOW_US] * len(messages)
            output.parse(NOW_US)
        inlet._first_result_s = time.monotonic() if inlet._results else 0.0
        inlet._first_event_s = time.monotonic() - waited_s
        self.inlet = inlet
        inlet._follow()

    def again(self, quiet_s: float) -> None:
        """Follows once more, so long after the last event and the last result."""
        self.inlet._first_result_s = time.monotonic() - COMMITS_S - 1
        self.inlet._ends = (self.inlet._ends[0] or {("orders", 0): 1000}, time.monotonic() - quiet_s)
        self.inlet._last_result_s = time.monotonic() - quiet_s
        self.inlet._follow()


@pytest.mark.parametrize(("waited_s", "rejected"), [(1.0, False), (20.0 + FOREIGN_S + 1, True)])
def test_first_heartbeats_reject_no_program(waited_s: float, rejected: bool) -> None:
    """Before the first window can close, an output may have nothing else."""
    found = Followed(waited_s, results=[HEARTBEAT] * FOREIGN_MIN).rejected
    assert bool(found) is rejected
    assert all("it has no field ts" in reason for reason in found)


def test_each_output_is_judged_by_itself() -> None:
    """One that has foreign messages only is named, although another has results; a silent one may owe none."""
    assert "on alerts are no results" in Followed(61.0, results=[RIGHT], alerts=[HEARTBEAT] * FOREIGN_MIN).rejected[0]
    assert not Followed(21.0 + FOREIGN_S, results=[RIGHT], alerts=[HEARTBEAT]).rejected
    assert not Followed(61.0, results=[RIGHT], alerts=[]).rejected
    assert not Followed(61.0, results=[RIGHT, *[HEARTBEAT] * FOREIGN_MIN]).rejected


def test_a_silent_program_is_rejected_after_its_timeout() -> None:
    assert not Followed(59.0, results=[], alerts=[]).rejected
    (reason,) = Followed(61.0, results=[], alerts=[]).rejected
    assert reason.startswith("no message came on results, alerts within 60 s of the first event")


def test_an_output_with_foreign_messages_is_not_called_silent() -> None:
    """Only the other one is named."""
    of = {"alerts": replace(OF, reach_s=100.0)}
    (reason,) = Followed(61.0, of=of, results=[], alerts=[HEARTBEAT]).rejected
    assert reason.startswith("no message came on results within")
    assert not Followed(61.0, of=of, alerts=[HEARTBEAT]).rejected


def test_a_program_that_never_commits_has_read_everything_once_all_is_quiet() -> None:
    """Said once, however late the broker answers."""
    found = Followed(30.0, commits=False, results=[RIGHT])
    for quiet_s in (QUIET_S - 1, QUIET_S + 30, QUIET_S + 31):
        found.again(quiet_s)
    assert found.read == [[("orders", 0, 0, 1000)]]


def test_foreign_messages_wait_for_the_reach_of_their_own_output() -> None:
    """Another output may have results at once."""
    slow = replace(OF, reach_s=100.0)
    outputs = {"results": [RIGHT], "alerts": [HEARTBEAT] * FOREIGN_MIN}
    assert not Followed(99.0 + FOREIGN_S, of={"alerts": slow}, **outputs).rejected
    assert Followed(101.0 + FOREIGN_S, of={"alerts": slow}, **outputs).rejected
