"""Tuning profiles: which options a run has, what overrides them, and which engines have none."""

from dataclasses import replace
from itertools import product

import pytest

from streamgauge.config.experiment import build
from streamgauge.core.errors import Problem, attempt
from streamgauge.core.plugin_options import Tuning, problems_of
from streamgauge.core.schema import LINEAGE
from streamgauge.engines import registry
from streamgauge.engines.spi import TuningProfile
from streamgauge.preflight.resolved_experiment import ResolvedExperiment, engine_options, transport_options
from streamgauge.transports.registry import transport
from streamgauge.workloads.registry import names
from tests.unit.helpers_requests import checked, refused
from tools.tables.compatibility import MACHINE_SETTINGS


def resolved(tuning: Tuning = "idiomatic", **more: object) -> ResolvedExperiment:
    load = {"rate": "1k", "generators": 1}
    return checked({"workload": "windowed_aggregation", "tuning": tuning, "load": load, **more}, new_folder=False)


def test_a_profile_gives_what_the_user_does_not() -> None:
    """The engine's options and those of the transport in use; `tuned` leaves every default as it is."""
    plain, tuned = resolved(), resolved(tuning="tuned")
    assert (plain.engine_options["source"], plain.engine_options["trigger"]) == ("rows", "0 seconds")
    assert (plain.interval_s, tuned.interval_s, tuned.engine_options) == (0.0, pytest.approx(1.4), {})
    assert plain.transport_options == tuned.transport_options == {}
    assert resolved(transport="kafka").transport_options == {"encoding": "json"}
    assert resolved(transport="kafka", tuning="tuned").transport_options == {"encoding": "compact"}


@pytest.mark.parametrize("transport", ["memory", "kafka"])
def test_events_carry_every_declared_column_if_options_say_so(transport: str) -> None:
    """Lineage stays what the flow needs, and a payload comes once; other engines know no such option."""
    needed = resolved(tuning="tuned", transport=transport).columns
    assert "user_id" not in needed["purchases"]
    lineage = tuple(name for name in needed["purchases"] if name in LINEAGE)
    declared = ("user_id", "gem_pack_id", "price")
    assert resolved(transport=transport).columns == {"purchases": (*declared, *lineage)}
    assert resolved(transport=transport, options={"columns": "read"}).columns == needed
    heavy = resolved(transport=transport, parameters={"payload_bytes": "8"}).columns["purchases"]
    assert sorted(heavy) == sorted((*declared, "payload", *lineage))
    assert "user_id" not in resolved(tuning="tuned", engine="known").columns["purchases"]


@pytest.mark.parametrize("engine", ["flink", "kafka-streams", "storm"])
def test_a_profile_means_the_same_of_every_engine(engine: str) -> None:
    """Encoding, columns and Kafka's clients are those of Spark, so that a comparison has like with like."""
    for tuning in ("tuned", "idiomatic"):
        of_spark = resolved(tuning, transport="kafka")
        one = resolved(tuning, transport="kafka", engine=engine)
        assert (one.transport_options, one.columns) == (of_spark.transport_options, of_spark.columns)
        assert one.engine_options.get("kafka_clients") == of_spark.engine_options.get("kafka_clients")


def test_an_option_overrides_the_profile_and_nothing_else_of_it() -> None:
    """Of the engine and of the transport."""
    experiment = resolved(
        options={"source": "bundles", "spark.sql.adaptive.enabled": "false"},
        transport="kafka", transport_options={"encoding": "avro"},
    )  # fmt: skip
    expected = {"source": "bundles", "spark.sql.adaptive.enabled": "false", "lowering": "plain"}
    assert experiment.engine_options.items() >= expected.items()
    assert experiment.transport_options == {"encoding": "avro"}


@pytest.mark.parametrize(
    ("values", "rule", "way_out"),
    [
        ({"engine": "known", "tuning": "idiomatic"}, "must be tuned: known has no other tuning profile",
         "--tuning tuned, or --engine spark"),
        ({"tuning": "idiomatc"}, "must be one of", "--tuning idiomatic"),
        # A file with one for a command that starts no engine: passed over in silence it would promise something.
        ({"command": "generate", "tuning": "idiomatic"}, "is not a setting of generate", ""),
    ],
)  # fmt: skip
def test_a_profile_that_does_not_apply_is_refused(values: dict[str, str], rule: str, way_out: str) -> None:
    """With the profiles that there are, and an engine that has the one requested."""
    (problem,) = [one for one in refused({"workload": "identity", **values}) if one.setting == "tuning"]
    assert problem.rule.startswith(rule)
    assert problem.way_out.startswith(way_out)


def test_another_engine_only_adds_its_table() -> None:
    """Nothing but data of the engine says what a profile is."""
    mine = TuningProfile({"parallel": "off"}, {"kafka": {"linger": "9ms"}})
    engine = replace(registry.capabilities()["known"], profiles={"tuned": TuningProfile(), "idiomatic": mine})
    experiment = build({"workload": "identity", "tuning": "idiomatic", "transport": "kafka", "options": {"a": "b"}})
    assert engine_options(experiment, engine) == {"parallel": "off", "a": "b"}
    assert transport_options(experiment, engine) == {"linger": "9ms"}


@pytest.mark.parametrize("engine", registry.streaming_engines())
def test_profiles_name_options_that_there_are(engine: str) -> None:
    """With values that these options take, or a profile would be refused whenever it is requested."""
    capabilities = registry.capabilities()[engine]
    for profile in capabilities.profiles.values():
        assert list(problems_of(profile.options, capabilities.settings, engine)) == []
        for way, options in profile.transport_options.items():
            assert list(problems_of(options, transport(way).settings, way)) == []


def refused_by_profile(workload: str, tuning: Tuning, way: str) -> list[str]:
    """The problems of a run that names no option: those of the machine aside."""
    values = {"workload": workload, "tuning": tuning, "transport": way, "load": {"rate": "1k", "generators": 1}}
    problems: list[Problem] = []
    attempt(lambda: checked(values, new_folder=False), problems)
    return [one.setting for one in problems if one.setting not in MACHINE_SETTINGS]


@pytest.mark.parametrize("tuning", ["tuned", "idiomatic"])
def test_no_profile_picks_what_the_transport_refuses(tuning: Tuning) -> None:
    """A workload that Spark runs over a transport runs there in every profile, with no option refused."""
    for workload, way in product(names(), registry.capabilities()["spark"].transports):
        settings = refused_by_profile(workload, tuning, way)
        assert not any("option" in setting for setting in settings), (workload, way, settings)
