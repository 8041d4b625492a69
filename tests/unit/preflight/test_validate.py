"""What was asked, checked before anything is started: several problems at once, and what depends on the machine, the
command, or several settings together. `test_bad_input` has each wrong value alone.
"""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamgauge.config import options_and_settings as experiment
from streamgauge.config.slo import parse_limit
from streamgauge.core.clock import US
from streamgauge.core.errors import InputError
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import flow, source
from streamgauge.engines.registry import capabilities
from streamgauge.engines.spark import options as settings
from streamgauge.preflight import sample_size, validate
from streamgauge.preflight.memory_budget import GENERATOR_BYTES
from streamgauge.preflight.validate import check as check_experiment
from streamgauge.preflight.validate import start_us
from streamgauge.system import machine
from streamgauge.workloads.registry import Job
from tests.unit.helpers_requests import GOOD, refused

pytestmark = pytest.mark.usefixtures("quiet")


def test_good_input_is_ready() -> None:
    """The least that can be asked, and every default follows from it."""
    resolved = check_experiment(experiment.build(GOOD))
    assert resolved.generators >= 1
    assert resolved.reach_us == 8 * US
    assert resolved.tail_us == 9 * US
    assert (resolved.driver_cpus, resolved.sut_cpus) == (None, None)


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[3] / "experiments").glob("*.toml")), ids=lambda p: p.stem
)
def test_the_experiments_there_are_pass(path: Path) -> None:
    """Bounds and spans of all of them."""
    check_experiment(experiment.read(path))


def test_all_that_cannot_be_built_is_said_at_once() -> None:
    """Types, bounds and unknown keys of every level in one answer."""
    load = {"rate": "fast", "duration": "soon", "seed": -1, "generators": 0, "rte": 1}
    problems = refused({"workload": "identity", "load": load, "search": {"x": 1}, "y": 2, "isolation": "alone"})
    settings = {problem.setting for problem in problems}
    assert settings == {
        "load.rate", "load.duration", "load.seed", "load.generators", "load.rte", "search.x", "y", "isolation",
    }  # fmt: skip


def test_what_only_follows_from_what_is_refused_is_not_told() -> None:
    """Two generators are the default of a transport that the engine cannot read; over one that it can, it is one."""
    asked = {"workload": "windowed_join", "engine": "spark-rtm", "transport": "flight"}
    settings = [problem.setting for problem in refused(asked)]
    assert "transport" in settings
    assert "load.generators" not in settings
    two = {**asked, "load": {"generators": 2}}
    assert "load.generators" in [problem.setting for problem in refused(two)]


def test_a_workload_that_is_meant_comes_before_the_list_of_all() -> None:
    """The names of all of them are long, and the one that was meant is not to be looked for in there."""
    (problem,) = [one for one in refused({"workload": "windowed_jion"}) if one.setting == "workload"]
    assert problem.way_out.startswith("windowed_join (")
    assert "identity" in problem.way_out
    assert "identity" not in problem.rule


def test_all_that_cannot_be_run_is_said_at_once(tmp_path: Path) -> None:
    """Workload, engine, transport, limits, load and place in one answer."""
    (tmp_path / "file").touch()
    problems = refused(
        {
            "workload": "identiti", "engine": "sprak", "transport": "pigeon", "limits": ["p98<=1s", "p99<=0s"],
            "load": {"duration": "0.1s", "chunk": "5s", "bound": "0s", "memory": "1KiB", "start": "then",
                     "profile": "wave", "warmup": "2h"},
            "out": str(tmp_path / "file"),
        }
    )  # fmt: skip
    settings = [problem.setting for problem in problems]
    for setting in ("workload", "engine", "transport", "load.duration", "load.chunk", "load.bound", "load.memory",
                    "load.start", "load.profile", "load.warmup", "out"):  # fmt: skip
        assert setting in settings
    assert settings.count("limits") == 2
    assert str(InputError(problems)).count("try:") == len(problems)


