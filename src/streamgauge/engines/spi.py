"""The engine interface: what every engine plugin implements, and the data it is given."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from streamgauge.core.engine_reports import BatchProgress, Delivery, OperatorCounts, SeriesSample
from streamgauge.core.errors import InputError, Problem
from streamgauge.core.machine_check import MachineCheck
from streamgauge.core.plugin_options import TUNED, Fetch, Setting, problems_of
from streamgauge.core.schema import EVENT_TIME
from streamgauge.core.trial import ProgressText
from streamgauge.dataflow.nodes import Flow, Node, UserJobNode
from streamgauge.engines.latency_probe import LatencyProbe
from streamgauge.engines.local_cluster import LocalCluster
from streamgauge.engines.operator_profiler import OperatorProfiler
from streamgauge.transports.spi import Edge

INTERFACE = 3
"""The number of this interface. It rises with each change that an older plugin would not survive."""


@dataclass(frozen=True)
class Edges:
    """Where a job's input comes from and where its results go.

    `columns`: the columns that the transport gives for each stream. `transport_options`: the options of the transport.
    `bind`: the driver's address. `keys`: stream to the column with its messages' key.
    """

    inputs: tuple[Edge, ...]
    output: Edge
    columns: dict[str, tuple[str, ...]]
    frontier: str = "common"
    transport: str = "memory"
    transport_options: Mapping[str, str] = field(default_factory=dict)
    bind: str = "127.0.0.1"
    keys: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TuningProfile:
    """What a tuning profile sets on an engine; a user's option overrides each entry.

    `options` are the engine's, by name; `transport_options` those of a transport, by the transport's name.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    transport_options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


VARIABLE_SHARE_MIN = 0.01
"""Least share of the time that is taken to grow with the rate, so that no idle engine promises endlessly much."""


@dataclass(frozen=True)
class NearLimit:
    """How the batches of an engine fill their time, and what it drains, near its limit.

    A search chooses its next load by these figures, and no verdict rests on them. The defaults are for an engine that
    was not measured, and none of them is a measurement: they choose a lower load, which takes more trials, where a
    higher one might fail. Busy shares are those of batches, so an engine without batches uses only the last three. A
    plugin whose engine was measured states its own.

    Attributes:
        full: busy share of an engine near its limit.
        over: target of the next rate after one that held. It is higher, because a trial that fails is shorter than one
            that holds, and gives the upper end.
        keeping_rows: both, of a flow that keeps rows until windows end. Few trials decide above, because its batches
            differ so much. A lower target costs a further step up.
        sure: busy share at which most trials decide. After an undecided trial a search goes down to it at once, since
            every undecided rate on the way costs a minute. An undecided trial below it is repeated.
        fixed: share of the time that batches need at any rate. The rest grows with the rate. A low value makes steps up
            too short rather than too long; 0 takes all of the time to grow.
        drain_factor: drain rate of an overload trial over the sustained rate. A high value makes the first guess too
            low rather than too high.
        drain_factor_keeping_rows: the same, of a flow that keeps rows until windows end.
        heap_share: share of the heap that rows may take by their size in Arrow. As objects of a JVM they take several
            times that size.
    """

    full: float = 0.9
    over: float = 0.9
    keeping_rows: float = 0.8
    sure: float = 0.7
    fixed: float = 0.0
    drain_factor: float = 1.2
    drain_factor_keeping_rows: float = 1.6
    heap_share: float = 1 / 16

    def full_of(self, keeps_rows: bool) -> float:
        """The busy share near the limit of a flow that may keep rows until windows end."""
        return self.keeping_rows if keeps_rows else self.full

    def rate_at(self, busy: float, rate_per_s: float, busy_share: float) -> float:
        """The rate at which batches would need the share `busy` of the time, by the share needed at another rate."""
        return rate_per_s * (busy - self.fixed) / max(busy_share - self.fixed, VARIABLE_SHARE_MIN)


UNMEASURED = NearLimit()


