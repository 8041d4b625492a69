"""The driver's side of the engine `external`: starts the user's program, waits until it is ready, and ends it.

A program that runs already is only waited for.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from streamgauge.core.engine_reports import BatchProgress
from streamgauge.core.errors import EngineError, StreamgaugeError
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.external.readiness import POLL_S, Readiness, last_lines
from streamgauge.engines.held_engine import HeldEngine
from streamgauge.engines.spi import Edges, EngineStatus
from streamgauge.system.child_processes import ChildFailed
from streamgauge.system.cpu_pinning import cpus
from streamgauge.system.disk import Scratch
from streamgauge.system.java import spark_kafka_jars
from streamgauge.system.process_holder import hold
from streamgauge.transports.kafka.settings import KafkaSettings
from streamgauge.transports.kafka.spark_checkpoint import SparkCheckpoint
from streamgauge.transports.topic_names import group_of, input_topics, output_topics, scratch_purpose
from streamgauge.user_workloads.program_node import ESCAPED, PLACEHOLDER, SCRATCH, Launch, launch_of

REQUEST_S = 20.0
TERM_S, STOP_S = 2.0, 4.0
"""How long the program has to end by itself after SIGTERM, and how long its whole tree has."""
PREFIX = "STREAMGAUGE_"
_BRACES = re.compile(f"{ESCAPED.pattern}|{PLACEHOLDER.pattern}")


class ExternalEngine(HeldEngine):
    """One start of the user's program."""

    stop_s = STOP_S

    def __init__(self, on_cpus: Sequence[int] | None = None, parallelism: int | None = None) -> None:
        super().__init__(on_cpus, parallelism)
        self._checkpoints: list[SparkCheckpoint] = []
        self._batches: list[BatchProgress] = []

    def start(self, flow: Flow, edges: Edges, options: dict[str, str], master: str | None, folder: Path) -> None:
        """Starts the program and waits until it is ready. Raises EngineError with what was seen."""
        launch = launch_of(flow)
        assert launch is not None
        folder.mkdir(parents=True, exist_ok=True)
        run, self._log = edges.output.token, folder / "program.log"
        self._scratch = Scratch(scratch_purpose(run))
        self._checkpoints = [SparkCheckpoint(place, run) for place in launch.checkpoints]
        settings = KafkaSettings(**edges.transport_options)
        group, inputs = self.consumer_group(flow, run), input_topics(run, dict(launch.inputs))
        values = {
            "brokers": settings.brokers, "group": group, "run": run, "scratch": str(self._scratch.path),
            "client": settings.client, "client_java": _java_client(settings, self._scratch.path),
            **by_name("input", inputs), **by_name("output", output_topics(run, dict(launch.outputs))),
        }  # fmt: skip
        environment = ProgramEnvironment(values, self._parallelism or len(self._cpus or cpus()))
        self._settings = settings_of(launch)
        try:
            if not launch.attached:
                self._launch(launch, environment, folder)
            self._await(Readiness(launch, settings.of_client, group, inputs.values(), self._log))
        except StreamgaugeError as error:
            self.stop()  # its last words are in the log
            log = str(self._log) if self._log.is_file() and self._log.stat().st_size else None
            raise EngineError(f"the program did not get ready: {error}", log) from None

    def _launch(self, launch: Launch, environment: ProgramEnvironment, folder: Path) -> None:
        command = environment.filled(launch.command)
        variables = environment.variables | {name: environment.filled([text])[0] for name, text in launch.environment}
        self._stage = f"starting {command[0]}"
        self._child = hold("program", folder / "external.log", self._cpus, term_s=TERM_S)
        self._child.ask(
            "start", REQUEST_S, command=command, environment=variables, folder=launch.folder, log=str(self._log)
        )

    def _await(self, readiness: Readiness) -> None:
        self._stage = f"waiting until the program is ready: {readiness.awaited}"
        while not readiness.is_ready():
            if (code := self._exit_code()) is not None:
                raise EngineError(f"{ended_by_itself(code, ' before it was ready')}{self._last_output()}")
            if readiness.timed_out:
                raise EngineError(f"{readiness.timeout_message()}{self._last_output()}")
            time.sleep(POLL_S)
        if (code := self._exit_code()) is not None:
            raise EngineError(f"{ended_by_itself(code, ' as soon as it was ready')}{self._last_output()}")

    def batch_progress(self, timeout_s: float = 30.0) -> list[BatchProgress]:
        """The batches in the checkpoints of its Spark queries."""
        for one in self._checkpoints:
            query = one.place.removeprefix(f"{SCRATCH}/")
            self._batches += [BatchProgress(query, each.number, each.begun_us, each.ended_us) for each in one.news()]
        return self._batches

    def status(self) -> EngineStatus:
        self.batch_progress()  # a query keeps its newest batches only
        try:
            code = self._exit_code()
        except ChildFailed as error:
            return EngineStatus(False, str(error))
        if code is None:
            return EngineStatus(True)
        return EngineStatus(False, f"{_end_in_words(code)}{self._last_output()}; its log: {self._log}")

    def consumer_group(self, flow: Flow, run: str) -> str:
        launch = launch_of(flow)
        assert launch is not None
        return group_of(run, launch.group)

    def _exit_code(self) -> int | None:
        """None while the program runs, as one does that was not started here."""
        return self._child.ask("exit_code", REQUEST_S) if self._child is not None else None

    def _last_output(self) -> str:
        if self._child is None:
            return ""
        return f"; its last lines: {lines}" if (lines := last_lines(self._log)) else "; it printed nothing"


