"""Experiments in files: read as they were written, and refused with the place of what is wrong."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from streamgauge.config import experiment, experiment_file
from streamgauge.config.experiment import SETTINGS, Experiment
from streamgauge.config.file_terms import in_file_terms
from streamgauge.config.setting_info import COMMANDS
from streamgauge.core.errors import InputError, Problem
from tests.unit.helpers_refusals import problem_of
from tests.unit.helpers_requests import GOOD

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize(
    ("text", "setting", "got"),
    [
        ('workload = "identity"\nenginee = "spark"\n', "enginee", "spark"),
        ('workload = "identity"\n[load]\nrat = 5\n', "load.rat", "5"),
        ('workload = "identity"\n[search]\nquik = true\n', "search.quik", "True"),
        ('engine = "spark"\n', "workload", "None"),
        ('workload = "identity"\n[load]\nrate = "fast"\n', "load.rate", "fast"),
        ('workload = "identity"\nlimits = "p99<=2s"\n', "limits", "p99<=2s"),
        ('workload = "filter"\nengine.cores = 2', "engine.cores", "2"),
        ('kind = "matrix"\nworkload = "filter"', "kind", "matrix"),
        ("workload = identity\n", "FILE", "experiment.toml"),
        ('workload = "identity\n', "FILE", "experiment.toml"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, text: str, setting: str, got: str) -> None:
    """Unknown keys of every level, wrong values, and what is no TOML at all."""
    path = tmp_path / "experiment.toml"
    path.write_text(text)
    problem = problem_of(experiment_file.read, path)
    assert (problem.setting, got in str(problem.got), problem.way_out == "") == (setting, True, False)


def lines_of(way_out: str, setting: str) -> list[str]:
    """The way out of a problem of a setting as lines of a file, with dotted names."""
    text = in_file_terms(Problem(setting, "a rule", "a value", way_out)).way_out
    lines = [re.fullmatch(r"(.+?)(?: below \[(\w+)\])?", part) for part in text.split(" and ")]
    return [f"{line[2]}.{line[1]}" if line[2] else line[1] for line in lines if line]


@pytest.mark.parametrize("name", [name for name, info in SETTINGS.items() if info.is_switch or " " in info.way_out])
def test_the_way_out_of_a_setting_is_a_line_of_the_file(name: str) -> None:
    """The option's accepted value, in the file, builds an experiment that has it."""
    info = SETTINGS[name]
    if info.way_out.endswith("with another value"):
        assert lines_of(info.way_out, name) == [f"{name} with another value"]
        return
    values = tomllib.loads("\n".join(["", *lines_of(info.way_out, name)]))
    section, _, key = name.rpartition(".")
    assert list(values[section] if section else values) == [key or name]
    command = info.commands[0]
    built = experiment.build({"workload": "filter", "command": command, **values})
    assert built.model_dump(exclude_unset=True).keys() >= values.keys()


@pytest.mark.parametrize(("way_out", "in_file"), [
    ("--option spark.sql.x=4", '"spark.sql.x" = "4" below [options]'),
    ("--driver-cpus 0-1 and --sut-cpus 2,3", 'driver = "0-1" below [cpus] and sut = "2,3" below [cpus]'),
    ("--brokers a:9092", 'brokers = "a:9092" below [transport_options]'),
    ("leave --set out, except --set data=FILE", 'leave parameters out, except data = "FILE" below [parameters]'),
    ("streamgauge sustain --resume DIR", "streamgauge sustain --resume DIR"),
    ("--loads 4096..8192", 'loads = "4096..8192" below [scale]'),
    ("a longer --chunk, or --rate 1.5M", 'a longer load.chunk, or rate = "1.5M" below [load]'),
])  # fmt: skip
def test_options_in_a_sentence_are_lines_of_the_file(way_out: str, in_file: str) -> None:
    assert in_file_terms(Problem("a setting", "a rule", "a value", way_out)).way_out == in_file


def test_a_name_with_dots_that_is_not_quoted_is_refused_with_its_line() -> None:
    """TOML reads it as tables; the line, read again, is accepted."""
    values = tomllib.loads("[options]\nspark.sql.shuffle.partitions = 3")
    problem = problem_of(experiment.build, {"workload": "filter", **values})
    assert (problem.setting, problem.got) == ("options.spark.sql.shuffle.partitions", 3)
    line, _, table = problem.way_out.partition(" below ")
    built = experiment.build({"workload": "filter", **tomllib.loads(f"{table}\n{line}")})
    assert built.options == {"spark.sql.shuffle.partitions": "3"}


@pytest.mark.parametrize(
    "make", [lambda path: None, lambda path: path.mkdir(), lambda path: path.write_bytes(b"\xff\xfe")]
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, make: Any) -> None:
    """Missing, a folder, or not text."""
    path = tmp_path / "experiment.toml"
    make(path)
    with pytest.raises(InputError, match="FILE"):
        experiment_file.read(path)


def test_a_file_says_what_the_command_says(tmp_path: Path) -> None:
    """`--print-toml`, read again, is the same experiment, every setting included."""
    values = GOOD | {
        "load": {"rate": "1.5M", "duration": "2m", "warmup": "10s", "generators": 3, "chunk": "20ms"},
        "parameters": {"range": "10s"}, "options": {"spark.sql.shuffle.partitions": "4"}, "limits": ["p99<=2s"],
        "search": {"quick": True}, "keep_results": True, "port": 5000,
        "partitions": 4, "parallelism": 2,
    }  # fmt: skip
    built = experiment.build(values)
    path = tmp_path / "experiment.toml"
    path.write_text(experiment_file.to_toml(built))
    assert experiment_file.read(path) == built


