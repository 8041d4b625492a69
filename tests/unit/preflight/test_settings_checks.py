"""preflight/settings_checks.py: names, parameters, engine and command; everything wrong is reported at once."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from streamgauge.config import experiment, experiment_file
from streamgauge.config.experiment import build
from streamgauge.config.matrix import expand
from streamgauge.core.clock import US
from streamgauge.core.errors import InputError, Problem, attempt
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import flow, source
from streamgauge.engines.registry import capabilities, capability_problems, streaming_engines
from streamgauge.preflight import settings_checks
from streamgauge.preflight.resolved_experiment import with_engine_transport
from streamgauge.studies.scalability.scale import check_scale
from streamgauge.workloads.registry import Job
from tests.unit.helpers_requests import GOOD, checked, refused

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[3] / "experiments").rglob("*.toml")), ids=lambda p: p.stem
)
def test_the_experiments_there_are_pass(path: Path) -> None:
    """Bounds and spans of all of them, in every cell of a matrix or of a study."""
    for cell in expand(experiment_file.read(path)):
        (check_scale if cell.experiment.command == "scale" else settings_checks.check)(cell.experiment)


def test_all_that_cannot_be_built_is_refused_at_once() -> None:
    """Types, bounds and unknown keys of every level in one answer."""
    load = {"rate": "fast", "duration": "soon", "seed": -1, "generators": 0, "rte": 1}
    problems = refused({"workload": "identity", "load": load, "search": {"x": 1}, "y": 2, "isolation": "alone"})
    assert {problem.setting for problem in problems} == {
        "load.rate", "load.duration", "load.seed", "load.generators", "load.rte", "search.x", "y", "isolation",
    }  # fmt: skip


def test_what_can_be_checked_beside_values_that_cannot_be_built_is() -> None:
    """The workload's name, the engine's, parameters, options and limits, however many values are of no right type.

    The command is taken for the most similar one, and what needs the duration is not checked without it.
    """
    for alone in ({"load": {"duration": "soon"}, "limits": ["p99<=2s"]}, {"engine": 3, "options": {"of_another": "1"}}):
        attempt(partial(build, GOOD | alone), one := list[Problem]())
        assert (len(one), settings_checks.further_problems(GOOD | alone, one)) == (1, [])
    values: dict[str, Any] = {
        "command": "sustian", "workload": "windowed_aggregation", "tunng": "tuned",
        "engine": {"options": {"triger": "4 seconds", "spark": {"sql": {"x": 3}}}, "parallelism": 0},
        "parameters": {"range": "8 apples", "pcks": 3}, "limits": ["p99<2s"],
        "load": {"rate": "fast", "duration": "60 parsecs"}, "search": {"tolerance": 5, "quick": True},
    }  # fmt: skip
    problems: list[Problem] = []
    attempt(partial(build, values), problems)
    assert {one.setting for one in problems} == {
        "command", "tunng", "options.spark.sql.x", "parallelism", "load.rate", "load.duration", "search.tolerance",
    }  # fmt: skip
    further = settings_checks.further_problems(values, problems)
    assert sorted(one.setting for one in further) == ["limits", "load.rate", "option triger", "set pcks", "set range"]
    assert settings_checks.further_problems(values | {"command": "?"}, problems) == []
    unknown = {"workload": "windowed_agg", "engine": "sprk", "load": {"rate": "fast"}, "limits": ["p99<2s"]}
    attempt(partial(build, unknown), problems := list[Problem]())
    assert [one.setting for one in settings_checks.further_problems(unknown, problems)] == [
        "workload",
        "engine",
        "limits",
    ]


def test_a_refusal_says_whether_more_may_follow() -> None:
    """It does where the flow or the engine is not known."""
    for values, incomplete in (({"limits": ["p99"]}, False), ({"engine": "sprk"}, True), ({"workload": "x"}, True)):
        with pytest.raises(InputError) as caught:
            checked(GOOD | values)
        assert caught.value.incomplete == incomplete


def test_what_only_follows_from_what_is_refused_is_no_problem() -> None:
    """Two generators are the default of a transport that the engine cannot read; over one that it can, it is one."""
    values = {"workload": "windowed_join", "engine": "spark-rtm", "transport": "memory"}
    for more, known in (({}, {"transport"}), ({"load": {"generators": 2}}, {"transport", "partitions"})):
        assert {problem.setting for problem in refused(values | more)} & {"transport", "partitions"} == known


def test_all_that_cannot_be_run_is_refused_at_once(tmp_path: Path) -> None:
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
    known = {"workload", "engine", "transport", "load.duration", "load.chunk", "load.bound", "load.memory",
             "load.start", "load.profile", "load.warmup", "out"}  # fmt: skip
    assert (known - set(settings), settings.count("limits")) == (set(), 2)
    assert str(InputError(problems)).count("try:") == len(problems)


def test_a_rule_of_malformed_records_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the other problems, and not when the first answer is verified."""
    right = settings_checks.get_workload(GOOD["workload"])

    def build(*values: Any) -> Job:
        return right.build(*values)._replace(malformed={"clicks": "price IS NULL"})

    monkeypatch.setattr(settings_checks, "get_workload", lambda _: replace(right, build=build))
    problems = refused(GOOD | {"transport": "pigeon"})
    assert {problem.setting for problem in problems} == {"malformed clicks", "transport"}