def test_a_rule_of_malformed_records_that_is_none_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the other problems, and not when the first answer is verified."""
    right = validate.get_workload(GOOD["workload"])

    def build(*asked: Any) -> Job:
        return right.build(*asked)._replace(malformed={"clicks": "price IS NULL"})

    monkeypatch.setattr(validate, "get_workload", lambda _: replace(right, build=build))
    problems = refused(GOOD | {"transport": "pigeon"})
    assert {problem.setting for problem in problems} == {"malformed clicks", "transport"}


def test_every_wrong_parameter_is_said() -> None:
    """Unknown and wrong ones together."""
    problems = refused(GOOD | {"parameters": {"packs": "0", "users": "none", "rang": "8s"}})
    assert {problem.setting.split()[-1] for problem in problems} == {"packs", "users", "rang"}


@pytest.mark.parametrize(
    "parameters", [{"slide": "9s"}, {"slid": "2s"}, {"slide": "soon", "packs": "5"}, {"data": "no_such_file.csv"}]
)
def test_names_of_operators_are_looked_at_where_the_flow_is_refused(parameters: dict[str, str]) -> None:
    """In the flow that was meant, as far as it can be built; what can be said without one is said once, as it is."""
    options = {"lowering.agg": "window", "bukets": "3"}
    problems = refused(GOOD | {"parameters": parameters, "options": options})
    _, unknown, lowering = problems
    assert (unknown.setting, unknown.rule) == ("option bukets", "is not an option of spark")
    assert lowering.setting == "option lowering.agg"
    assert "this flow's operators are purchases, aggregate (checked without" in lowering.rule
    assert lowering.way_out == "--option lowering.aggregate=auto|panes|window"
    assert len(refused(GOOD | {"parameters": parameters, "options": {"lowering.aggregate": "panes"}})) == 1


def test_parameters_that_are_right_shape_the_flow_in_which_names_are_looked_at() -> None:
    """An operator that is there by a parameter is no unknown name, since another one is refused."""
    asked = {"workload": "smart_grid", "parameters": {"second_range": "1h", "speed": "fast"}}
    (problem,) = refused(asked | {"options": {"lowering.second_load_counts": "panes"}})
    assert problem.setting == "set speed"


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ({"workload": "windowed_agregation"}, "windowed_aggregation "),
        ({"parameters": {"slid": "4s"}}, "slide"),
        ({"engine": "sprk"}, "--engine spark"),
        ({"options": {"tirgger": "1 second"}}, "--option trigger="),
        ({"transport": "flght"}, "--transport flight"),
        ({"isolation": "pined"}, "--isolation pinned"),
        ({"isolation": "PINNED"}, "--isolation pinned"),
        ({"load": {"frontier": "fre"}}, "--frontier free"),
        ({"load": {"profile": "brst:1.5@30s+10s"}}, "--profile burst:1.5@30s+10s"),
        ({"parameters": {"distribution": "ziph"}}, "--set distribution=zipf"),
        ({"parameters": {"distribution": "?"}}, "--set distribution=normal"),
        ({"options": {"source": "row"}}, "--option source=rows"),
        ({"workload": "windowed_join", "options": {"lowering.join": "paked"}}, "--option lowering.join=packed"),
        ({"limits": ["p98<=5s"], "load": {"duration": "400s"}}, '--limit "p99<=5s"'),
    ],
)
def test_a_slip_of_the_pen_is_answered_with_the_nearest(asked: dict[str, Any], hint: str) -> None:
    """The way out is the word that was meant."""
    (problem,) = refused(GOOD | asked)
    assert hint in problem.way_out


# --- the machine ---


@pytest.mark.parametrize("distance", [0, 1, 2])
def test_a_busy_port_is_named(monkeypatch: pytest.MonkeyPatch, distance: int) -> None:
    """Every port that will be needed is tried: the recorder's and one for each generator."""
    asked: list[int] = []

    def busy(host: str, port: int) -> str:
        asked.append(port)
        return "Address already in use" if port == 5000 + distance else ""

    monkeypatch.setattr(validate, "_port_problem", busy)
    (problem,) = refused(GOOD | {"port": 5000, "load": {"generators": 2}})
    assert asked == [0, *range(5000, 5000 + distance + 1)]
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


