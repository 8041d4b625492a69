"""What there is, by name; engines of other distributions, and what is said of those that cannot be used."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streamgauge.cli import app
from streamgauge.core.errors import InputError, MissingOnMachine, Problem
from streamgauge.core.machine_check import MachineCheck
from streamgauge.engines import registry
from tests.helpers_engine_plugin import ENGINE, distribution, install_example, on_path


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    """No test leaves a distribution behind that only it had."""
    yield
    registry.declared.cache_clear()


def refusal(*words: str) -> str:
    """Why `run` with these words is refused."""
    error = CliRunner().invoke(app.app, ["run", *words]).exception
    assert isinstance(error, InputError)
    return str(error)


def test_the_option_of_an_engines_memory_is_one_of_its_options() -> None:
    """Advice names it; an engine without a heap of its own has none."""
    named = {name: registry.entry(name).memory_option for name in registry.declared()}
    assert all(
        option in {each.name for each in registry.capabilities()[name].settings}
        for name, option in named.items()
        if option
    )
    assert (named["spark"], named["flink"], named["external"]) == ("driver_memory", "memory", "")


@pytest.mark.parametrize(("engine", "values"), [
    ("flink", {"memory": "much", "buffer_timeout": "soon", "checkpoint_interval": "1ms", "object_reuse": "yes"}),
    ("storm", {"watermark_interval": "0", "ackers": "9", "pending": "0", "spins": "many"}),
    ("kafka-streams", {"commit_interval": "1ms", "watermark_delay": "late", "state_store": "disk"}),
])  # fmt: skip
def test_a_value_that_an_option_cannot_have_is_refused(engine: str, values: dict[str, str]) -> None:
    """Each alone, by the option's name; `auto` and defaults are taken."""
    plugin = registry.entry(engine)
    for name, value in values.items():
        assert [problem.setting for problem in plugin.option_problems({name: value})] == [f"option {name}"]
    allowed = {name: "auto" for name in values if name == "watermark_delay"}
    assert not list(plugin.option_problems(allowed))


def test_the_list_loads_no_engine() -> None:
    """`streamgauge engines` is answered at once, and where Spark is not installed."""
    code = (
        "import sys, streamgauge.engines.registry as c; c.matrix(); "
        "assert not {'pyspark', 'pyarrow.flight'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_engine_of_another_distribution_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its entry point, after ours; it refuses what it cannot run by the defaults of the base class and by its own
    check.
    """
    ours = registry.streaming_engines()
    install_example(monkeypatch, tmp_path)
    assert registry.streaming_engines() == (*ours, ENGINE)
    assert ENGINE in CliRunner().invoke(app.app, ["engines", "--json"]).output
    refused = refusal("windowed_aggregation", "--engine", ENGINE, "--option", "a=b", "--master", "local[2]")
    for words in ("WindowAggregate", "option a: is not an option of python-consumer", "master: does not apply"):
        assert words in refused


@pytest.mark.parametrize(
    ("engine", "names"),
    [("spark", ["faster-spark"]), ("samza", ["one-samza", "two-samzas"])],
)
def test_a_name_taken_twice_is_refused_by_both_distributions(
    engine: str, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours and another's; two others'. A run of any engine is refused, because it might be the wrong one."""
    for name in names:
        distribution(tmp_path, name, {engine: "json:JSONDecoder"})
    on_path(monkeypatch, tmp_path)
    refused = refusal("identity", "--engine", "known")
    assert f"engine {engine}: must be declared by one distribution only" in refused
    for name in names if len(names) == 2 else ["streamgauge", *names]:
        assert name in refused
    assert "uninstall one of them" in refused


PLANTED = """
from streamgauge.engines.spi import Capabilities, EnginePlugin
class Renamed(EnginePlugin):
    interface = 3
    capabilities = Capabilities("other", "", ("Source",), ("append",), ("memory",))
class Flying(EnginePlugin):
    interface = 3
    capabilities = Capabilities("planted", "", ("Source",), ("append",), ("pigeon",))
class Nameless(EnginePlugin):
    interface = 3
class Silent(EnginePlugin):
    interface = 3
    capabilities = Capabilities("planted", "", ("Source",), ("append",), ("memory", "kafka"))
class Newer(Silent):
    interface = 4
class Old(EnginePlugin):
    capabilities = Silent.capabilities
"""


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("no_such_module:Plugin", "must load, but gave ModuleNotFoundError: No module named 'no_such_module'"),
        ("planted_engine:Absent", "must load, but gave AttributeError"),
        ("planted_engine:Nameless", "must load, but gave AttributeError"),
        ("planted_engine:Renamed", "must have the name of its entry point, but its capabilities say 'other'"),
        ("planted_engine:Flying", "must read transports of memory, kafka, socket"),
        ("planted_engine:Silent", "must say in its capabilities which encodings it reads over kafka"),
        ("planted_engine:Old", "must be written for engine interface 3 (interface = 3), and is for 1"),
        ("planted_engine:Newer", "must be written for engine interface 3 (interface = 3), and is for 4"),
        ("json:JSONDecoder", "must be a class that extends streamgauge.engines.spi.EnginePlugin"),
    ],
)
def test_an_engine_that_cannot_be_used_gives_one_error(
    value: str, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its name, the reason, the distribution, and the way out; as the command shows it."""
    (tmp_path / "planted_engine.py").write_text(PLANTED)
    distribution(tmp_path, "planted-engine", {"planted": value})
    on_path(monkeypatch, tmp_path)
    monkeypatch.delitem(sys.modules, "planted_engine", raising=False)
    refused = refusal("identity", "--engine", "planted")
    assert f"engine planted: {rule}" in refused
    assert f"got '{value} of planted-engine'" in refused
    assert "pip uninstall planted-engine" in refused
    assert refused.count("try:") == 1


def test_the_checks_of_engines_have_one_name_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The modes of one engine share theirs. What only other engines need names them, and nothing is fetched."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    checks = registry.machine_checks("spark")
    needed = {check.name: check.needed_with for check in checks}
    assert needed == {
        "pyspark": "", "spark_temporary_path": "", "spark_native_code": "state in RocksDB",
        "spark_kafka_jars": "--transport kafka", "spark_avro_jars": "--transport-option encoding=avro",
        "flink_jars": "--engine flink", "kafka_streams_jars": "--engine kafka-streams", "storm_jars": "--engine storm",
    }  # fmt: skip
    assert len(checks) == len(needed)
    assert {check.status for check in checks if check.name.endswith("_jars")} == {"warning"}
    assert list(tmp_path.iterdir()) == []
    of_others = {check.name: check.needed_with for check in registry.machine_checks("flink")}
    assert (of_others["pyspark"], of_others["spark_temporary_path"]) == ("", "--engine spark")


def test_a_run_is_refused_by_the_same_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the engine fetches anything."""
    missing = MachineCheck("wheel", "none", (Problem("wheel", "must be there", None, "buy one"),))
    plugin = registry.entry("known")
    monkeypatch.setattr(plugin, "machine_checks", lambda: [missing], raising=False)
    monkeypatch.setattr(plugin, "require", lambda *_: pytest.fail("it fetched"), raising=False)
    with pytest.raises(MissingOnMachine) as refused:
        registry.require("known", "memory", {})
    assert [problem.setting for problem in refused.value.problems] == ["wheel"]