@dataclass(frozen=True)
class Capabilities:
    """The capabilities of an engine. The matrix in the docs and in `streamgauge engines` is generated from them.

    - `nodes`: the node kinds that its lowering has, by name (`node_names`).
    - `encodings`: how a message over a broker may carry an event. The first is its default, and others are refused.
    - `delivery`: the guarantee that it promises for its results. The rows that a weaker one allows are no faults.
      None: what it runs says it.
    - `delivery_of_windows`: the guarantee for results that have state, if that is another one.
    - `unsupported_reasons`: node kind to the reason why the engine cannot run it.
    - `fallback_engine`: the engine to suggest then.
    - `chunk_us`: the event time per chunk, for engines with latencies far below those of batches.
    - `transport_options`: different defaults for the engine's only transport.
    - `early_firing`: windows give intermediate values as updates, and no final one.
    - `has_batch_ids`: whether results belong to numbered batches.
    - `batch_steps`: each step of a batch to its label in reports, in order. Steps that only `batch_progress` names
      follow, under their names.
    - `sets_parallelism`: whether the engine can be started on a requested number of cores.
    - `simulated`: whether its capacity is what its options state, whatever the machine.
    - `location_settings`: settings in force that only name the folder in which the command ran.
    - `near_limit`: how busy it is near its limit, from which searches choose their next load.
    - `profiles`: name to tuning profile; the defaults of `settings` are those of the profile `tuned`.
    """

    name: str
    summary: str
    nodes: tuple[str, ...]
    sink_modes: tuple[str, ...]
    transports: tuple[str, ...]
    encodings: tuple[str, ...] = ()
    delivery: Delivery | None = "exactly_once"
    delivery_of_windows: Delivery | None = None
    fetches: tuple[Fetch, ...] = ()
    runs_streams: bool = True
    computes_truth: bool = False
    several_sinks: bool = False
    needs_java: bool = False
    settings: tuple[Setting, ...] = field(default=())
    unsupported_reasons: Mapping[str, str] = field(default_factory=dict)
    fallback_engine: str = ""
    chunk_us: int | None = None
    transport_options: Mapping[str, str] = field(default_factory=dict)
    early_firing: bool = False
    has_batch_ids: bool = True
    batch_steps: Mapping[str, str] = field(default_factory=dict)
    sets_parallelism: bool = False
    simulated: bool = False
    location_settings: tuple[str, ...] = ()
    near_limit: NearLimit = UNMEASURED
    profiles: Mapping[str, TuningProfile] = field(default_factory=lambda: {TUNED: TuningProfile()})


def node_names(kinds: Iterable[type]) -> tuple[str, ...]:
    """Node kinds as `Capabilities.nodes` has them."""
    return tuple(kind.__name__ for kind in kinds)


@dataclass(frozen=True)
class StartRequest:
    """A planned start, for an engine to validate.

    - `flow`: None if the flow itself is invalid.
    - `queue_bytes`: the memory limit of the driver's queue. `generators_bytes`: memory reserved for generators. Both
      are 0 if unknown.
    - `bind`: the driver's address; empty if unknown.
    - `partitions`: the number of partitions per stream.
    - `parallelism`: the requested cores of the engine; None for its own default.
    - `transport_options`: the options of the transport.
    - `rate_per_s`: events per second of all streams in the first trial; 0 if unknown.
    """

    flow: Flow | None
    options: dict[str, str]
    master: str | None
    frontier: str
    queue_bytes: int = 0
    bind: str = ""
    generators_bytes: int = 0
    transport: str = "memory"
    partitions: int = 1
    parallelism: int | None = None
    transport_options: Mapping[str, str] = field(default_factory=dict)
    rate_per_s: float = 0.0


@dataclass(frozen=True)
class BatchInterval:
    """The shortest time between the starts of two batches, and the option that sets it. 0 means unknown."""

    seconds: float = 0.0
    option: str = ""


@dataclass(frozen=True)
class EngineStatus:
    """The engine's own status.

    `reason` of a failure, `disk_full` whether a full disk is that reason, `rejected` whether it is that no result could
    be read, and `busy` queries that process a batch, if known.
    """

    alive: bool
    reason: str = ""
    busy: tuple[str, ...] = ()
    disk_full: bool = False
    rejected: bool = False