def test_no_port_asked_for_binds_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Free ports are found by the system: a user without rights to low ports is not refused."""
    asked: list[int] = []

    def note(host: str, port: int) -> str:
        asked.append(port)
        return ""

    monkeypatch.setattr(validate, "_port_problem", note)
    check_experiment(experiment.build(GOOD | {"load": {"generators": 4}}))
    assert asked == [0]


@pytest.mark.parametrize(("isolation", "generators"), [("shared", 8), ("pinned", 6)])
def test_as_many_ports_are_tried_as_there_will_be_generators(
    monkeypatch: pytest.MonkeyPatch, isolation: str, generators: int
) -> None:
    """Where their number was not given too: one per core of the SUT, at most eight."""
    asked: list[int] = []

    def note(host: str, port: int) -> str:
        asked.append(port)
        return ""

    monkeypatch.setattr(validate, "_port_problem", note)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16 if isolation == "shared" else 8)))
    resolved = check_experiment(experiment.build(GOOD | {"port": 5000, "isolation": isolation}))
    assert resolved.generators == generators
    assert asked == [0, *range(5000, 5001 + generators)]


def of_memory(monkeypatch: pytest.MonkeyPatch, gib: float) -> None:
    """Makes this a machine with so much memory."""
    for module in (machine, settings, validate):
        monkeypatch.setattr(module, "memory_bytes", lambda: int(gib * 2**30))


def of_processors(monkeypatch: pytest.MonkeyPatch, processors: int) -> None:
    """Makes this a machine with so many processors."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))


@pytest.mark.parametrize(("there", "half"), [(2, 1), (6, 3), (8, 4)])
@pytest.mark.parametrize("processors", [1, 2, 16])
def test_nobody_is_refused_the_memory_they_did_not_ask_for(
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
    ("there", "asked", "fitting"),
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
    monkeypatch: pytest.MonkeyPatch, there: float, asked: dict[str, Any], fitting: int
) -> None:
    """Each takes memory of its own; one more than the number that the way out names is refused, and that passes."""
    of_memory(monkeypatch, there)
    of_processors(monkeypatch, 2)
    with_so_many = [
        GOOD | asked | {"load": asked.get("load", {}) | {"generators": number}} for number in (fitting, fitting + 1)
    ]
    check_experiment(experiment.build(with_so_many[0]))
    (problem,) = refused(with_so_many[1])
    assert (problem.setting, problem.got) == ("load.generators", fitting + 1)
    assert problem.way_out == f"--generators {fitting}, or fewer"
    assert f"this machine's memory ({there} GiB) at 160 MB each" in problem.rule
    assert ("heap" in problem.rule) is (asked.get("engine") != "known")


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
    """Where it was asked for; what the way out names can be had on that very machine."""
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
    asked = GOOD | {"load": {"memory": memory}, "options": options}
    (problem,) = refused(asked)
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


# --- the engine ---


def test_a_transport_that_the_engine_cannot_read_is_refused() -> None:
    """By what its capabilities say."""
    engine = replace(capabilities()["known"], transports=("pigeon",))
    (problem,) = validate._transport_problems(experiment.build(GOOD), engine, 1)
    assert (problem.rule, problem.way_out) == ("must be one that known can read: pigeon", "--transport pigeon")


def test_an_engine_of_one_sink_refuses_several() -> None:
    """Before anything starts, with the sinks by name; spark takes them."""
    bought = source("purchases", Schema.of(price="int"))
    several = flow(bought.sink("all"), bought.where("price > 90").sink("dear"))
    (problem,) = validate._capability_problems(several, capabilities()["known"])
    assert (problem.rule, problem.got) == ("known writes to one sink only", "all, dear")
    assert list(validate._capability_problems(several, capabilities()["spark"])) == []
    assert list(validate._capability_problems(several.each()[0], capabilities()["known"])) == []


def test_sparks_own_settings_are_sparks_business() -> None:
    """Any spark.* setting is passed on."""
    options = {"spark.sql.shuffle.partitions": "3", "lowering.aggregate": "window"}
    assert check_experiment(experiment.build(GOOD | {"options": options})).experiment.options == options


