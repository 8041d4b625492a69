"""`streamgauge cluster` on the command line, with daemons that only sleep."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner, Result

from streamgauge.cli import app
from streamgauge.core.errors import InputError
from streamgauge.engines.spark.cluster import state
from tests.unit.engines.spark.cluster.conftest import MASTER, member, place, sleeping

__all__ = ["member", "place", "sleeping"]


def say(*words: str) -> Result:
    return CliRunner().invoke(app.app, ["cluster", *words])


@pytest.mark.usefixtures("sleeping")
def test_the_address_alone_is_on_stdout() -> None:
    """For `--master $(streamgauge cluster status)`."""
    for done in (say("start", "--workers", "2", "--memory", "1GiB"), say("status")):
        assert (done.exit_code, done.stdout) == (0, f"{MASTER}\n")
        assert "2 workers, 2 cores and 1 GiB each, processors 0-3" in done.stderr
    assert say("stop").stderr == "stopped\n"


@pytest.mark.usefixtures("sleeping")
def test_a_second_start_and_a_second_stop() -> None:
    """The first is an error with exit code 2, the second is none."""
    say("start")
    second = say("start")
    assert isinstance(second.exception, InputError)
    assert second.exception.exit_code == 2
    stops = [say("stop") for _ in range(2)]
    assert [(done.exit_code, done.stdout, done.stderr) for done in stops] == [
        (0, "", "stopped\n"), (0, "", "no cluster is running: nothing to stop\n"),
    ]  # fmt: skip


@pytest.mark.usefixtures("place")
def test_a_status_without_a_cluster_fails() -> None:
    done = say("status")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "no cluster is running; streamgauge cluster start --workers N starts one\n"
    done = say("status", "--json")
    assert (done.exit_code, json.loads(done.stdout)) == (1, {"running": False})


@pytest.mark.usefixtures("sleeping")
def test_a_status_names_what_has_ended() -> None:
    say("start", "--workers", "2")
    cluster = state.read()
    assert cluster is not None
    ended = cluster.members[1]
    psutil.Process(ended.pid).kill()
    done = say("status")
    assert (done.exit_code, done.stdout) == (1, f"{MASTER}\n")
    assert f"worker 1 ended (process {ended.pid})" in done.stderr
    found = json.loads(say("status", "--json").stdout)
    assert (found["running"], found["master"], found["cores"]) == (False, MASTER, 2)
    assert [one["running"] for one in found["members"]] == [True, False, True]


@pytest.mark.usefixtures("sleeping")
def test_a_status_says_that_the_last_cluster_was_not_stopped() -> None:
    say("start")
    cluster = state.read()
    assert cluster is not None
    for one in cluster.members:
        psutil.Process(one.pid).kill()
    done = say("status")
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"the last one ended without stop ({MASTER})" in done.stderr


@pytest.mark.usefixtures("sleeping")
def test_a_status_names_what_an_interrupted_start_left() -> None:
    """Not its address, which lacks workers."""
    say("start", "--workers", "2")
    cluster = state.read()
    assert cluster is not None
    state.write(replace(cluster, members=cluster.members[:1], is_ready=False))
    done = say("status")
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"its start was interrupted (running: master as process {cluster.members[0].pid})" in done.stderr
    assert "streamgauge cluster stop" in done.stderr
    assert json.loads(say("status", "--json").stdout)["running"] is False


def test_stop_leaves_no_daemon_behind(sleeping: Path) -> None:
    say("start", "--workers", "3")
    cluster = state.read()
    assert cluster is not None
    say("stop")
    assert len(cluster.ended()) == 4
    assert [entry.name for entry in sleeping.iterdir()] == [".lock"]
