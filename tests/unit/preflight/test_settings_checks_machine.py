"""preflight/settings_checks.py: ports, memory, processors, address and output folder of this machine."""

import os
import socket
from typing import Any
from unittest.mock import Mock

import pytest

from streamgauge.config.limits import BOUND_S_MIN
from streamgauge.engines.spark import options as settings
from streamgauge.preflight import settings_checks
from streamgauge.preflight.resources import GENERATOR_BYTES
from streamgauge.system import machine
from streamgauge.transports import registry as transports
from tests.helpers_recording import append_and_return
from tests.unit.helpers_requests import GOOD, checked, refused

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize(
    ("generators", "partitions", "expected"),
    [(None, None, (2, 2)), (3, None, (3, 3)), (None, 1, (1, 1)), (None, 8, (2, 8)), (2, 8, (2, 8)), (3, 3, (3, 3))],
)
def test_partitions_are_as_many_as_generators_unless_given(
    monkeypatch: pytest.MonkeyPatch, generators: int | None, partitions: int | None, expected: tuple[int, int]
) -> None:
    """By default there are no more generators than partitions, because each partition has one writer."""
    monkeypatch.setattr(settings_checks, "cpus", lambda: [0, 1])
    resolved = checked(GOOD | {"load": {"generators": generators}, "partitions": partitions})
    assert (resolved.generators, resolved.partitions) == expected
    assert resolved.plan(0, 1000.0, 10.0).partitions == expected[1]


@pytest.mark.parametrize(
    ("values", "setting", "got", "rule", "way_out"),
    [
        ({"load": {"generators": 3}, "partitions": 2}, "load.generators", 3,
         "must be at most the number of partitions (2), because each partition has one writer",
         "--generators 2, or --partitions 3"),
        # On loopback, whatever address the driver listens on.
        ({"prometheus": 9464, "bind": "127.0.0.2"}, "prometheus", 9464,
         "must be free on 127.0.0.1 (Address already in use)", "--prometheus"),
        # The recorder has the first port of the driver, and each generator one more.
        *(({"prometheus": port, "port": 5000, "load": {"generators": 2}}, "prometheus", port,
           "must differ from the driver's own ports, 5000 to 5002", "") for port in (5000, 5002)),
    ],
)  # fmt: skip
def test_what_cannot_be_had_together_is_refused(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], setting: str, got: int, rule: str, way_out: str
) -> None:
    busy = {("127.0.0.1", 9464): "Address already in use"}
    monkeypatch.setattr(transports, "port_problem", lambda host, port: busy.get((host, port), ""))
    (problem,) = refused(GOOD | values)
    assert (problem.setting, problem.got, problem.rule) == (setting, got, rule)
    assert problem.way_out.startswith(way_out)


@pytest.mark.parametrize("distance", [0, 1, 2])
def test_a_busy_port_is_named(monkeypatch: pytest.MonkeyPatch, distance: int) -> None:
    """Every port that will be needed is tried: the recorder's and one for each generator."""
    busy = Mock(side_effect=lambda _, port: "Address already in use" if port == 5000 + distance else "")
    monkeypatch.setattr(transports, "port_problem", busy)
    (problem,) = refused(GOOD | {"port": 5000, "load": {"generators": 2}})
    assert [call.args[1] for call in busy.call_args_list] == [0, *range(5000, 5000 + distance + 1)]
    assert (problem.setting, problem.got) == ("port", 5000 + distance)
    assert problem.rule == "must be free on 127.0.0.1 (Address already in use)"


def test_a_port_that_another_listens_on_is_busy() -> None:
    """As the system says it, and nothing of one that is free."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert transports.port_problem("127.0.0.1", taken.getsockname()[1]) == "Address already in use"
    assert transports.port_problem("127.0.0.1", 0) == ""


def test_a_port_whose_last_connections_are_not_forgotten_yet_is_free() -> None:
    """After a kill the system keeps them for a minute; who listens there again is let."""
    with socket.socket() as server, socket.socket() as client:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        server.listen()
        client.connect(("127.0.0.1", port))
        accepted, _ = server.accept()
        accepted.close()  # who closes first keeps the port
        assert client.recv(1) == b""
    assert transports.port_problem("127.0.0.1", port) == ""


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ports that are tried; all of them are free."""
    ports: list[int] = []
    monkeypatch.setattr(transports, "port_problem", lambda _, port: append_and_return(ports, port, ""))
    return ports


