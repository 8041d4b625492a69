"""`streamgauge cluster` on the command line, with daemons that only sleep."""

import json
from dataclasses import replace
from typing import Any

import psutil
import pytest
from typer.testing import CliRunner, Result

from streamgauge.cli import app
from streamgauge.engines.spark.cluster import state
from tests.unit.engines.spark.cluster.conftest import MASTER, member, place, sleeping

__all__ = ["member", "place", "sleeping"]


def call(*words: str) -> Result:
    return CliRunner().invoke(app.app, ["cluster", *words])


def started(*words: str) -> Any:
    """A cluster that was started."""
    call("start", *words)
    return state.read()


@pytest.mark.usefixtures("sleeping")
def test_the_address_alone_is_on_stdout() -> None:
    """For `--master $(streamgauge cluster status)`."""
    for done in (call("start", "--workers", "2", "--memory", "1GiB"), call("status")):
        assert (done.exit_code, done.stdout) == (0, f"{MASTER}\n")
        assert "2 workers, 2 cores and 1 GiB each, processors 0-3" in done.stderr
    assert call("stop").stderr == "stopped\n"


@pytest.mark.usefixtures("place")
def test_a_status_without_a_cluster_fails() -> None:
    done = call("status")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "no cluster is running; streamgauge cluster start --workers N starts one\n"
    done = call("status", "--json")
    assert (done.exit_code, json.loads(done.stdout)) == (1, {"running": False})


@pytest.mark.usefixtures("sleeping")
def test_a_status_names_what_has_ended() -> None:
    ended = started("--workers", "2").members[1]
    psutil.Process(ended.pid).kill()
    done = call("status")
    assert (done.exit_code, done.stdout) == (1, f"{MASTER}\n")
    assert f"worker 1 ended (process {ended.pid})" in done.stderr
    status = json.loads(call("status", "--json").stdout)
    assert (status["running"], status["master"], status["cores"]) == (False, MASTER, 2)
    assert [one["running"] for one in status["members"]] == [True, False, True]


@pytest.mark.usefixtures("sleeping")
def test_a_status_says_that_the_last_cluster_was_not_stopped() -> None:
    for one in started().members:
        psutil.Process(one.pid).kill()
    done = call("status")
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"the last one ended without stop ({MASTER})" in done.stderr


@pytest.mark.usefixtures("sleeping")
def test_a_status_names_what_an_interrupted_start_left() -> None:
    """Not its address, which lacks workers."""
    cluster = started("--workers", "2")
    state.write(replace(cluster, members=cluster.members[:1], is_ready=False))
    done = call("status")
    assert (done.exit_code, done.stdout) == (1, "")
    words = (f"its start was interrupted (running: master as process {cluster.members[0].pid})", "cluster stop")
    assert [each for each in words if each not in done.stderr] == []
    assert json.loads(call("status", "--json").stdout)["running"] is False
