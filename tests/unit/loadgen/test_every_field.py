"""Every field that a workload makes: any slice alone, its type, what a value takes, and what is refused."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.core.schema import arrow_type
from streamgauge.loadgen.datasets.calls import Called, Caller, Established
from streamgauge.loadgen.datasets.gps_traces import Coordinate, Taxis
from streamgauge.loadgen.datasets.leads import Action, Owner, Reward, Round
from streamgauge.loadgen.datasets.plugs import PlugId
from streamgauge.loadgen.datasets.sensors import Cluster, Reading, Usage
from streamgauge.loadgen.datasets.texts import Message, Opinion, Tweet
from streamgauge.loadgen.datasets.web import AccessLine, Address, Page, Visitor
from streamgauge.loadgen.fields import FieldSpec, InTurn
from streamgauge.loadgen.random import PhiloxBits
from streamgauge.workloads import registry
from tests.unit.helpers_refusals import assert_refused
from tests.unit.loadgen.datasets import test_calls, test_leads, test_plugs, test_sensors
from tests.unit.loadgen.datasets import test_gps_traces as test_traces

ROWS = 34_000
EVERY = {
    f"{name}-{field.name}": (field, PhiloxBits(1, number, 1, place))
    for name in registry.names()
    for number, stream in enumerate(registry.get(name).build(registry.get(name).read({}), 1000.0).streams)
    for place, field in enumerate(stream.fields)
}


def column(field: FieldSpec, bits: PhiloxBits, first: int, last: int) -> pa.Array:
    made = field.column(bits, first, last)
    return pa.array(made) if isinstance(made, np.ndarray) else made


@pytest.mark.parametrize(("field", "bits"), EVERY.values(), ids=EVERY)
def test_any_slice_is_the_same(field: FieldSpec, bits: PhiloxBits) -> None:
    """Also across the ends of blocks, and an empty one; a value takes about what the queue's bound counts on."""
    whole = column(field, bits, 0, ROWS)
    assert whole.type == arrow_type(field.sql_type)
    for first, last in ((0, 1), (16_380, 16_390), (32_760, 33_000), (ROWS - 1, ROWS), (5, 5)):
        assert str(column(field, bits, first, last).to_pylist()) == str(whole[first:last].to_pylist())  # NaN is NaN
    assert field.row_bytes == pytest.approx(whole.nbytes / ROWS, rel=0.1)


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: Caller("calling", 1, 1, 0.1), "calling.subscribers"),
    (lambda: Caller("calling", 10, 0, 0.1), "calling.telemarketers"),
    (lambda: Caller("calling", 10, 1, 1.1), "calling.selling"),
    (lambda: Called("called", test_calls.CALLER, 0, 0, 0.1), "called.contacts"),
    (lambda: Called("called", test_calls.CALLER, 0, 500, 0.1), "called.contacts"),
    (lambda: Called("called", test_calls.CALLER, 0, 8, -0.1), "called.strangers"),
    (lambda: Established("established", 2.0), "established.failed"),
    (lambda: Address("ip", 0), "ip.clients"),
    (lambda: Page("url", 0, 0.1), "url.pages"),
    (lambda: Page("url", 10, 1.5), "url.malformed"),
    (lambda: Visitor("client", 0, 0.1), "client.visitors"),
    (lambda: Visitor("client", 10, -0.1), "client.nameless"),
    (lambda: Round("round", 2**31), "round.learners"),
    (lambda: Owner("learner", 0, 0.1), "learner.learners"),
    (lambda: Owner("learner", 1, 1.5), "learner.malformed"),
    (lambda: Action("action", ()), "action.actions"),
    (lambda: Reward("reward", test_leads.ACTION, 1, ((30, 12),)), "for each of 3 actions"),
    (lambda: Reward("reward", test_leads.ACTION, 1, ((30, 12), (60, 30), (80, 1001))), "deviations 0 to 1000"),
    (lambda: Reward("reward", test_leads.ACTION, 1, ((30, 12), (60, 30), (-1, 10))), "means must be 0 to 10000"),
    (lambda: Reading("temp", test_sensors.DEVICE, 0, 22.0, 1.5), r"temp\.spikes"),
    (lambda: Usage("cpu", test_sensors.MACHINE, 1, 0.4, 1.5), r"cpu\.overloaded"),
    (lambda: Usage("cpu", test_sensors.MACHINE, 1, 0.4, -0.1), r"cpu\.overloaded"),
    (lambda: Cluster("cluster", test_sensors.MACHINE, 1, 0), r"cluster\.clusters"),
    (lambda: InTurn("machine", 0), r"machine\.domain"),
    (lambda: Message("text", 0, 100, 0.5), "text.words"),
    (lambda: Message("text", 1001, 100, 0.5), "text.words"),
    (lambda: Message("text", 5, 9, 0.5), "text.vocabulary"),
    (lambda: Message("text", 5, 100_001, 0.5), "text.vocabulary"),
    (lambda: Message("text", 5, 100, 1.1), "text.spam"),
    (lambda: Message("text", 5, 100, -0.1), "text.spam"),
    (lambda: PlugId("house_id", 0, "house"), r"house_id\.houses"),
    (lambda: replace(test_plugs.SOUND, houses=10_001), r"value\.houses"),
    (lambda: replace(test_plugs.SOUND, heavy=1.1), r"value\.heavy"),
    (lambda: replace(test_plugs.SOUND, malformed=-0.1), r"value\.malformed"),
    (lambda: replace(test_plugs.SOUND, speed=0), r"value\.speed"),
    (lambda: replace(test_plugs.SOUND, events_per_second=0), r"value\.events_per_second"),
    (lambda: Taxis(test_traces.TAXI, 0, 1), "streets: must be 2 to 200"),
    (lambda: Taxis(test_traces.TAXI, 0, 201), "streets: must be 2 to 200"),
    (lambda: Coordinate("lat", test_traces.TAXIS, "lat", 1.5), r"lat\.outside"),
    (lambda: test_traces.plain(slow_downs=-0.1), r"speed\.slow_downs"),
    (lambda: test_traces.plain(outliers=1.1), r"speed\.outliers"),
    (lambda: test_traces.plain(stopped=1.1), r"speed\.stopped"),
    (lambda: test_traces.plain(stopped=0.6, outliers=0.6), r"speed\.outliers \+ stopped"),
    (lambda: AccessLine("line", 0, 1, 0.0), "line.addresses"),
    (lambda: AccessLine("line", 1, 0, 0.0), "line.lines_per_second"),
    (lambda: AccessLine("line", 1, 1, 1.5), "line.malformed"),
    (lambda: Tweet("text", 0, 0.1), "text.words"),
    (lambda: Tweet("text", 5, 1.1), "text.hashtags"),
    (lambda: Opinion("text", 0, 0.1, ("a",), ("b",), ("c",)), "text.words"),
    (lambda: Opinion("text", 5, 1.1, ("a",), ("b",), ("c",)), "text.opinions"),
    (lambda: Opinion("text", 5, 0.1, (), ("b",), ("c",)), "text.good"),
    (lambda: Opinion("text", 5, 0.1, ("a",), (), ("c",)), "text.bad"),
    (lambda: Opinion("text", 5, 0.1, ("a",), ("b",), ()), "text.small"),
]


@pytest.mark.parametrize(("make", "named"), REFUSED)
def test_what_is_refused(make: Callable[[], object], named: str) -> None:
    """By the name of the field and the setting."""
    assert_refused(named, make)