def test_without_a_requested_port_none_is_bound(tried: list[int]) -> None:
    """Free ports are found by the system: a user without rights to low ports is not refused."""
    checked(GOOD | {"load": {"generators": 4}})
    assert tried == [0]


@pytest.mark.parametrize(("isolation", "generators"), [("shared", 8), ("pinned", 6)])
def test_as_many_ports_are_tried_as_there_will_be_generators(
    monkeypatch: pytest.MonkeyPatch, tried: list[int], isolation: str, generators: int
) -> None:
    """Where their number was not given too: one per core of the SUT, at most eight."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16 if isolation == "shared" else 8)))
    assert checked(GOOD | {"port": 5000, "isolation": isolation}).generators == generators
    assert tried == [0, *range(5000, 5001 + generators)]


def of_memory(monkeypatch: pytest.MonkeyPatch, gib: float, processors: int = 2) -> None:
    """Makes this a machine with so much memory and so many processors."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))
    for module in (machine, settings, settings_checks):
        monkeypatch.setattr(module, "memory_bytes", lambda: int(gib * 2**30))


@pytest.mark.parametrize(("there", "half"), [(2, 1), (6, 3), (8, 4)])
@pytest.mark.parametrize("processors", [1, 2, 16])
def test_memory_that_was_not_requested_is_not_refused(
    monkeypatch: pytest.MonkeyPatch, there: float, half: float, processors: int
) -> None:
    """Half of it is enough for Spark; the queue and the generators share the other one."""
    of_memory(monkeypatch, there, processors)
    resolved = checked(GOOD)
    assert resolved.bytes_max + resolved.generators * GENERATOR_BYTES == half * 2**30
    assert resolved.bytes_max >= half * 2**29
    assert 1 <= resolved.generators <= min(processors, 8)