class Engine(Protocol):
    """One start of one engine for one job. A method with a body has a default, which a subclass inherits."""

    @abstractmethod
    def start(self, flow: Flow, edges: Edges, options: dict[str, str], master: str | None, folder: Path) -> None:
        """Starts the SUT and waits until its query runs. Raises EngineError with the engine's reason.

        What it has started then is ended by `stop`.
        """

    def stage(self) -> str:
        """The current step of a start, as text; empty if unknown."""
        return ""

    @abstractmethod
    def status(self) -> EngineStatus: ...

    @abstractmethod
    def pids(self) -> list[int]:
        """The SUT's processes, children included."""

    def batch_progress(self, timeout_s: float = 30.0) -> list[BatchProgress]:
        """The engine's own report on its batches, for the run folder; no verdict depends on it.

        May include batches of earlier trials, and a batch several times: its last report counts. Empty if the engine
        reports nothing or does not answer within `timeout_s`.
        """
        return []

    def operator_row_counts(self, timeout_s: float = 30.0) -> OperatorCounts:
        """The rows that left each operator in each batch since the last call; empty without probes."""
        return OperatorCounts()

    def settings(self) -> dict[str, str]:
        """The settings in force that are not the engine's defaults."""
        return {}

    def consumer_group(self, flow: Flow, run: str) -> str:
        """The consumer group that commits on a broker how far the job of this run has read; empty without one.

        The driver then reads progress from outside, by the offsets of that group. Topics whose names begin with the
        group's and a hyphen are the job's own: the driver waits until what the job wrote there is read again, and
        removes them with the run's.
        """
        return ""

    @abstractmethod
    def stop(self) -> None: ...


@runtime_checkable
class Restartable(Protocol):
    """An engine that goes on where it was after its processes were killed."""

    def has_checkpoint(self) -> bool:
        """Whether everything has kept a first state to come back to."""

    def restart(self) -> None:
        """Kills the SUT and starts it again from what it kept. Raises the errors of `Engine.start`."""


@runtime_checkable
class ReportsSeries(Protocol):
    """An engine that reports series of its own, such as the rows of an operator, a watermark or its busy share."""

    def series(self, timeout_s: float = 30.0) -> list[SeriesSample]:
        """Its samples, for the run folder; no verdict depends on them. The driver asks once, after each trial.

        May include samples of earlier trials. Empty if the engine does not answer within `timeout_s`.
        """


CLUSTER_CORES = "cluster cores"
"""Setting of a result: the cores of all workers of a cluster on this machine."""
ANOTHER_ENGINE = "--engine NAME (streamgauge engines lists what each supports)"
"""The way out of a request that an engine cannot run."""


@dataclass(frozen=True)
class BatchRequest:
    """A user job to answer over Parquet files.

    - `inputs`: stream to its file.
    - `options`: the options of the run.
    - `folder`: takes the engine's files; `log` takes its output.
    - `stage`: shows what the engine does.
    - `order`: the column by which parts of the input are taken.
    """

    job: UserJobNode
    inputs: Mapping[str, Path]
    options: dict[str, str]
    folder: Path
    log: Path
    stage: ProgressText | None = None
    order: str = EVENT_TIME


class BatchAnswer(Protocol):
    def __call__(self, out: Path, before_us: int | None = None) -> Path:
        """A folder of Parquet files: the job's results for the input whose `order` is below `before_us`."""


