"""The broker of our own: it answers, stores what it was given, and leaves nothing behind."""

import os
import signal
import socket
import subprocess
import sys
from base64 import urlsafe_b64decode
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest

from streamgauge.core.errors import DriverError, MachineError
from streamgauge.system.child_processes import Child, is_running, wait_until
from streamgauge.transports.kafka import broker as module
from streamgauge.transports.kafka.broker import Broker
from streamgauge.transports.kafka.topics import Topics

GONE_S = 10.0

STARTER = """
import sys
from pathlib import Path
from streamgauge.transports.kafka.broker import Broker
folder = Path(sys.argv[1])
broker = Broker(folder / "data", folder / "broker.log")
print(broker.jvm, flush=True)
sys.stdin.read()
"""


def test_no_cluster_is_called_like_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka's own tool takes what begins with `-` for one, and one broker of 64 would not start."""
    monkeypatch.setattr(module.os, "urandom", lambda n: b"\xfb" * n)
    assert not module._cluster_id().startswith("-")
    assert len(urlsafe_b64decode(f"{module._cluster_id()}==")) == 16


def test_no_connection_can_be_given_the_port_of_a_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port from the kernel may become an outgoing connection's before the broker listens; one in use is passed."""
    handed_out = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = module.free_ports("127.0.0.1", 50)
    assert len(set(ports)) == 50
    assert max(ports) < handed_out
    with socket.create_server(("127.0.0.1", ports[0])), monkeypatch.context() as patch:
        patch.setattr(module, "_PORTS", ports[:2])
        assert module.free_ports("127.0.0.1", 1) == ports[1:2]


@pytest.mark.usefixtures("jars")
@pytest.mark.broker
def test_a_folder_that_cannot_be_prepared_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the tool's own exit, not by what the broker finds missing afterwards."""
    monkeypatch.setattr(module, "_cluster_id", lambda: "-an-option")
    with pytest.raises(DriverError, match=r"the broker's folder could not be prepared \(exit code 1\)"):
        Broker(tmp_path / "data", tmp_path / "broker.log")


@pytest.mark.broker
def test_topics_are_made_and_removed(broker: Broker) -> None:
    """A second one of that name is refused in the broker's own words, and so is the removal of none: others go."""
    topics = Topics(broker.location)
    topics.make(["made"], 2)
    assert "made" in topics.names()
    assert topics.ends("made", 2) == [0, 0]
    with pytest.raises(DriverError, match=r"topic made could not be made: .*exists"):
        topics.make(["made"], 2)
    with pytest.raises(DriverError, match="topic never-made could not be removed"):
        topics.remove(["never-made", "made"])
    assert wait_until(lambda: "made" not in topics.names(), GONE_S)
    assert topics.hosts() == {"127.0.0.1"}


def test_a_client_that_cannot_be_made_is_an_error() -> None:
    """In librdkafka's own words: here of a certificate that is none."""
    with pytest.raises(DriverError, match=r"no client for 127\.0\.0\.1:9 can be made"):
        Topics("127.0.0.1:9", {"security.protocol": "SSL", "ssl.ca.location": __file__})


@pytest.mark.broker
def test_it_listens_on_loopback_alone(broker: Broker) -> None:
    """Clients and the controller both."""
    listening = [each.laddr for each in psutil.Process(broker.jvm).net_connections("tcp") if each.status == "LISTEN"]
    assert len(listening) == 2
    assert {each.ip.removeprefix("::ffff:") for each in listening} == {"127.0.0.1"}


@pytest.mark.usefixtures("jars")
@pytest.mark.broker
def test_one_that_was_killed_has_its_topics_again(tmp_path: Path) -> None:
    """At the same place; stopped, its JVM is gone."""
    with Broker(tmp_path / "data", tmp_path / "broker.log") as broker:
        topics, before = Topics(broker.location), broker.location
        topics.make(["kept"], 1)
        broker.kill()
        assert not broker.alive
        broker.restart()
        assert broker.alive
        assert broker.location == before
        assert topics.names() == ["kept"]
        jvm = broker.jvm
    assert wait_until(lambda: not is_running(jvm), GONE_S)


@pytest.mark.usefixtures("jars")
@pytest.mark.broker
@pytest.mark.parametrize("killed", ["starter", "holder"])
def test_it_ends_with_whoever_started_it(tmp_path: Path, killed: str) -> None:
    """Also where that is killed, or the process between them is."""
    command = [sys.executable, "-c", STARTER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        jvm = int(starter.stdout.readline())
        holder = psutil.Process(jvm).ppid()
        os.kill(starter.pid if killed == "starter" else holder, signal.SIGKILL)
        assert wait_until(lambda: not is_running(jvm) and not is_running(holder), GONE_S)
        starter.kill()


def test_without_jars_there_is_no_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is started."""
    monkeypatch.setattr(module, "require_jars", Mock(side_effect=MachineError("jars are needed")))
    with pytest.raises(MachineError, match="jars are needed"):
        Broker(tmp_path / "data", tmp_path / "broker.log")
    assert not (tmp_path / "broker.log").exists()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (DriverError("it ended"), r"^it ended; its log: .*broker\.log\. .*\(--brokers\)$"),
        (MachineError("no Java"), "^no Java$"),
        (KeyboardInterrupt(), "^$"),
    ],
)
def test_a_failed_start_names_its_log_and_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, words: str
) -> None:
    """The reason first, and alone if it is not the broker's; the holder is ended."""
    holder = Mock(spec=Child)
    monkeypatch.setattr(module, "find_java", Mock(side_effect=error))
    monkeypatch.setattr(module, "require_jars", list)
    monkeypatch.setattr(module, "hold", lambda *_, **__: holder)
    with pytest.raises(type(error), match=words):
        Broker(tmp_path / "data", tmp_path / "broker.log")
    holder.stop.assert_called_once()


@pytest.mark.usefixtures("jars")
@pytest.mark.broker
def test_one_that_ends_as_it_starts_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here its folder was never prepared."""
    monkeypatch.setattr(Broker, "_format", lambda _: None)
    with pytest.raises(DriverError, match=r"the broker ended as it started \(exit code 1\)"):
        Broker(tmp_path / "data", tmp_path / "broker.log")