def test_a_large_machine_has_a_queue_of_4_gib(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many processors it has; generators take none of it while there is room beside."""
    of_memory(monkeypatch, 24, 16)
    for load in ({}, {"generators": 90}):
        assert checked(GOOD | {"load": load}).bytes_max == 4 * 2**30


@pytest.mark.parametrize(
    ("there", "values", "fitting"),
    [
        (24, {"load": {"memory": "4GiB"}}, 107),
        (24, {}, 120),  # where no memory was requested, the queue gives way
        (24, {"load": {"memory": "4GiB"}, "options": {"driver_memory": "8g"}}, 80),
        (24, {"load": {"memory": "4GiB"}, "engine": "known"}, 134),
        (6, {"load": {"memory": "2GiB"}}, 6),
        (2, {}, 3),
    ],
)
def test_generators_must_fit_beside_queue_and_heap(
    monkeypatch: pytest.MonkeyPatch, there: float, values: dict[str, Any], fitting: int
) -> None:
    """Each takes memory of its own; one more than the number that the way out names is refused, and that passes."""
    of_memory(monkeypatch, there)

    with_so_many = [
        GOOD | values | {"load": values.get("load", {}) | {"generators": number}} for number in (fitting, fitting + 1)
    ]
    checked(with_so_many[0])
    (problem,) = refused(with_so_many[1])
    assert (problem.setting, problem.got) == ("load.generators", fitting + 1)
    assert problem.way_out == f"--generators {fitting}, or fewer"
    assert f"this machine's memory ({there} GiB) at 160 MB each" in problem.rule
    assert ("heap" in problem.rule) is (values.get("engine") != "known")


def test_more_generators_than_processors_are_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are shown at the start, and as a warning of the result."""
    of_memory(monkeypatch, 24)
    words = [checked(GOOD | {"load": {"generators": number}}).generators_in_words for number in (1, 2, 99)]
    assert words == ["1 generator", "2 generators", "99 generators, more than the 2 processors"]


@pytest.mark.parametrize(("gib", "holds"), [(24, True), (8, False)])
def test_the_default_queue_holds_what_a_verdict_needs_where_memory_has_it(
    monkeypatch: pytest.MonkeyPatch, gib: int, holds: bool
) -> None:
    """16 M/s of a filter are 4.3 GiB in 10 s. At most half of the memory; a size that was typed stays."""
    of_memory(monkeypatch, gib)
    values: dict[str, Any] = {"workload": "filter", "engine": "known", "load": {"rate": "16M"}}
    assert refused({**values, "load": {"rate": "16M", "memory": "4GiB"}})[0].setting == "load.rate"
    if holds:
        resolved = checked(values)
        assert resolved.bound_s(16e6)[0] >= BOUND_S_MIN
        assert 4 * 2**30 < resolved.bytes_max < gib * 2**29
    else:
        assert refused(values)[0].setting == "load.rate"
    assert checked({**values, "load": {"rate": "1M"}}).bytes_max <= 4 * 2**30


@pytest.mark.parametrize(
    ("gib", "values", "problem", "rule", "way_out", "instead"),
    [
        # What the way out names can be had on that very machine.
        (
            2, {"load": {"memory": "4GiB"}}, ("load.memory", "4GiB"), "(2.0 GiB)",
            "leave --queue-memory out: 1 GiB at", {},
        ),
        (4, {"load": {"generators": 1, "memory": "2GiB"}}, ("load.generators", 1), "",
         "--generators 1 --queue-memory 1895MiB", {"load": {"generators": 1, "memory": "1895MiB"}}),
        # The folder of an input is made, with those above it.
        (24, {"out": "no/such"}, ("out", "no/such"), "must be in an existing folder", "",
         {"command": "generate", "out": "no/such"}),
        # A run folder cannot be made inside a file, nor below one.
        (24, {"out": "/etc/hostname"}, ("out", "/etc/hostname"), "file", "", {}),
        (24, {"out": "/etc/hostname/below"}, ("out", "/etc/hostname/below"), "file", "", {}),
        # TEST-NET addresses belong to no machine.
        (24, {"bind": "192.0.2.1"}, ("bind", "192.0.2.1"), "", "", {}),
        # Input that is only written starts no generators: they are its parts, as many as the run's.
        (2, {"load": {"generators": 256}}, ("load.generators", 256), "", "",
         {"command": "generate", "load": {"generators": 256}}),
    ],
)  # fmt: skip
def test_what_this_machine_lacks_is_refused_with_what_it_has(
    monkeypatch: pytest.MonkeyPatch, gib: float, values: dict[str, Any], problem: tuple[str, Any], rule: str,
    way_out: str, instead: dict[str, Any],
) -> None:  # fmt: skip
    of_memory(monkeypatch, gib)
    (refusal,) = refused(GOOD | values)
    assert ((refusal.setting, refusal.got), rule in refusal.rule) == (problem, True)
    assert refusal.way_out.startswith(way_out)
    checked(GOOD | instead)


@pytest.mark.parametrize(
    ("name", "denied", "values", "setting", "words"),
    [
        # The folder that stands is named.
        ("access", lambda path, mode: mode != os.W_OK, {"out": "new"}, "out", "stand"),
        # One core cannot be shared out.
        ("sched_getaffinity", lambda _: {0}, {"isolation": "pinned"}, "isolation", "shared"),
    ],
)
def test_what_the_system_does_not_allow_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, denied: Any, values: dict[str, Any], setting: str, words: str
) -> None:
    monkeypatch.setattr(os, name, denied)
    (problem,) = refused(GOOD | values)
    assert (problem.setting, words in f"{problem.rule} {problem.way_out}") == (setting, True)


@pytest.mark.parametrize(
    ("memory", "options", "got"),
    [
        ("5GiB", {}, "3072m and 5 GiB"),
        ("5GiB", {"driver_memory": "2g"}, "2g and 5 GiB"),
        (None, {"driver_memory": "4g"}, "4g and 2.7 GiB"),
    ],
)
def test_queue_and_heap_must_fit_together(
    monkeypatch: pytest.MonkeyPatch, memory: str | None, options: dict[str, str], got: str
) -> None:
    """One message that names both, with a way out that holds; an engine without a JVM shares with no one."""
    of_memory(monkeypatch, 6)

    (problem,) = refused(GOOD | {"load": {"memory": memory}, "options": options})
    assert (problem.setting, problem.got, "--queue-memory" in problem.rule) == ("option driver_memory", got, True)
    assert problem.way_out == "--option driver_memory=2919m --queue-memory 2919MiB, or less"
    checked(GOOD | {"load": {"memory": "2919MiB"}, "options": {"driver_memory": "2919m"}})
    checked(GOOD | {"load": {"memory": memory}, "engine": "known"})