class EnginePlugin:
    """The base class of every engine's plugin, with a default for everything except `interface`, `capabilities` and
    `make`.

    It answers what the driver asks before a start, so it imports no library of the engine; only `make` does. `Engine`
    is a class of its own, because a search makes several starts of one engine.
    """

    interface: int
    """The number of the interface that the plugin was written for. Write the digit, since `INTERFACE` rises."""
    capabilities: Capabilities
    batch_truth: str = ""
    """What to call the truth that `batch_answer` gives; empty if the engine has no batch mode."""
    or_another_engine = ", or use another --engine"
    """The end of a way out; empty if what this engine runs can run on no other."""
    memory_option = ""
    """The option by which a user gives it less memory; empty if it has none."""
    conformance: str = ""
    """Where its `TestConf` is, as `module:name`; only the conformance suite loads it."""

    def check(self, request: StartRequest) -> None:
        """Raises one InputError with every problem of a request; by default those of `request_problems`."""
        if problems := list(self.request_problems(request)):
            raise InputError(problems)

    def request_problems(self, request: StartRequest) -> Iterable[Problem]:
        """The problems of a request.

        By default an engine takes only its own options, runs where the driver runs, and reads up to a common frontier.
        """
        name = self.capabilities.name
        yield from self.option_problems(request.options)
        if request.frontier != "common":
            rule, way_out = f"must be common for the engine {name}", f"--frontier common{self.or_another_engine}"
            yield Problem("load.frontier", rule, request.frontier, way_out)
        if request.master is not None:
            rule, way_out = f"does not apply to the engine {name}", f"leave --master out{self.or_another_engine}"
            yield Problem("master", rule, request.master, way_out)

    def option_problems(self, options: Mapping[str, str]) -> Iterable[Problem]:
        """The problems of its options; by default unknown names, and values that are not among the choices."""
        return problems_of(options, self.capabilities.settings, self.capabilities.name)

    def found_at_start(self, options: Mapping[str, str]) -> Iterable[str]:
        """What only a start finds out about options, in words, such as the names of settings of the engine itself."""
        return ()

    def interval(self, request: StartRequest) -> BatchInterval:
        """The distance of its batches. A queue that holds fewer than three is refused."""
        return BatchInterval()

    def watermark_delay_us(self, request: StartRequest) -> int:
        """How far its watermark stays behind the latest event."""
        return 0

    def closing_delay_us(self, node: Node) -> int:
        """How much later in event time results of a node come than they are complete, by which the tail is longer.

        Example: a window over another window's results closes a slide later if only the next event closes it.
        """
        return 0

    def unseen_us(self, request: StartRequest) -> int:
        """How long it may have read an event before its progress shows it.

        Example: offsets that are committed when the last window of their events has closed.
        """
        return 0

    def kept_us(self, request: StartRequest) -> int:
        """How much of the latest event time it commits only when later events come, so that a drain ends before it."""
        return 0

    def heap_bytes(self, options: Mapping[str, str]) -> int:
        """The memory that options give it beside the driver."""
        return 0

    def machine_checks(self) -> Iterable[MachineCheck]:
        """What it needs of this machine beside Java, looked up within milliseconds and without fetching anything.

        One that prevents a start prevents every start of this engine. What only some runs need, such as the jars for a
        transport, is a warning with the options of these runs (`needed_with`).
        """
        return ()

    def require(self, transport: str, options: Mapping[str, str]) -> None:
        """Fetches what a transport with its options needs and this machine lacks. Raises MachineError if it cannot be
        had.
        """

    def require_master(self, master: str | None, options: Mapping[str, str], parallelism: int | None) -> None:
        """Raises InputError if nothing answers at the address of a master, or what is there cannot hold what options
        and parallelism ask for.
        """

    def usable_cores(self, master: str | None, cores: int) -> int | None:
        """How many of this machine's `cores` its tasks may use; None if a master is or may be on another machine."""
        return cores if master is None else None

    def place(self, master: str | None, cores: int) -> str:
        """Where it runs, in words."""
        return master or f"{cores} core{'s' * (cores > 1)}"

    def make(self, cpus: Sequence[int] | None, parallelism: int | None) -> Engine:
        """A fresh start on the given processors with a parallelism; loads the engine."""
        raise NotImplementedError(f"the engine {self.capabilities.name} runs no streams")

    def warmup_s(self, request: StartRequest) -> float:
        """Seconds of warm-up that a fresh start needs to do everything once, such as a checkpoint a minute."""
        return 0.0

    def is_own_default(self, name: str, value: str) -> bool:
        """Whether a setting in force is the engine's own default; those of its options by default. All others go to
        `changed_settings` of the result.
        """
        return any((each.name, each.default) == (name, value) for each in self.capabilities.settings)

    def sends_all_columns(self, options: Mapping[str, str]) -> bool:
        """Whether options make events carry every declared column, not only those that the job reads."""
        return False

    def batch_answer(self, request: BatchRequest) -> AbstractContextManager[BatchAnswer]:
        """A process that answers a user job over files; ended at the end.

        Answers raise EngineError with the engine's, or the user's, reason.
        """
        raise NotImplementedError(f"the engine {self.capabilities.name} has no batch mode")

    def local_cluster(self) -> LocalCluster | None:
        """The cluster of this machine that `streamgauge cluster` runs; None if it has none."""
        return None

    def latency_probe(self) -> LatencyProbe | None:
        """How `anatomy` breaks down its latency; None if it cannot."""
        return None

    def operator_profiler(self) -> OperatorProfiler | None:
        """How it times operators for `characterize`; None if it cannot."""
        return None