def _java_client(settings: KafkaSettings, scratch: Path) -> str:
    """The path of a file that only this user reads, with the log-in for Java's client; empty without one."""
    if not settings.client:
        return ""
    path = scratch / "client.properties"
    path.touch(mode=0o600)
    path.write_text(settings.java_properties())
    return str(path)


def settings_of(launch: Launch) -> dict[str, str]:
    """They are the same in each run of a program, so a group that is named after the run is not named here."""
    return {
        "command": " ".join(launch.command) or "none: it ran already",
        "group": launch.group or "a new one for each run",
    }


def ended_by_itself(code: int, when: str) -> str:
    """The end of a program that should run, and what to change; its last output follows."""
    way_out = "it must run until SIGTERM ends it: " if code == 0 else ""
    return f"{_end_in_words(code)}{when}; {way_out}correct it, or command in its file"


def _end_in_words(code: int) -> str:
    """The end of the program in words; a negative code is that of a signal."""
    return f"the program was killed by signal {-code}" if code < 0 else f"the program ended with exit code {code}"


def by_name(kind: str, topics: Mapping[str, str]) -> dict[str, str]:
    """Placeholder to topic, for each input or output. A single one needs no name."""
    single = dict.fromkeys([kind], *topics.values()) if len(topics) == 1 else {}
    return single | {f"{kind}.{name}": topic for name, topic in topics.items()}


@dataclass(frozen=True)
class ProgramEnvironment:
    """What a program must know of its run. `values`: placeholder to value, of those that also are variables.

    `client`, `client_java` are the files by which librdkafka and Java log in; empty if the brokers want no log-in.
    """

    values: Mapping[str, str]
    parallelism: int

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of the program, without the parallelism, which its file must name."""
        return {PREFIX + name.replace(".", "_").upper(): value for name, value in self.values.items() if value}

    def value(self, name: str) -> str:
        """The value of a placeholder. Raises KeyError for an input or output that does not exist."""
        if name == "spark_kafka_jars":
            return ",".join(map(str, spark_kafka_jars()))
        return {**self.values, "python": sys.executable, "parallelism": str(self.parallelism)}[name]

    def filled(self, texts: Sequence[str]) -> list[str]:
        """Texts with their placeholders replaced. Doubled braces around a word become single ones; others stay."""
        return [_BRACES.sub(lambda found: found[1] or self.value(found[2]), text) for text in texts]