@pytest.mark.parametrize(
    "parameters", [{"slide": "9s"}, {"slid": "2s"}, {"slide": "soon", "packs": "5"}, {"data": "no_such_file.csv"}]
)
def test_names_of_operators_are_looked_at_where_the_flow_is_refused(parameters: dict[str, str]) -> None:
    """In the flow that was meant, as far as it can be built; what needs none is reported once."""
    options = {"lowering.agg": "window", "bukets": "3"}
    _, unknown, lowering = refused(GOOD | {"parameters": parameters, "options": options})
    assert (unknown.setting, unknown.rule) == ("option bukets", "is not an option of spark")
    assert lowering.setting == "option lowering.agg"
    assert "this flow's operators are purchases, aggregate (checked without" in lowering.rule
    assert lowering.way_out == "--option lowering.aggregate=auto|panes|sliding|window"
    assert len(refused(GOOD | {"parameters": parameters, "options": {"lowering.aggregate": "panes"}})) == 1


def test_parameters_that_are_right_shape_the_flow_in_which_names_are_looked_at() -> None:
    """An operator that is there by a parameter is no unknown name, since another one is refused."""
    values = {"workload": "smart_grid", "parameters": {"second_range": "1h", "speed": "fast"}}
    (problem,) = refused(values | {"options": {"lowering.second_load_counts": "panes"}})
    assert problem.setting == "set speed"


@pytest.mark.parametrize(
    ("values", "hint"),
    [
        ({"workload": "windowed_agregation"}, "windowed_aggregation (streamgauge workloads lists all: ads_analytics, "),
        ({"parameters": {"slid": "4s"}}, "slide"),
        ({"engine": "sprk"}, "--engine spark"),
        ({"options": {"tirgger": "1 second"}}, "--option trigger="),
        ({"transport": "memry"}, "--transport memory"),
        ({"isolation": "pined"}, "--isolation pinned"),
        ({"isolation": "PINNED"}, "--isolation pinned"),
        ({"load": {"frontier": "fre"}}, "--frontier free"),
        ({"load": {"profile": "brst:1.5@30s+10s"}}, "--load-shape burst:1.5@30s+10s"),
        ({"parameters": {"distribution": "ziph"}}, "--set distribution=zipf"),
        ({"parameters": {"distribution": "?"}}, "--set distribution=normal"),
        ({"options": {"source": "row"}}, "--option source=rows"),
        ({"workload": "windowed_join", "options": {"lowering.join": "paked"}}, "--option lowering.join=packed"),
        ({"limits": ["p98<=5s"], "load": {"duration": "400s"}}, '--limit "p99<=5s"'),
    ],
)
def test_a_slip_of_the_pen_is_answered_with_the_nearest(values: dict[str, Any], hint: str) -> None:
    """The way out is the word that was meant."""
    (problem,) = refused(GOOD | values)
    assert hint in problem.way_out


def test_a_transport_that_the_engine_cannot_read_is_refused() -> None:
    """By what its capabilities say."""
    problems = refused({"workload": "identity", "engine": "spark-rtm", "transport": "socket"})
    (problem,) = [one for one in problems if one.setting == "transport"]
    assert (problem.rule, problem.way_out) == ("must be one that spark-rtm can read: kafka", "--transport kafka")