def test_a_number_of_events_sets_the_span(tmp_path: Path) -> None:
    """By the rate, also where a file or a dump is read again; with a duration it is refused."""
    values = {"workload": "identity", "load": {"rate": "50k", "events": "4M"}}
    built = experiment.build(values)
    path = tmp_path / "experiment.toml"
    path.write_text(experiment_file.to_toml(built))
    assert (built.load.duration, "duration" in path.read_text()) == (80.0, False)
    assert built == experiment_file.read(path) == experiment.build(built.model_dump(mode="json"))
    both = {**values, "load": {"rate": "50k", "events": "4M", "duration": "60s"}}
    assert problem_of(experiment.build, both).setting == "load.events"


def test_a_table_of_the_engine_or_transport_holds_its_settings(tmp_path: Path) -> None:
    """A file may write `engine.parallelism`; what is not a setting of the table is refused by its dotted name."""
    path = tmp_path / "experiment.toml"
    text = """
        workload = "filter"
        engine.parallelism = 2
        transport = {name = "kafka", partitions = 4, options = {encoding = "json"}}
    """
    path.write_text(text)
    built = experiment_file.read(path)
    assert (built.engine, built.parallelism, built.transport, built.partitions) == ("spark", 2, "kafka", 4)
    assert built.transport_options == {"encoding": "json"}
    path.write_text(experiment_file.to_toml(built))
    assert experiment_file.read(path) == built
    with pytest.raises(InputError, match=r"engine\.parallelism: must be given once"):
        experiment.build({"workload": "filter", "engine": {"parallelism": 2}, "parallelism": 2})


@pytest.mark.parametrize(
    ("values", "setting", "way_out"),
    [
        ({"rate": "10k"}, "rate", 'rate = "10k" below [load]'),
        ({"load": {"rte": 5}}, "load.rte", "rate = 5 below [load]"),
        ({"load": {"tolerance": "5%"}}, "load.tolerance", 'tolerance = "5%" below [search]'),
        ({"limit": "p99<=2s"}, "limit", 'limits = ["p99<=2s"]'),
        ({"load-shape": "ramp:5"}, "load-shape", 'profile = "ramp:5" below [load]'),
        ({"brokers": "a:9092"}, "brokers", 'brokers = "a:9092" below [transport_options]'),
        ({"transport": {"brokers": "a:9092"}}, "transport.brokers", 'brokers = "a:9092" below [transport_options]'),
        ({"serach": {"quick": True}}, "serach", "[search]"),
        ({"no-early-stop": True}, "no-early-stop", "early_stop = false below [load]"),
        ({"kind": "other"}, "kind", 'kind = "experiment"'),
        ({"zzz": 1}, "zzz", "remove it, or correct its spelling"),
        ({"zzz": {"rate": 1}}, "zzz", "remove it, or correct its spelling"),
    ],
)
def test_what_is_not_a_setting_leads_to_the_one_that_was_meant(
    values: dict[str, Any], setting: str, way_out: str
) -> None:
    """At its place in the file."""
    problem = problem_of(experiment.build, {"workload": "filter", **values})
    assert (problem.setting, problem.way_out) == (setting, way_out)


def test_a_file_may_say_that_it_is_an_experiment(tmp_path: Path) -> None:
    """As the file of a program says what it is; any other kind is refused."""
    path = tmp_path / "experiment.toml"
    path.write_text('kind = "experiment"\nworkload = "filter"')
    assert experiment_file.read(path) == experiment.build({"workload": "filter"})


def test_a_job_may_lie_beside_the_file_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where we are is looked at first; then where the file lies."""
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file.toml").write_text('workload = "job.py"')
    (tmp_path / "there" / "job.py").touch()
    monkeypatch.chdir(tmp_path)
    assert experiment_file.read(tmp_path / "there" / "file.toml").workload == str(tmp_path / "there" / "job.py")
    (tmp_path / "job.py").touch()
    assert experiment_file.read(tmp_path / "there" / "file.toml").workload == "job.py"


def test_every_field_has_its_option() -> None:
    """A field without metadata would have no option, and no command would refuse it."""
    sections: dict[str, type[BaseModel]] = {
        "load": experiment.Load,
        "search": experiment.Search,
        "sweep": experiment.Sweep,
        "scale": experiment.Scale,
        "anatomy": experiment.Anatomy,
        "characterize": experiment.Characterize,
        "cpus": experiment.Cpus,
    }
    fields = {f"{section}.{name}" for section, model in sections.items() for name in model.model_fields}
    fields |= set(Experiment.model_fields) - set(sections) - {"command", "workload", "matrix", "paper", "quick"}
    assert set(SETTINGS) == fields
    for info in SETTINGS.values():
        assert (info.help != "", set(info.commands) <= set(COMMANDS)) == (True, True)
        assert info.metavar or info.is_switch
        assert info.group
    options = [(command, info.flag) for info in SETTINGS.values() for command in info.commands]
    assert len(set(options)) == len(options), "a command has each option once"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_default_is_read_as_it_is_typed(command: str) -> None:
    """What `--help` shows is what holds where no option is given: typed, it changes nothing."""
    nothing = experiment.build({"command": command, "workload": "identity"})
    typed: dict[str, Any] = {"command": command, "workload": "identity"}
    for info in (info.in_command(command) for info in SETTINGS.values() if command in info.commands):
        section, _, key = info.name.rpartition(".")
        if isinstance(info.default, str):
            (typed.setdefault(section, {}) if section else typed)[key] = info.default
    own = {"sweep", "scale", "anatomy", "characterize"}
    assert experiment.build(typed).model_dump(exclude=own) == nothing.model_dump(exclude=own)
