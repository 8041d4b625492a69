"""A local broker for one run: one KRaft node.

Its JVM hangs on a lifeline (`system.process_holder`). Data lie in the caller's folder.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from streamgauge.core.errors import DriverError
from streamgauge.core.machine_check import port_problem
from streamgauge.system.child_processes import wait_until
from streamgauge.system.java import OPTION_VARIABLES, JarSet, find_java, installed_spark_home, resolved
from streamgauge.system.machine import slow_start_advice
from streamgauge.system.process_holder import hold
from streamgauge.transports.kafka.topics import Topics

KAFKA = JarSet("kafka-4.2.0-that-logs", ("org.apache.kafka:kafka_2.13:4.2.0", "org.slf4j:slf4j-simple:1.7.36"))
"""The broker's version, and a logger for its failures. Scala comes from Spark's jars."""
START_S = 60.0
_PORTS = range(20_000, 32_000)
"""Below the range that Linux hands out (32768 to 60999), so no other connection gets a port before the broker does."""


def free_ports(host: str, n: int) -> list[int]:
    """That many different ports of this address on which nothing listens, in random order."""
    ports = random.sample(_PORTS, len(_PORTS))
    return list(islice((port for port in ports if not port_problem(host, port)), n))


def require_jars() -> list[Path]:
    """The broker's jars. Raises MachineError if they cannot be downloaded."""
    return resolved([[KAFKA]])


class Broker(contextlib.AbstractContextManager["Broker"]):
    """A running broker. A context manager that stops it on exit.

    Args:
        folder: for data and configuration; the caller removes it.
        log: the broker's output.
        host: the address that it listens on.
        cpus: the processors that it may use; None means all.
    """

    jvm = 0
    """The process id of its JVM."""

    def __init__(self, folder: Path, log: Path, host: str = "127.0.0.1", cpus: Sequence[int] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        spark_jars = installed_spark_home() / "jars"
        scala = (path for name in ("scala-library", "scala-reflect") for path in spark_jars.glob(f"{name}-*.jar"))
        # Before a process starts, so that missing jars raise MachineError.
        self._class_path = os.pathsep.join(map(str, (*require_jars(), *scala)))
        self._folder, self._log, self._host = folder, log, host
        self._config = str(folder / "server.properties")
        self._port, controller = free_ports(host, 2)
        self.location = f"{host}:{self._port}"
        self._holder = hold("broker", log, cpus, dict.fromkeys(OPTION_VARIABLES), scratch=folder)
        try:
            self._configure(controller)
            self._format()
            self.restart()
        except BaseException as error:
            self.stop()
            if not isinstance(error, DriverError):  # such as a missing Java
                raise
            raise DriverError(
                f"{error}; its log: {log}. {slow_start_advice()}, or name your own brokers (--brokers)"
            ) from None

    def __exit__(self, *_: object) -> None:
        self.stop()

    def kill(self) -> None:
        """Kills the JVM like a crash; data remain."""
        self._holder.ask("kill")

    def restart(self) -> None:
        """Starts the JVM, again on the same ports and data, and waits until it answers."""
        self._java("kafka.Kafka", self._config)
        if not wait_until(lambda: self._exit_code() is not None or _answers(self._host, self._port), START_S, 0.05):
            raise DriverError(f"the broker did not answer within {START_S:g} s")
        if (code := self._exit_code()) is not None:
            raise DriverError(f"the broker ended as it started (exit code {code})")

    def pids(self) -> list[int]:
        """Its JVM, without the process that holds it."""
        return [self.jvm] if self.alive else []

    @property
    def alive(self) -> bool:
        """Whether its JVM runs."""
        return self._holder.alive and self._exit_code() is None

    def stop(self) -> None:
        """Kills the JVM; a clean stop is not needed, because the data are discarded."""
        self._holder.stop(5.0)

    def _exit_code(self) -> int | None:
        return self._holder.ask("exit_code")

    def _configure(self, controller: int) -> None:
        Path(self._config).write_text("\n".join(f"{name}={value}" for name, value in {
            "process.roles": "broker,controller",
            "node.id": 1,
            "listeners": f"PLAINTEXT://{self._host}:{self._port},CONTROLLER://{self._host}:{controller}",
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
        self._java("kafka.tools.StorageTool", "format", "-t", _cluster_id(), "-c", self._config)
        wait_until(lambda: self._exit_code() is not None, START_S, 0.05)
        if (code := self._exit_code()) != 0:
            raise DriverError(f"the broker's folder could not be prepared (exit code {code})")

    def _java(self, *words: str) -> None:
        command = [
            find_java("the broker").path, "-Xmx1g", "-Xms1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            f"-Djava.io.tmpdir={self._folder}", "-cp", self._class_path, *words,
        ]  # fmt: skip
        self.jvm = self._holder.ask("start", command=command, log=str(self._log))


def _answers(host: str, port: int) -> bool:
    """Whether a broker answers at this address."""
    with contextlib.suppress(OSError, DriverError), socket.create_connection((host, port), 1.0):
        return bool(Topics(f"{host}:{port}").hosts(timeout_s=2.0))
    return False


def _cluster_id() -> str:
    """A random cluster id. The first byte is 0, so that the text does not start with `-` like an option."""
    return urlsafe_b64encode(bytes(1) + os.urandom(15)).decode().rstrip("=")
