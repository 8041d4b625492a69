"""The JSON Schema of experiment files: it takes what the reader takes, and finds what an editor can find."""

from pathlib import Path

import pytest

from streamgauge.config.experiment import SETTINGS
from streamgauge.config.experiment_file import read, to_toml
from streamgauge.config.file_schema import experiment_schema
from tests.docs.helpers_pages import fences
from tests.helpers_modules import ROOT
from tests.unit.helpers_file_schemas import assert_well_formed, found, inner_schemas, unexplained

EXPERIMENTS = sorted((ROOT / "experiments").rglob("*.toml"))
PAGE = (ROOT / "docs" / "reference" / "experiment-file.md").read_text()
SHOWN = [code for mark, _, code in fences(PAGE) if mark == "tested: experiment"]
SCHEMA = experiment_schema()


def in_experiment(line: str) -> list[str]:
    return found(SCHEMA, f'workload = "filter"\n{line}')


def test_the_schema_is_one() -> None:
    assert_well_formed(SCHEMA)


def test_every_key_is_explained() -> None:
    """At the top and in each section: its meaning, its default, and the commands that take it."""
    sections = [SCHEMA["$defs"][name] for name in ("Load", "Search", "Scale", "Anatomy", "Characterize")]
    for table in (SCHEMA, *sections):
        assert [name for name in unexplained(table) if name not in ("engine", "transport")] == []
    profile = SCHEMA["$defs"]["Load"]["properties"]["profile"]
    assert SETTINGS["load.profile"].help in profile["description"]
    assert (profile["default"], profile["type"]) == ("constant", "string")
    assert "60s; sustain: 30s" in SCHEMA["$defs"]["Load"]["properties"]["duration"]["description"]
    assert not [each for each in inner_schemas(SCHEMA) if " --" in each.get("description", "").replace("--print-", "")]


@pytest.mark.parametrize("path", EXPERIMENTS, ids=[path.name for path in EXPERIMENTS])
def test_shipped_files_are_valid(path: Path) -> None:
    """As they are written, and as `--print-toml` writes them."""
    assert found(SCHEMA, path.read_text()) == []
    assert found(SCHEMA, to_toml(read(path))) == []


def test_the_files_in_the_reference_are_valid() -> None:
    assert [found(SCHEMA, text) for text in SHOWN] == [[]] * len(SHOWN)
    assert len(SHOWN) > 3


@pytest.mark.parametrize("line", [
    'kind = "experiment"', 'load.rate = "1.5M"', 'load.rate = "100k/s"', "load.rate = 1e6", 'load.duration = "2min"',
    "load.duration = 60", 'search.tolerance = "5%"', "search.tolerance = 0.05", 'anatomy.rates = "1k,20k"',
    'anatomy.rates = ["1k", 20000]', 'scale.loads = "4096..131072"', 'characterize.slice_events = "10k"',
    'cpus = { driver = 0, sut = "1-3" }', "engine.parallelism = 2", 'transport = { name = "kafka", partitions = 4 }',
    'parameters = { range = "8s", above = 90 }', 'options."spark.sql.shuffle.partitions" = "4"',
    'matrix.engine = ["spark", "flink"]', "matrix.engine.parallelism = [1, 2]", 'matrix."load.rate" = ["1k"]',
    'matrix.parameters.data.purchases = ["a.csv"]', 'matrix.options = [{ trigger = "1s" }]',
    "matrix.include = [{ load.rate = 10, parameters.height = 1 }]",
])  # fmt: skip
def test_each_form_of_a_value_is_valid(line: str) -> None:
    """Text with units, numbers, lists, and tables for dotted names."""
    assert in_experiment(line) == []


@pytest.mark.parametrize(("line", "place"), [
    ("lod.rate = 1", "(file)"), ("load.rat = 1", "load"), ("matrix.load.rat = [1]", "matrix.load"),
    ("matrix.include = [{ load.rat = 1 }]", "matrix.include.0.load"), ("engine.paralelism = 2", "engine"),
    ("matrix.engine.paralelism = [2]", "matrix.engine"), ("matrix.repeats = 2", "matrix"),
    ("cpus = { driver = 0, broker = 1 }", "cpus"),
    ('matrix.paper.work = ["a"]', "matrix"),
])  # fmt: skip
def test_a_misspelt_key_is_found(line: str, place: str) -> None:
    """In each kind of table."""
    assert in_experiment(line) == [place]


@pytest.mark.parametrize(("line", "place"), [
    ('isolation = "pined"', "isolation"), ('command = "sustian"', "command"), ('load.rate = "100kk"', "load.rate"),
    ('load.duration = "60sec"', "load.duration"), ('search.tolerance = "5 percent"', "search.tolerance"),
    ("search.tolerance = 1.5", "search.tolerance"), ('load.generators = "two"', "load.generators"),
    ("load.generators = 0", "load.generators"), ('keep_results = "maybe"', "keep_results"),
    ('limits = "p99<=2s"', "limits"), ("options.trigger = 4", "options.trigger"),
    ("matrix.load.rate = 1", "matrix.load.rate"), ("matrix.load.rate = []", "matrix.load.rate"),
    ('matrix.isolation = ["pined"]', "matrix.isolation.0"),
    ('kind = "program"', "kind"),
])  # fmt: skip
def test_a_wrong_value_is_found(line: str, place: str) -> None:
    """A wrong choice, unit, type or bound, and a list or a single value in place of the other."""
    assert in_experiment(line) == [place]


def test_a_file_without_a_workload_is_found() -> None:
    assert found(SCHEMA, 'command = "run"') == ["(file)"]
