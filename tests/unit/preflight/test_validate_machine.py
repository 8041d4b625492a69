"""preflight/validate.py: ports, memory, processors, address and output folder of this machine."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from streamgauge.config import options_and_settings as experiment
from streamgauge.engines.spark import options as settings
from streamgauge.preflight import validate
from streamgauge.preflight.resources import GENERATOR_BYTES
from streamgauge.preflight.validate import check as check_experiment
from streamgauge.system import machine
from tests.helpers_recording import append_and_return
from tests.unit.helpers_requests import GOOD, refused

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize(
    ("generators", "partitions", "expected"),
    [(None, None, (2, 2)), (3, None, (3, 3)), (None, 1, (1, 1)), (None, 8, (2, 8)), (2, 8, (2, 8)), (3, 3, (3, 3))],
)
def test_partitions_are_as_many_as_generators_unless_given(
    monkeypatch: pytest.MonkeyPatch, generators: int | None, partitions: int | None, expected: tuple[int, int]
) -> None:
    """By default there are no more generators than partitions, because each partition has one writer."""
    monkeypatch.setattr(validate, "cpus", lambda: [0, 1])
    values = GOOD | {"load": {"generators": generators}, "partitions": partitions}
    resolved = check_experiment(experiment.build(values))
    assert (resolved.generators, resolved.partitions) == expected
    assert resolved.plan(0, 1000.0, 10.0).partitions == expected[1]


def test_more_generators_than_partitions_are_refused() -> None:
    """With both ways out."""
    (problem,) = refused(GOOD | {"load": {"generators": 3}, "partitions": 2})
    assert problem.rule == "must be at most the number of partitions (2), because each partition has one writer"
    assert problem.way_out == "--generators 2, or --partitions 3"


@pytest.mark.parametrize("distance", [0, 1, 2])
def test_a_busy_port_is_named(monkeypatch: pytest.MonkeyPatch, distance: int) -> None:
    """Every port that will be needed is tried: the recorder's and one for each generator."""
    ports: list[int] = []

    def busy(host: str, port: int) -> str:
        ports.append(port)
        return "Address already in use" if port == 5000 + distance else ""

    monkeypatch.setattr(validate, "_port_problem", busy)
    (problem,) = refused(GOOD | {"port": 5000, "load": {"generators": 2}})
    assert ports == [0, *range(5000, 5000 + distance + 1)]
    assert (problem.setting, problem.got) == ("port", 5000 + distance)
    assert problem.rule == "must be free on 127.0.0.1 (Address already in use)"


def test_a_port_that_another_listens_on_is_busy() -> None:
    """As the system says it, and nothing of one that is free."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert validate._port_problem("127.0.0.1", taken.getsockname()[1]) == "Address already in use"
    assert validate._port_problem("127.0.0.1", 0) == ""


def test_a_busy_port_for_prometheus_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """On loopback, whatever address the driver listens on."""
    busy = {("127.0.0.1", 9464): "Address already in use"}
    monkeypatch.setattr(validate, "_port_problem", lambda host, port: busy.get((host, port), ""))
    (problem,) = refused(GOOD | {"prometheus": 9464, "bind": "127.0.0.2"})
    assert (problem.setting, problem.got) == ("prometheus", 9464)
    assert problem.rule == "must be free on 127.0.0.1 (Address already in use)"
    assert problem.way_out.startswith("--prometheus")


@pytest.mark.parametrize("port", [5000, 5002])
def test_prometheus_cannot_have_a_port_of_the_driver(port: int) -> None:
    """The recorder has the first one, and each generator one more."""
    (problem,) = refused(GOOD | {"prometheus": port, "port": 5000, "load": {"generators": 2}})
    assert (problem.setting, problem.got) == ("prometheus", port)
    assert problem.rule == "must differ from the driver's own ports, 5000 to 5002"


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
    assert validate._port_problem("127.0.0.1", port) == ""


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ports that are tried; all of them are free."""
    ports: list[int] = []
    monkeypatch.setattr(validate, "_port_problem", lambda _, port: append_and_return(ports, port, ""))
    return ports


def test_without_a_requested_port_none_is_bound(tried: list[int]) -> None:
    """Free ports are found by the system: a user without rights to low ports is not refused."""
    check_experiment(experiment.build(GOOD | {"load": {"generators": 4}}))
    assert tried == [0]


@pytest.mark.parametrize(("isolation", "generators"), [("shared", 8), ("pinned", 6)])
def test_as_many_ports_are_tried_as_there_will_be_generators(
    monkeypatch: pytest.MonkeyPatch, tried: list[int], isolation: str, generators: int
) -> None:
    """Where their number was not given too: one per core of the SUT, at most eight."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16 if isolation == "shared" else 8)))
    resolved = check_experiment(experiment.build(GOOD | {"port": 5000, "isolation": isolation}))
    assert resolved.generators == generators
    assert tried == [0, *range(5000, 5001 + generators)]


def of_memory(monkeypatch: pytest.MonkeyPatch, gib: float) -> None:
    """Makes this a machine with so much memory."""
    for module in (machine, settings, validate):
        monkeypatch.setattr(module, "memory_bytes", lambda: int(gib * 2**30))


def of_processors(monkeypatch: pytest.MonkeyPatch, processors: int) -> None:
    """Makes this a machine with so many processors."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))