@pytest.mark.parametrize(
    ("name", "value"),
    [("trigger", "soon"), ("trigger", "5"), ("driver_memory", "9999g"), ("driver_memory", "lots"), ("buckets", "0")],
)
def test_an_option_that_spark_would_choke_on_is_refused_before_the_start(name: str, value: str) -> None:
    """Spark says so itself only half a minute later, and in its own words."""
    with pytest.raises(InputError) as refused:
        check_experiment(experiment.build({"workload": "identity", "options": {name: value}}))

    assert [problem.setting for problem in refused.value.problems] == [f"option {name}"]
    assert refused.value.problems[0].got == value


# --- the command ---


@pytest.mark.parametrize(
    ("command", "asked", "settings", "takers"),
    [
        ("sustain", {"load": {"profile": "step:200k@15s"}}, {"load.profile"}, "run and generate"),
        ("sustain", {"load": {"rate": "1k"}}, {"load.rate"}, "run and generate and characterize"),
        ("run", {"search": {"quick": True, "start_rate": "1k"}}, {"search.quick", "search.start_rate"}, "sustain"),
        ("run", {"load": {"start": "2026-01-31T12:00:00", "of": "x"}}, {"load.start", "load.of"}, "generate"),
        ("generate", {"limits": ["p99<=2s"]}, {"limits"}, "run and sustain"),
        ("generate", {"load": {"chunk": "20ms"}}, {"load.chunk"}, "run and sustain and anatomy"),
    ],
)  # fmt: skip
def test_what_a_command_does_not_take_is_not_passed_over(
    command: str, asked: dict[str, Any], settings: set[str], takers: str
) -> None:
    """A file may say it, and the answer would be to another question; at its default it asks nothing."""
    problems = refused(GOOD | {"command": command} | asked)
    assert {problem.setting for problem in problems} == settings
    assert all(problem.rule == f"is not a setting of {command}, only of {takers}" for problem in problems)
    plain = {"search": {"quick": False}, "load": {"profile": "constant", "rate": "100k", "bound": "30s"}}
    check_experiment(experiment.build(GOOD | {"command": command} | plain))


def test_start_is_read_as_utc() -> None:
    """With and without a zone, to the microsecond."""

    def at(text: str) -> int | None:
        return start_us(experiment.build(GOOD | {"load": {"start": text}}))

    assert at("1970-01-01T00:00:01") == at("1970-01-01T01:00:01+01:00") == US
    assert at("2026-01-31T12:00:00.000001+00:00") == 1_769_860_800_000_001
    assert start_us(experiment.build(GOOD)) is None
    with pytest.raises(InputError, match=r"load\.start"):
        at("noon")


# --- plan, queue, span and levels, by each other ---


