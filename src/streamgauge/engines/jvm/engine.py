"""The driver's side of engines on a JVM of their own: starts the job's JVM, polls its state, stops it.

Everything goes over Kafka. The driver follows the consumer group of the job, which commits how far it has read.
"""

import inspect
import json
import os
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from streamgauge.core.engine_reports import SeriesSample
from streamgauge.core.errors import EngineError, StreamgaugeError
from streamgauge.core.plugin_options import Setting, with_defaults
from streamgauge.core.units import parse_size
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.held_engine import HeldEngine
from streamgauge.engines.jvm.compiled import class_path
from streamgauge.engines.jvm.plan import ALL, JobPlan, job_plan, read_flow, sink_types
from streamgauge.engines.spi import Edges, EngineStatus
from streamgauge.system.child_processes import ChildFailed
from streamgauge.system.cpu_pinning import cpus
from streamgauge.system.disk import Scratch
from streamgauge.system.java import OPTION_VARIABLES, JarSet, find_java, resolved
from streamgauge.system.machine import slow_start_advice
from streamgauge.system.process_holder import hold
from streamgauge.transports.kafka.result_messages import Mark, Marks
from streamgauge.transports.topic_names import group_of

OPENED = ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "text", "time", "util", "util.concurrent",
          "util.concurrent.atomic", "util.concurrent.locks")  # fmt: skip
OPENS = (
    *(f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in OPENED),
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED", "--add-opens=java.base/sun.util.calendar=ALL-UNNAMED",
    "-Duser.timezone=UTC",
)  # fmt: skip
"""What Catalyst and the engines reach into."""
START_S, POLL_S, REQUEST_S, TERM_S, STOP_S = 300.0, 0.05, 20.0, 1.0, 3.0


class JvmEngine(HeldEngine):
    """One start of one job. A subclass names its jars and settings."""

    stop_s = STOP_S
    name: str
    main: str
    """The class that runs a plan. Its sources are in the folder `scala` beside the module."""
    all_settings: Sequence[Setting]
    """Its options."""

    def __init__(self, on_cpus: Sequence[int] | None = None, parallelism: int | None = None) -> None:
        super().__init__(on_cpus, parallelism)
        self._plan: JobPlan | None = None
        self._folder = Path()
        """That of the scratch."""
        self._command: list[str] = []

    @staticmethod
    @abstractmethod
    def jar_sets() -> list[JarSet]:
        """The engine's own jars, as they are tried in order."""

    def classes(self) -> list[Path]:
        """The class path of its jobs; fetched and compiled at first use. Raises MachineError."""
        find_java(self.name)
        return class_path(
            Path(inspect.getfile(type(self))).parent / "scala", resolved([[each] for each in self.jar_sets()])
        )

    @abstractmethod
    def configuration(self, options: Mapping[str, str], scratch: Path, partitions: int) -> dict[str, str]:
        """The engine's settings by its own names; `options` are all of them."""

    def latest_state(self, scratch: Path) -> str | None:
        """What a restart goes on from; None before there is any."""
        return None

    def start(self, flow: Flow, edges: Edges, options: dict[str, str], master: str | None, folder: Path) -> None:
        """Compiles what must be compiled, starts the JVM and waits until the job runs. Raises EngineError."""
        flow = read_flow(flow, edges)
        folder.mkdir(parents=True, exist_ok=True)
        self._log, self._scratch = folder / f"{self.name}.log", Scratch(self.name)
        self._folder = self._scratch.path
        parallelism = self._parallelism or len(self._cpus or cpus())
        options = with_defaults(options, self.all_settings)
        configuration = self.configuration(options, self._folder, len(edges.inputs))
        group = self.consumer_group(flow, edges.output.token)
        scratch = str(self._folder)
        self._plan = job_plan(flow, edges, group, parallelism, scratch, configuration, options["kafka_clients"])
        clients = {"consumer": self._plan.reading, "producer": self._plan.writing}
        by_client = {f"{each}.{name}": value for each, chosen in clients.items() for name, value in chosen.items()}
        self._settings = {**options, **configuration, **by_client, "parallelism": str(parallelism)}
        try:
            self._stage = "getting its jars and classes"
            classes = os.pathsep.join(map(str, self.classes()))
            memory = parse_size(options["memory"])
            self._command = [
                find_java(self.name).path, f"-Xmx{memory}", f"-Xms{memory}", f"-Djava.io.tmpdir={self._folder}", *OPENS,
                "-cp", classes, self.main,
            ]  # fmt: skip
            _announce_results(flow, edges)
            self._launch(self._plan)
        except StreamgaugeError:
            self.stop()
            raise

    def _launch(self, plan: JobPlan) -> None:
        file = self._folder / "plan.json"
        file.touch(mode=0o600)  # it may have a log-in
        file.write_text(json.dumps({name: value for name, value in asdict(plan).items() if value is not None}))
        (self._folder / "status").unlink(missing_ok=True)
        self._stage = f"starting {self.name}'s JVM"
        environment = dict.fromkeys(OPTION_VARIABLES) | {"SPARK_LOCAL_IP": "127.0.0.1"}
        self._child = hold(
            self.name, self._log.with_suffix(".holder.log"), self._cpus, environment, TERM_S, self._folder
        )
        self._child.ask(
            "start", REQUEST_S, command=[*self._command, str(file)], log=str(self._log), folder=str(self._folder)
        )
        until = time.monotonic() + START_S
        while not (failure := self._failure()) and self._state() != "running":
            if time.monotonic() > until:
                failure = f"{self.name} did not run its job within {START_S:g} s. {slow_start_advice()}"
                break
            time.sleep(POLL_S)
        if failure:
            raise EngineError(failure, str(self._log))

    def _state(self) -> str:
        try:
            return (self._folder / "status").read_text()
        except OSError:
            return ""

    def _failure(self) -> str:
        """Why the job does not run any more; empty if it does, or starts."""
        assert self._child is not None
        try:
            code, failure = self._child.ask("exit_code", REQUEST_S), ""
        except ChildFailed as error:
            code, failure = None, str(error)
        state = self._state()  # after the exit code, because a job writes its reason before it ends
        if state.startswith("failed "):
            return state.removeprefix("failed ")
        if code is None:
            return failure
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"the JVM of {self.name} {how}"

    def status(self) -> EngineStatus:
        failure = self._failure()
        return EngineStatus(False, f"{failure}; its log: {self._log}") if failure else EngineStatus(True)

    def series(self, timeout_s: float = 30.0) -> list[SeriesSample]:
        """What the job has written of its own."""
        try:
            lines = (self._folder / "series").read_text().splitlines(keepends=True)
        except OSError:
            return []
        return [SeriesSample(*json.loads(line)) for line in lines if line.endswith("\n")]

    def consumer_group(self, flow: Flow, run: str) -> str:
        return group_of(run)

    def has_checkpoint(self) -> bool:
        """An engine without states of its own goes on from committed offsets, or from the first event."""
        return True

    def restart(self) -> None:
        """Kills the JVM and starts the job again from its latest state."""
        assert self._child is not None
        assert self._plan is not None
        self._child.ask("kill", REQUEST_S)
        self._child.stop(0.0)
        self._launch(replace(self._plan, restore=self.latest_state(self._folder)))


def _announce_results(flow: Flow, edges: Edges) -> None:
    """Sends the marks that say which columns results have. Raises EngineError if the broker does not take them."""
    marks = Marks(edges.output, edges.transport_options)
    try:
        for sink, types in sink_types(flow).items():
            marks.send(Mark(sink, ALL, True, {sink: types}, endless=True))
    except RuntimeError as error:
        raise EngineError(str(error)) from None