@pytest.mark.parametrize(("there", "half"), [(2, 1), (6, 3), (8, 4)])
@pytest.mark.parametrize("processors", [1, 2, 16])
def test_memory_that_was_not_requested_is_not_refused(
    monkeypatch: pytest.MonkeyPatch, there: float, half: float, processors: int
) -> None:
    """Half of it is enough for Spark; the queue and the generators share the other one."""
    of_memory(monkeypatch, there)
    of_processors(monkeypatch, processors)
    resolved = check_experiment(experiment.build(GOOD))
    assert resolved.bytes_max + resolved.generators * GENERATOR_BYTES == half * 2**30
    assert resolved.bytes_max >= half * 2**29
    assert 1 <= resolved.generators <= min(processors, 8)


def test_a_large_machine_has_a_queue_of_4_gib(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many processors it has; generators take none of it while there is room beside."""
    of_memory(monkeypatch, 24)
    of_processors(monkeypatch, 16)
    for load in ({}, {"generators": 90}):
        assert check_experiment(experiment.build(GOOD | {"load": load})).bytes_max == 4 * 2**30


@pytest.mark.parametrize(
    ("there", "values", "fitting"),
    [
        (24, {"load": {"memory": "4GiB"}}, 107),
        (24, {}, 120),  # where nobody asked for its memory, the queue gives way
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
    of_processors(monkeypatch, 2)
    with_so_many = [
        GOOD | values | {"load": values.get("load", {}) | {"generators": number}} for number in (fitting, fitting + 1)
    ]
    check_experiment(experiment.build(with_so_many[0]))
    (problem,) = refused(with_so_many[1])
    assert (problem.setting, problem.got) == ("load.generators", fitting + 1)
    assert problem.way_out == f"--generators {fitting}, or fewer"
    assert f"this machine's memory ({there} GiB) at 160 MB each" in problem.rule
    assert ("heap" in problem.rule) is (values.get("engine") != "known")


def test_a_queue_that_leaves_nothing_to_a_generator_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one that leaves enough for one."""
    of_memory(monkeypatch, 4)
    (problem,) = refused(GOOD | {"load": {"generators": 1, "memory": "2GiB"}})
    assert (problem.setting, problem.way_out) == ("load.generators", "--generators 1 --memory 1895MiB")
    check_experiment(experiment.build(GOOD | {"load": {"generators": 1, "memory": "1895MiB"}}))


def test_what_is_only_written_starts_no_generators(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are parts of the input there, as many as the run's."""
    of_memory(monkeypatch, 2)
    check_experiment(experiment.build(GOOD | {"command": "generate", "load": {"generators": 256}}))


def test_more_generators_than_processors_are_told_and_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the start is told, and as a warning of the result (`test_trial`)."""
    of_memory(monkeypatch, 24)
    of_processors(monkeypatch, 2)
    told = [
        check_experiment(experiment.build(GOOD | {"load": {"generators": number}})).generators_in_words
        for number in (1, 2, 99)
    ]
    assert told == ["1 generator", "2 generators", "99 generators, more than the 2 processors"]


def test_more_memory_than_there_is_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it was values for; what the way out names can be had on that very machine."""
    of_memory(monkeypatch, 2)
    (problem,) = refused(GOOD | {"load": {"memory": "4GiB"}})
    assert (problem.setting, problem.got) == ("load.memory", "4GiB")
    assert "(2.0 GiB)" in problem.rule
    assert problem.way_out == "leave --memory out: 1 GiB at most"


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
    """One message that names both, with a way out that holds; an engine without a JVM shares with nobody."""
    of_memory(monkeypatch, 6)
    of_processors(monkeypatch, 2)
    values = GOOD | {"load": {"memory": memory}, "options": options}
    (problem,) = refused(values)
    assert (problem.setting, problem.got) == ("option driver_memory", got)
    assert "--memory" in problem.rule
    assert problem.way_out == "--option driver_memory=2919m --memory 2919MiB, or less"
    check_experiment(experiment.build(GOOD | {"load": {"memory": "2919MiB"}, "options": {"driver_memory": "2919m"}}))
    check_experiment(experiment.build(GOOD | {"load": {"memory": memory}, "engine": "known"}))


def test_an_address_that_is_not_this_machines() -> None:
    """TEST-NET addresses belong to nobody."""
    (problem,) = refused(GOOD | {"bind": "192.0.2.1"})
    assert (problem.setting, problem.got) == ("bind", "192.0.2.1")


def test_out_that_is_a_file(tmp_path: Path) -> None:
    """A run folder cannot be made inside a file, nor below one."""
    (tmp_path / "file").touch()
    for out in ("file", "file/below"):
        (problem,) = refused(GOOD | {"out": str(tmp_path / out)})
        assert problem.setting == "out"
        assert "file" in problem.rule


def test_out_below_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """Told with everything else, for a misspelt path; `generate` makes the whole way to its folder."""
    (problem,) = refused(GOOD | {"out": str(tmp_path / "no" / "such")})
    assert (problem.setting, problem.rule) == ("out", "must be in an existing folder")
    check_experiment(experiment.build(GOOD | {"command": "generate", "out": str(tmp_path / "no" / "such")}))


def test_out_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that stands is named."""
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    (problem,) = refused(GOOD | {"out": str(tmp_path / "new")})
    assert problem.setting == "out"
    assert str(tmp_path) in problem.rule


def test_pinned_needs_two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """One core cannot be shared out."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    (problem,) = refused(GOOD | {"isolation": "pinned"})
    assert problem.setting == "isolation"
    assert "shared" in problem.way_out
