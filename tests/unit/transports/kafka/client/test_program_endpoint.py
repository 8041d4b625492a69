"""When a program is rejected by what it writes; the consumer of its results is made up."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.core.clock import US
from streamgauge.transports.kafka.client.program_endpoint import FOREIGN_MIN, FOREIGN_S, ProgramInlet, _Output
from streamgauge.transports.kafka.client.program_results import ResultParser
from streamgauge.transports.kafka.program_topics import OutputTopic

NOW_US = 1_800_000_000 * US
OF = OutputTopic({"ts": "bigint"}, ("ts",), "ts")
RIGHT, HEARTBEAT = json.dumps({"ts": NOW_US // 1000}).encode(), b'{"alive": true}'


class Judged:
    """An inlet with these messages on its outputs, `waited_s` after the first event."""

    def __init__(self, waited_s: float, **outputs: list[bytes]) -> None:
        self.rejected: list[str] = []
        inlet = ProgramInlet.__new__(ProgramInlet)
        topics: Any = SimpleNamespace(timeout_s=60.0, reach_s=20.0)
        inlet._topics, inlet._offsets, inlet._group_id, inlet._streams = topics, {}, "group", {"orders": "orders"}
        inlet._receiver = SimpleNamespace(reject=self.rejected.append)
        inlet._outputs = {}
        for topic, messages in outputs.items():
            output = inlet._outputs[topic] = _Output(topic, topic, ResultParser(OF))
            output.values, output.received_us = list(messages), [NOW_US] * len(messages)
            output.parse(NOW_US)
        inlet._first_event_s = time.monotonic() - waited_s
        inlet._judge(1000)


@pytest.mark.parametrize(("waited_s", "rejected"), [(1.0, False), (20.0 + FOREIGN_S + 1, True)])
def test_first_heartbeats_reject_no_program(waited_s: float, rejected: bool) -> None:
    """Before the first window can close, an output may have nothing else."""
    found = Judged(waited_s, results=[HEARTBEAT] * FOREIGN_MIN).rejected
    assert bool(found) is rejected
    assert all("it has no field ts" in reason for reason in found)


def test_each_output_is_judged_by_itself() -> None:
    """One that has foreign messages only is named, although another has results; a silent one may owe none."""
    assert "on alerts are no results" in Judged(61.0, results=[RIGHT], alerts=[HEARTBEAT] * FOREIGN_MIN).rejected[0]
    assert not Judged(61.0, results=[RIGHT], alerts=[]).rejected
    assert not Judged(61.0, results=[RIGHT, *[HEARTBEAT] * FOREIGN_MIN]).rejected


def test_a_silent_program_is_rejected_after_its_timeout() -> None:
    assert not Judged(59.0, results=[], alerts=[]).rejected
    (reason,) = Judged(61.0, results=[], alerts=[]).rejected
    assert reason.startswith("no message came on results, alerts within 60 s of the first event")
