"""A broker of our own: one node, KRaft, on loopback, started for a run and ended with it.

A process of ours holds the lifeline and starts the JVM, which the kernel kills with it. Data lie in the folder that the
starter gave, and are gone with that.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamgauge.core.errors import DriverError
from streamgauge.system.child_processes import Child, serve
from streamgauge.system.jars import JarSet, resolved
from streamgauge.system.java import find_java, java_environment

KAFKA = JarSet("kafka-4.2.0-that-logs", ("org.apache.kafka:kafka_2.13:4.2.0", "org.slf4j:slf4j-simple:1.7.36"))
"""The version that the broker is of, and what writes down why one fails. Scala itself comes from Spark's own jars: Ivy
leaves it out.
"""
START_S = 60.0
HEAP = "1g"
LOGGED = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
STOP_S = 5.0
_PDEATHSIG = 1


def require_jars() -> list[Path]:
    """The broker's jars; MachineError where they cannot be had."""
    return resolved([[KAFKA]])


class Broker:
    """One broker, running. A context manager: at its end it is gone.

    Args:
        folder: a folder of the caller's, for data and configuration; removed by the caller.
        log: what the broker says.
        host: the address that it listens on.
        cpus: the processors that it may use; all without.
    """

    def __init__(self, folder: Path, log: Path, host: str = "127.0.0.1", cpus: Sequence[int] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # Before the process is started: where jars cannot be had, that is this machine's lack.
        jars = [str(path) for path in require_jars()]
        self._child = Child("broker", __name__, [str(folder), host, os.pathsep.join(jars)], log, cpus)
        try:
            self.location: str = self._child.ask("start", START_S + 10.0)
        except BaseException:  # one that is interrupted as it starts, too
            self.stop()
            raise

    def __enter__(self) -> Broker:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def jvm(self) -> int:
        """The process id of its JVM."""
        return int(self._child.ask("jvm"))

    def kill(self) -> None:
        """End the JVM at once, as a crash would; data stay."""
        self._child.ask("kill")

    def restart(self) -> None:
        """Start it again where it was, on the same data."""
        self._child.ask("start", START_S + 10.0)

    def pids(self) -> list[int]:
        """Its processes: the one that holds the lifeline, and the JVM."""
        return [self._child.pid, self.jvm] if self.alive else []

    @property
    def alive(self) -> bool:
        """Whether its JVM runs."""
        return self._child.alive and bool(self._child.ask("alive"))

    def stop(self) -> None:
        self._child.stop(STOP_S)


class _Node:
    """The JVM, in the process that holds the lifeline."""

    def __init__(self, folder: Path, host: str, class_path: str) -> None:
        self._folder, self._host = folder, host
        self._class_path = os.pathsep.join((class_path, *_scala()))
        self._ports: tuple[int, int] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Starts the JVM and waits until it answers; gives HOST:PORT."""
        if self._ports is None:
            self._ports = _free_ports(self._host)
            self._configure()
            self._format()
        self._process = self._java("kafka.Kafka", self._config)
        self._await()
        return f"{self._host}:{self._ports[0]}"

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def jvm(self) -> int:
        assert self._process is not None
        return self._process.pid

    def end(self) -> None:
        """No farewell: nobody keeps its data."""
        if self._process is not None:
            self.kill()

    @property
    def _config(self) -> str:
        return str(self._folder / "server.properties")

    def _configure(self) -> None:
        assert self._ports is not None
        client, controller = self._ports
        Path(self._config).write_text("\n".join(f"{name}={value}" for name, value in {
            "process.roles": "broker,controller",
            "node.id": 1,
            "listeners": f"PLAINTEXT://{self._host}:{client},CONTROLLER://{self._host}:{controller}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@{self._host}:{controller}",
            "log.dirs": self._folder / "data",
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            "log.message.timestamp.type": "LogAppendTime",
        }.items()) + "\n")  # fmt: skip

    def _format(self) -> None:
        formatting = self._java("kafka.tools.StorageTool", "format", "-t", _cluster_id(), "-c", self._config)
        if code := formatting.wait():
            raise DriverError(f"the broker's folder could not be prepared (exit code {code})")

    def _java(self, *command: str) -> subprocess.Popen[bytes]:
        options = [f"-Xmx{HEAP}", f"-Xms{HEAP}", f"-Djava.io.tmpdir={self._folder}", LOGGED]
        return subprocess.Popen(
            [find_java().path, *options, "-cp", self._class_path, *command],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            env=java_environment(),
            preexec_fn=_die_with_parent,
        )

    def _await(self) -> None:
        assert self._ports is not None
        deadline = time.monotonic() + START_S
        while not _answers(self._host, self._ports[0]):
            if not self.alive():
                assert self._process is not None
                raise DriverError(f"the broker ended as it started (exit code {self._process.returncode})")
            if time.monotonic() > deadline:
                raise DriverError(f"the broker did not answer within {START_S:g} s")
            time.sleep(0.05)


def _answers(host: str, port: int) -> bool:
    """Whether a broker there says what it has."""
    from confluent_kafka.admin import AdminClient

    with contextlib.suppress(OSError), socket.create_connection((host, port), 1.0), contextlib.suppress(Exception):
        asked: Any = AdminClient({"bootstrap.servers": f"{host}:{port}", "log_level": 0})
        return bool(asked.list_topics(timeout=2.0).brokers)
    return False


def _die_with_parent() -> None:
    """In the new process, before it is a JVM: the kernel ends it with the thread that started it, our main one."""
    ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)


def _cluster_id() -> str:
    """Sixteen bytes as Kafka writes them, the first one 0: so it begins with `A`, never with the `-` of an option."""
    return urlsafe_b64encode(bytes(1) + os.urandom(15)).decode().rstrip("=")


def _free_ports(host: str) -> tuple[int, int]:
    """Two, which are held together: one after the other they might be the same."""
    with socket.create_server((host, 0)) as one, socket.create_server((host, 0)) as other:
        return int(one.getsockname()[1]), int(other.getsockname()[1])


def _scala() -> list[str]:
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    return [str(path) for name in ("scala-library", "scala-reflect") for path in jars.glob(f"{name}-*.jar")]


def main() -> None:
    folder, host, class_path = sys.argv[1:]
    node = _Node(Path(folder), host, class_path)
    serve({name: getattr(node, name) for name in ("start", "kill", "alive", "jvm")}, node.end, Path(folder))


if __name__ == "__main__":
    main()
