"""The suite in the hands of an outsider: on the example engine, and on engines with planted faults."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from streamgauge.conformance import suite
from streamgauge.conformance.cases import CASES
from streamgauge.conformance.trials import Restart, Subject, subject
from streamgauge.core.errors import InputError
from streamgauge.engines import registry
from streamgauge.engines.conformance import EVERY_CASE, Gap, TestConf, gaps
from tests.helpers_engine_plugin import ENGINE, EXAMPLE, distribution, install_example, on_path
from tests.helpers_modules import ROOT

PLANTED = '''
from dataclasses import replace
from functools import partial

from streamgauge.engines.conformance import Gap
from streamgauge_python_consumer import PythonConsumerPlugin
from streamgauge_python_consumer_conformance import CONF as EXAMPLE

CONF = replace(EXAMPLE, gaps={**EXAMPLE.gaps, "where": Gap("notyet", "so it says")})


class Planted(PythonConsumerPlugin):
    """Declares a node that it cannot run, and has a gap that it has closed."""

    capabilities = replace(PythonConsumerPlugin.capabilities, name="planted", nodes=("Source", "Where", "Explode"))
    conformance = "planted:CONF"
'''


@pytest.fixture
def planted(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Subject]:
    """The example and a faulty engine, as if they were installed."""
    folder = tmp_path_factory.mktemp("site-packages")
    install_example(monkeypatch, folder)
    (folder / "planted.py").write_text(PLANTED)
    distribution(folder, "planted", {"planted": "planted:Planted"})
    on_path(monkeypatch, folder)
    yield subject("planted")
    monkeypatch.undo()
    registry.declared.cache_clear()
    sys.modules.pop("planted", None)


def test_the_example_passes_what_starts_no_trial(planted: Subject) -> None:
    """With its own `TestConf`, found beside its plugin."""
    example = subject(ENGINE)
    assert example.cases == ["source", "where"]
    for case in CASES:
        assert bool(example.problems(case)) == (case in example.conf.gaps), case
    for test in (
        suite.test_every_gap_is_refused_with_a_reason_and_a_way_out,
        suite.test_gaps_name_cases,
        suite.test_declared_nodes_are_those_that_it_runs,
        suite.test_a_parallelism_is_taken_where_the_engine_says_so,
        suite.test_unknown_options_are_refused,
    ):
        test(example)


def test_a_declared_node_that_cannot_run_fails(planted: Subject) -> None:
    """As a gap, because it is declared; without the gap, because it is refused."""
    with pytest.raises(AssertionError, match="every case with it is a gap"):
        suite.test_declared_nodes_are_those_that_it_runs(planted)
    with pytest.raises(AssertionError, match="must be a source or a condition"):
        suite.test_a_case_is_let_through(planted, "explode")


def test_nodes_without_a_lowering_and_the_other_way_round_fail() -> None:
    """Where an engine says what its lowering takes."""
    from streamgauge.dataflow.nodes import Distinct, Explode, Select, Source, Where, WindowAggregate

    conf = subject("known").conf
    for lowered, sentence in (
        ((Source, Select, Where, WindowAggregate), "declared without a lowering"),
        ((Source, Select, Where, WindowAggregate, Explode, Distinct), "neither declared nor refused with a reason"),
    ):
        faulty = Subject("known", replace(conf, lowered=partial(tuple, lowered)))
        with pytest.raises(AssertionError, match=sentence):
            suite.test_declared_nodes_are_those_that_it_runs(faulty)


def test_gaps_of_unknown_cases_and_kinds_fail() -> None:
    """A renamed case would leave its gap behind."""
    with pytest.raises(AssertionError, match="no such case"):
        suite.test_gaps_name_cases(Subject("known", TestConf(gaps=gaps("never", "because", "no such case"))))
    with pytest.raises(AssertionError, match="sometimes"):
        suite.test_gaps_name_cases(Subject("known", TestConf(restart=Gap("sometimes", "because"))))


def test_a_restart_that_did_not_happen_is_taken_for_no_gap() -> None:
    """A gap expects an AssertionError, and this is another one."""
    with pytest.raises(pytest.fail.Exception):
        Restart(cast(Any, None)).check(cast(Any, None))


@pytest.mark.parametrize(
    ("engine", "is_gap"),
    [
        ("spark", {"source": False}),
        ("known", {"source": True}),
        ("flink", {"source": False, "hopping window": False}),
        ("kafka-streams", {"source": False, "hopping window": True}),
        ("storm", {"source": False, "hopping window": True}),
    ],
)
def test_the_gap_of_a_restart_is_that_of_windows_where_rows_may_be_read_twice(
    engine: str, is_gap: dict[str, bool]
) -> None:
    tests = {each.values[1]: each.marks for each in suite.restarts(subject(engine))}
    assert {case: any(mark.name == "xfail" for mark in marks) for case, marks in tests.items()} == is_gap


def test_an_engine_of_programs_runs_no_trial() -> None:
    """One gap stands for all cases."""
    external = subject("external")
    assert set(external.conf.gaps) == {EVERY_CASE}
    for parameters in (suite.trials, suite.one_trial, suite.restarts, suite.parallelisms, suite.other_ways):
        assert list(parameters(external)) == []


@pytest.mark.parametrize("engine", ["oracle", "sprak"])
def test_an_engine_that_runs_no_streams_is_refused(engine: str) -> None:
    """With those that there are."""
    with pytest.raises(InputError, match="must be one of spark"):
        subject(engine)


@pytest.mark.process
@pytest.mark.long
def test_an_engine_that_drops_rows_fails(tmp_path: Path) -> None:
    """By the oracle's answers."""
    faulty = Subject("known", TestConf(options={"fault": "drop", "fault_every": "100"}))
    with pytest.raises(AssertionError, match="missing"):
        suite.test_every_answer_is_right(tmp_path, faulty, ("source",))