@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        ({"load": {"rate": "1G", "duration": "2700s"}}, False),
        ({"load": {"rate": "1G", "duration": "2500s"}}, True),
        ({"load": {"rate": "1G", "duration": "2900s", "profile": "step:900M@1s"}}, True),
        ({"load": {"rate": "1G", "duration": "8700s"}, "command": "generate"}, True),
        ({"load": {"rate": "1G", "duration": "8800s"}, "command": "generate"}, False),
        ({"load": {"duration": "1h"}, "search": {"start_rate": "1G"}, "command": "sustain"}, False),
    ],
)  # fmt: skip
def test_a_plan_must_hold_the_longest_extension(
    asked: dict[str, Any], fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a trial would fail when it begins, after everything was started."""
    monkeypatch.setattr(sample_size, "BOUND_S_MIN", 0.0)  # what the queue's memory holds is another question
    if fits:
        check_experiment(experiment.build(GOOD | asked))
    else:
        (problem,) = refused(GOOD | asked)
        assert "events" in problem.rule


@pytest.mark.parametrize(
    "asked",
    [
        {"load": {"bound": "4.2s"}},
        {"workload": "identity", "load": {"bound": "1s"}},
        {"options": {"trigger": "10 seconds"}, "load": {"duration": "200s"}},
        {"workload": "windowed_join", "options": {"lowering.join": "packed"}, "load": {"bound": "5s"}},
    ],
)
def test_a_queue_that_holds_three_batches_is_enough(asked: dict[str, Any]) -> None:
    """By the interval that is in force for this flow; back to back batches need none."""
    check_experiment(experiment.build(GOOD | asked))


def test_the_way_out_of_a_queue_too_small_for_its_trigger_is_one() -> None:
    """The bound that is named passes."""
    (problem,) = refused(GOOD | {"options": {"trigger": "12 seconds"}, "load": {"duration": "240s"}})
    assert "trigger: 12 s" in problem.rule
    assert problem.way_out.startswith("--bound 36s, or ")
    options, load = {"trigger": "12 seconds"}, {"duration": "240s", "bound": "36s"}
    check_experiment(experiment.build(GOOD | {"options": options, "load": load}))


def test_a_span_that_can_only_be_undecided_is_refused_with_one_that_can_be_decided() -> None:
    """Windows and batches alike, the longer of both is named; it passes."""
    options, parameters = {"trigger": "10 seconds"}, {"range": "100s", "slide": "100s"}
    (problem,) = refused(GOOD | {"options": options, "parameters": parameters})
    assert "even extended to 180 s" in problem.rule
    assert "1 windows (slide: 100 s) where a verdict needs 5" in problem.rule
    assert "18 batches (trigger: 10 s) where a verdict needs 20" in problem.rule
    assert problem.way_out == "--duration 500s"
    check_experiment(
        experiment.build(GOOD | {"options": options, "parameters": parameters, "load": {"duration": "500s"}})
    )


def test_a_span_is_refused_only_where_no_extension_helps() -> None:
    """Three times 10 s hold five windows of 6 s, and 20 batches; input that is only written is not judged."""
    check_experiment(experiment.build(GOOD | {"load": {"duration": "10s"}, "parameters": {"slide": "6s"}}))
    check_experiment(experiment.build(GOOD | {"command": "generate", "load": {"duration": "2s"}}))


def test_a_level_that_no_span_carries_is_refused_with_one_that_can_be_decided() -> None:
    """60 s, extended to 180 s, hold 45 windows of 4 s; p99 needs 100. What is named instead passes."""
    (problem,) = refused(GOOD | {"limits": ["p99<=5s"]})
    assert (problem.setting, problem.got) == ("limits", "p99<=5s")
    assert "p99 needs 100 windows (slide: 4 s), and even extended to 180 s" in problem.rule
    assert problem.rule.endswith("holds 45")
    assert problem.way_out == '--limit "event_time_max<=5s", or p50, or --duration 400s'
    for asked in ({"load": {"duration": "400s"}, "limits": ["p99<=5s"]}, {"limits": ["p50<=5s", "event_time_max<=5s"]}):
        check_experiment(experiment.build(GOOD | asked))


@pytest.mark.parametrize(
    ("text", "rule", "way_out"),
    [
        ("p99<2", "must have <= between latency and time", '--limit "p99<=2"'),
        ("p99.9 = 3s", "must have <= between latency and time", '--limit "p99.9<=3s"'),
        ("closing_delay_max < soon", "must have <= between", '--limit "closing_delay_max<=2s"'),
        ("p98 <= 4s", "must be STATISTIC<=TIME or KIND_STATISTIC<=TIME", '--limit "p99<=4s"'),
        ("evnt_time_p99<=4s", "must be STATISTIC<=TIME", '--limit "event_time_p99<=4s"'),
        ("p99 2s", "(default event_time)", '--limit "event_time_p99<=2s"'),
    ],
)
def test_a_level_that_is_none_is_told_what_it_lacks(text: str, rule: str, way_out: str) -> None:
    """The sign, or the form, whose kind may be left out; the limit that was meant is one."""
    (problem,) = refused(GOOD | {"limits": [text]})
    assert (problem.setting, problem.got, problem.way_out) == ("limits", text, way_out)
    assert rule in problem.rule
    assert "STATISTIC<=TIME or KIND_STATISTIC<=TIME" in problem.rule
    parse_limit(way_out.removeprefix("--limit ").strip('"'))


@pytest.mark.parametrize(("workload", "level"), [
    ("word_count", "closing_delay_max"), ("word_count", "match_time_p50"), ("windowed_aggregation", "match_time_p50"),
])  # fmt: skip
def test_a_level_on_a_latency_that_no_result_has_is_refused(workload: str, level: str) -> None:
    """After a whole run it could only be undecided; what is named instead passes."""
    (problem,) = refused({"workload": workload, "limits": [f"{level}<=20s"]})
    assert (problem.setting, problem.got) == ("limits", f"{level}<=20s")
    assert "no result of this workload has" in problem.rule
    instead = problem.way_out.removeprefix("--limit ").strip('"')
    check_experiment(experiment.build({"workload": workload, "limits": [instead]}))
    check_experiment(experiment.build({"workload": "windowed_join", "limits": [f"{level}<=20s"]}))


def test_a_tiny_interval_is_no_crash() -> None:
    """It divides by how many microseconds apart batches are."""
    check_experiment(
        experiment.build({"workload": "identity", "limits": ["p99<=5s"], "options": {"trigger": "0.0000001 seconds"}})
    )


def test_a_level_of_what_has_no_windows_is_carried_by_batches() -> None:
    """Back to back they may be short enough; 4 s apart, 180 s hold 45 of them. Batches that are further apart than
    windows count for those too.
    """
    rows = {"workload": "identity", "limits": ["p99<=5s"]}
    check_experiment(experiment.build(rows | {"limits": ["p99_9<=5s"]}))
    (problem,) = refused(rows | {"options": {"trigger": "4 seconds"}})
    assert "p99 needs 100 batches (trigger: 4 s), and even extended to 180 s" in problem.rule
    assert problem.rule.endswith("holds 45")
    assert problem.way_out.endswith("or --duration 400s")
    check_experiment(experiment.build(rows | {"options": {"trigger": "4 seconds"}, "load": {"duration": "400s"}}))
    (level,) = refused(
        GOOD | {"limits": ["p99<=5s"], "parameters": {"range": "1s", "slide": "1s"}, "load": {"duration": "40s"}}
    )
    assert "p99 needs 100 batches (trigger: 1.4 s)" in level.rule


@pytest.mark.parametrize(("batch", "refuses"), [("0s", False), ("4s", True)])
def test_a_level_on_an_engine_without_an_interval_is_not_refused(batch: str, refuses: bool) -> None:
    """What reads on continuously has no batches that are known to be apart."""
    values = {"workload": "identity", "engine": "known", "limits": ["p99<=5s"], "options": {"batch": batch}}
    if refuses:
        assert [problem.setting for problem in refused(values)] == ["limits"]
    else:
        check_experiment(experiment.build(values))


def test_a_span_whose_rate_changes_gets_no_extension() -> None:
    """12 s hold three windows of 4 s; a constant rate may have nine."""
    load = {"rate": "100k", "duration": "12s"}
    (problem,) = refused(GOOD | {"load": load | {"profile": "step:200k@5s"}})
    assert "a span of 12 s (a rate that changes is not extended) holds 3 windows" in problem.rule
    check_experiment(experiment.build(GOOD | {"load": load}))
    (level,) = refused(GOOD | {"load": {"duration": "150s", "profile": "step:200k@5s"}, "limits": ["p99<=5s"]})
    assert level.rule.endswith("holds 37")


def test_a_rate_that_memory_cannot_hold_for_long_is_refused() -> None:
    """It is known before the start; with the memory, or the rate, that the refusal names there is none."""
    asked: dict[str, Any] = {"workload": "filter", "engine": "known", "load": {"rate": "1e9", "memory": "64MiB"}}
    with pytest.raises(InputError) as refused:
        check_experiment(experiment.build(asked))
    (problem,) = refused.value.problems
    assert (problem.setting, problem.got) == ("load.rate", "1 G/s")
    assert "the queue's memory of 64 MiB, which holds 0.0" in problem.rule
    lower = problem.way_out.rpartition("--rate ")[2]
    check_experiment(experiment.build({**asked, "load": {**asked["load"], "rate": lower}}))
    small = {**asked, "load": {"rate": lower, "memory": "60MiB"}}
    with pytest.raises(InputError) as refused:
        check_experiment(experiment.build(small))
    memory = refused.value.problems[0].way_out.partition("--memory ")[2].partition(",")[0]
    check_experiment(experiment.build({**small, "load": {**small["load"], "memory": memory}}))
    check_experiment(
        experiment.build({**asked, "load": {**asked["load"], "rate": lower, "bound": "3s", "memory": "30MiB"}})
    )