@pytest.mark.parametrize("engine", streaming_engines())
def test_an_engine_takes_its_first_transport_unless_it_reads_the_default(engine: str) -> None:
    """A file or a command without a transport; a given one stays, the default by name too."""
    readable = capabilities()[engine].transports
    default = experiment.Experiment.model_fields["transport"].default
    taken = with_engine_transport(experiment.build({"workload": "identity", "engine": engine})).transport
    assert taken == (default if default in readable else readable[0])
    given = experiment.build({"workload": "identity", "engine": engine, "transport": default})
    assert with_engine_transport(given).transport == default


def test_the_transport_of_an_engine_is_written_down(tmp_path: Path) -> None:
    """In the experiment that runs; what is undecided stays so in a file, and in the cells of its matrix."""
    values = {"workload": "windowed_aggregation", "engine": "spark-rtm"}
    assert 'transport = "kafka"' in experiment_file.to_toml(checked(values).experiment)
    file = tmp_path / "experiment.toml"
    file.write_text(experiment_file.to_toml(experiment.build(GOOD | {"matrix": {"engine": ["spark", "spark-rtm"]}})))
    cells = expand(experiment_file.read(file))
    assert [with_engine_transport(cell.experiment).transport for cell in cells] == ["memory", "kafka"]


def test_an_engine_of_one_sink_refuses_several() -> None:
    """Before anything starts, with the sinks by name; spark takes them."""
    bought = source("purchases", Schema.from_types(price="int"))
    several = flow(bought.sink("all"), bought.where("price > 90").sink("dear"))
    (problem,) = capability_problems(several, capabilities()["known"])
    assert (problem.rule, problem.got) == ("known writes to one sink only", "all, dear")
    assert list(capability_problems(several, capabilities()["spark"])) == []
    assert list(capability_problems(several.each()[0], capabilities()["known"])) == []


@pytest.mark.parametrize(
    ("command", "values", "settings", "takers"),
    [
        ("sustain", {"load": {"profile": "step:200k@15s"}}, {"load.profile"}, "run and generate"),
        ("sustain", {"load": {"rate": "1k"}}, {"load.rate"}, "run and scale and generate and characterize"),
        ("run", {"search": {"quick": True}}, {"search.quick"}, "sustain"),
        ("run", {"search": {"start_rate": "1k"}}, {"search.start_rate"}, "sustain and sweep"),
        ("run", {"load": {"start": "2026-01-31T12:00:00", "of": "x"}}, {"load.start", "load.of"}, "generate"),
        (
            "run", {"anatomy": {"rates": "1k", "batch_windows": "1s", "record_sizes": "25"}},
            {"anatomy.rates", "anatomy.batch_windows", "anatomy.record_sizes"}, "anatomy",
        ),
        ("generate", {"limits": ["p99<=2s"]}, {"limits"}, "run and sustain and scale and sweep"),
        ("generate", {"load": {"chunk": "20ms"}}, {"load.chunk"}, "run and sustain and scale and sweep and anatomy"),
    ],
)  # fmt: skip
def test_what_a_command_does_not_take_is_not_passed_over(
    command: str, values: dict[str, Any], settings: set[str], takers: str
) -> None:
    """A file may say it, and the answer would be to another question; at its default it asks nothing."""
    problems = refused(GOOD | {"command": command} | values)
    assert {problem.setting for problem in problems} == settings
    assert all(problem.rule == f"is not a setting of {command}, only of {takers}" for problem in problems)
    plain = {"search": {"quick": False}, "load": {"profile": "constant", "rate": "100k", "bound": "30s"}}
    checked(GOOD | {"command": command} | plain)


def test_start_is_read_as_utc() -> None:
    """With and without a zone, to the microsecond."""

    def at(text: str) -> int | None:
        return settings_checks.start_us(experiment.build(GOOD | {"load": {"start": text}}))

    assert at("1970-01-01T00:00:01") == at("1970-01-01T01:00:01+01:00") == US
    assert at("2026-01-31T12:00:00.000001+00:00") == 1_769_860_800_000_001
    assert settings_checks.start_us(experiment.build(GOOD)) is None
    with pytest.raises(InputError, match=r"load\.start"):
        at("noon")
