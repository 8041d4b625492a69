"""Settings of every test, and the guard of those that must start nothing."""

import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import vl_convert
from hypothesis import settings

from streamgauge.core.errors import MachineError
from streamgauge.engines.spark.options import defaults
from streamgauge.engines.spark.session import environment
from streamgauge.stats import bootstrap
from streamgauge.studies.scalability import scaling_laws
from streamgauge.system.java import find_java
from streamgauge.transports.kafka.broker import Broker, require_jars

pytest_plugins = ["streamgauge.conformance.plugin"]  # an installation of an earlier source tree may not declare it

# No test may depend on how fast this machine is just now. Few examples each time, others every time: `make test-long`
# tries many (--hypothesis-profile many).
settings.register_profile("many", deadline=None)
settings.register_profile("few", deadline=None, max_examples=10)
settings.load_profile("few")

# `make test` asks by this variable for the JVM's quick compiler alone, which starts of Spark would set aside. Commands
# in processes of their own set it aside all the same: test_hostile_environments.py.
environment.SET_ASIDE_EVERYWHERE = tuple(
    name for name in environment.SET_ASIDE_EVERYWHERE if name != "JDK_JAVA_OPTIONS"
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where Spark is started, what py4j leaves open to the garbage collector is not ours, and hits any test."""
    if any(item.get_closest_marker("spark") for item in items):
        config.addinivalue_line("filterwarnings", "ignore::pytest.PytestUnraisableExceptionWarning")
    apply_groups(items)


def apply_groups(items: list[pytest.Item]) -> None:
    """Makes groups of `--dist loadgroup` take effect: pytest-xdist 3.8 writes a test's group into `_nodeid`, where
    pytest 9.2 does not look any more. Nothing happens with versions that fit each other.
    """
    for item in items:
        if (grouped := vars(item).get("_nodeid")) is not None:
            item._id = type(item._id).parse(grouped)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Without a Java every test on Spark would fail for itself, minutes later."""
    if session.config.option.collectonly or not any(item.get_closest_marker("spark") for item in session.items):
        return
    try:
        find_java()
    except MachineError as error:
        pytest.exit(str(error), returncode=error.exit_code)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Tests that share a Spark session, or a broker, stay together: several processes would start one each. Trials of
    the conformance suite are marked with what they start.
    """
    if item.get_closest_marker("streamgauge_trial") is not None:
        engine = item.callspec.params["subject"].capabilities  # type: ignore[attr-defined]
        starts = [*(["spark"] if engine.needs_java else []), *(["broker"] if engine.transports == ("kafka",) else [])]
        for name in ("process", "long", *starts):
            item.add_marker(name)
    shared = {"spark", "broker"}.intersection(getattr(item, "fixturenames", ()))
    for name in shared:
        item.add_marker(pytest.mark.xdist_group(name))


UNCACHED_FILES = {"spark.hadoop.fs.file.impl.disable.cache": "true"}
"""So that a test may choose other local files than those of a run (`spark_with_state`)."""


@pytest.fixture(scope="session", autouse=True)
def made_once() -> Iterator[None]:
    """Each process draws equal charts once, and builds the command line once: both take most of the time of tests."""
    draw = functools.cache(vl_convert.vegalite_to_svg)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "vegalite_to_svg", lambda chart: draw(json.dumps(chart)))
        patch.setattr(typer.main, "get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A Spark in the process of the tests, for those that need no run around it, with the settings that a run has.

    On two cores, or as many as STREAMGAUGE_TEST_CORES says
    (`tests/engine_conformance/spark_session/test_number_of_cores.py`).
    """
    from pyspark.sql import SparkSession

    cores = os.environ.get("STREAMGAUGE_TEST_CORES", "2")
    values = defaults(int(cores), local_checkpoint=True) | UNCACHED_FILES
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master(f"local[{cores}]")
        session = builder.config(map=values).getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.fixture
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to stand in; at the end it is as empty, and no process was started."""

    def started(*arguments: Any, **_: Any) -> None:
        raise AssertionError(f"a process was started: {arguments}")

    stand = tmp_path / "stand"
    stand.mkdir()
    monkeypatch.chdir(stand)
    monkeypatch.setattr(subprocess, "Popen", started)
    yield stand
    assert list(stand.iterdir()) == []


@pytest.fixture
def quick_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same intervals of slopes, at a fiftieth of their cost for 60 points: for tests that ask for many."""
    from tests.helpers_quick_draws import replicates

    monkeypatch.setattr(bootstrap, "_replicates", replicates)


@pytest.fixture
def quick_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the replicates: a study of scalability fits its laws again after each trial."""
    monkeypatch.setattr(scaling_laws, "REPLICATES", 40)


@pytest.fixture(scope="session")
def jars() -> None:
    """Cached since an earlier time, or resolved now; without a repository and without them no broker can be started."""
    try:
        require_jars()
    except MachineError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def broker(jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One for all of them: each makes topics of its own."""
    folder = tmp_path_factory.mktemp("broker")
    with Broker(folder / "data", folder / "broker.log") as started:
        yield started