@pytest.mark.process
@pytest.mark.long
def test_the_suite_runs_where_the_example_is_installed(tmp_path: Path) -> None:
    """In an environment of its own: the example passes every test, trials too; what is planted fails by name."""
    python = environment(tmp_path / "venv")
    shutil.copytree(EXAMPLE, tmp_path / "example", ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "--quiet", "--python", python, "install", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, str(tmp_path / "example")], check=True)
    stand = tmp_path / "stand"
    stand.mkdir()
    passed = run_suite(python, stand, ENGINE)
    assert passed.returncode == 0, passed.stdout
    assert "xfailed" in passed.stdout
    (stand / "planted.py").write_text(PLANTED)
    distribution(stand, "planted", {"planted": "planted:Planted"})
    failed = run_suite(python, stand, "planted", "-m", "not streamgauge_trial")
    names = {line.split("::")[1].split(" ")[0] for line in failed.stdout.splitlines() if line.startswith("FAILED")}
    assert names == {"test_a_case_is_let_through[planted-where]", "test_declared_nodes_are_those_that_it_runs[planted]"}
    assert "[XPASS(strict)] notyet: so it says" in failed.stdout


def environment(folder: Path) -> str:
    """A virtual environment that has what this one has, and our source tree. Returns its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    requested = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(requested, check=True, capture_output=True, text=True).stdout.strip())
    (site / "project.pth").write_text(f"{ROOT / 'src'}\n{sysconfig.get_path('purelib')}\n")
    return str(python)


def run_suite(python: str, stand: Path, engine: str, *words: str) -> subprocess.CompletedProcess[str]:
    """As an outsider runs it, in a folder without our settings of pytest."""
    command = [python, "-m", "pytest", "-p", "streamgauge.conformance.plugin", "--streamgauge-engine", engine, *words]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        command, cwd=stand, env=variables | {"PYTHONPATH": str(stand)}, capture_output=True, text=True, check=False
    )
