"""A local broker for one run: one KRaft node.

A Python process holds the lifeline and starts the JVM. The kernel kills the JVM when this process ends. Data lie in the
caller's folder.
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
from streamgauge.system.child_processes import Child, ChildFailed, serve
from streamgauge.system.java import JarSet, find_java, java_environment, resolved

KAFKA = JarSet("kafka-4.2.0-that-logs", ("org.apache.kafka:kafka_2.13:4.2.0", "org.slf4j:slf4j-simple:1.7.36"))
"""The broker's version, and a logger for its failures. Scala comes from Spark's jars."""
START_S = 60.0
HEAP = "1g"
LOGGED = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
STOP_S = 5.0
_PDEATHSIG = 1


def require_jars() -> list[Path]:
    """The broker's jars. Raises MachineError if they cannot be downloaded."""
    return resolved([[KAFKA]])


class Broker:
    """A running broker. A context manager that stops it on exit.

    Args:
        folder: for data and configuration; the caller removes it.
        log: the broker's output.
        host: the address that it listens on.
        cpus: the processors that it may use; None means all.
    """

    def __init__(self, folder: Path, log: Path, host: str = "127.0.0.1", cpus: Sequence[int] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # Before the process starts, so that missing jars raise MachineError.
        jars = [str(path) for path in require_jars()]
        self._child = Child("broker", __name__, [str(folder), host, os.pathsep.join(jars)], log, cpus)
        try:
            self.location: str = self._child.ask("start", START_S + 10.0)
        except ChildFailed as error:
            self.stop()
            if error.kind != DriverError.__name__:  # such as a missing Java
                raise
            raise DriverError(f"{error}; its log: {log}. Free memory, or name your own brokers (--brokers)") from None
        except BaseException:
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
        """Kills the JVM like a crash; data remain."""
        self._child.ask("kill")

    def restart(self) -> None:
        """Starts it again on the same ports and data."""
        self._child.ask("start", START_S + 10.0)

    def pids(self) -> list[int]:
        """The Python process with the lifeline, and the JVM."""
        return [self._child.pid, self.jvm] if self.alive else []

    @property
    def alive(self) -> bool:
        """Whether its JVM runs."""
        return self._child.alive and bool(self._child.ask("alive"))

    def stop(self) -> None:
        self._child.stop(STOP_S)


class _Node:
    """The JVM of the broker, in the process with the lifeline."""

    def __init__(self, folder: Path, host: str, class_path: str) -> None:
        self._folder, self._host = folder, host
        self._class_path = os.pathsep.join((class_path, *_scala()))
        self._ports: tuple[int, int] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Starts the JVM and waits until it answers. Returns HOST:PORT."""
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
        """Kills the JVM; a clean stop is not needed, because the data are discarded."""
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
    """Whether a broker answers at this address."""
    from confluent_kafka.admin import AdminClient

    with contextlib.suppress(OSError), socket.create_connection((host, port), 1.0), contextlib.suppress(Exception):
        client: Any = AdminClient({"bootstrap.servers": f"{host}:{port}", "log_level": 0})
        return bool(client.list_topics(timeout=2.0).brokers)
    return False


def _die_with_parent() -> None:
    """Called in the child before exec: the kernel kills it when the parent's main thread ends."""
    ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)


def _cluster_id() -> str:
    """A random cluster id. The first byte is 0, so that the text does not start with `-` like an option."""
    return urlsafe_b64encode(bytes(1) + os.urandom(15)).decode().rstrip("=")


def _free_ports(host: str) -> tuple[int, int]:
    """Two free ports, reserved at the same time so that they differ."""
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
