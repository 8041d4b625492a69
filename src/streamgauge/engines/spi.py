"""The engine interface: what every engine plugin implements, and the data it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from streamgauge.core.batch_progress import BatchProgress
from streamgauge.core.operator_rows import OperatorCounts
from streamgauge.core.plugin_options import TUNED, Setting
from streamgauge.dataflow.nodes import Flow
from streamgauge.transports.spi import Edge


@dataclass(frozen=True)
class Edges:
    """Where a job's input comes from and where its results go.

    `columns`: the columns that the transport gives for each stream. `transport_options`: the options of the transport.
    `bind`: the driver's address.
    """

    inputs: tuple[Edge, ...]
    output: Edge
    columns: dict[str, tuple[str, ...]]
    frontier: str = "common"
    transport: str = "flight"
    transport_options: Mapping[str, str] = field(default_factory=dict)
    bind: str = "127.0.0.1"


@dataclass(frozen=True)
class TuningProfile:
    """What a tuning profile sets on an engine; a user's option overrides each entry.

    `options` are the engine's, by name; `transport_options` those of a transport, by the transport's name.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    transport_options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Capabilities:
    """The capabilities of an engine. The matrix in the docs and in `streamgauge engines` is generated from them.

    - `unsupported_reasons`: node kind to the reason why the engine cannot run it.
    - `fallback_engine`: the engine to suggest then.
    - `chunk_us`: the event time per chunk, for engines with latencies far below those of batches.
    - `transport_options`: different defaults for the engine's only transport.
    - `early_firing`: windows give intermediate values as updates, and no final one.
    - `has_batch_ids`: whether results belong to numbered batches.
    - `sets_parallelism`: whether the engine can be started on a requested number of cores.
    - `simulated`: whether its capacity is what its options state, whatever the machine.
    - `profiles`: name to tuning profile; the defaults of `settings` are those of the profile `tuned`.
    """

    name: str
    summary: str
    nodes: tuple[str, ...]
    sink_modes: tuple[str, ...]
    transports: tuple[str, ...]
    runs_streams: bool
    computes_truth: bool
    several_sinks: bool = False
    needs_java: bool = False
    settings: tuple[Setting, ...] = field(default=())
    unsupported_reasons: Mapping[str, str] = field(default_factory=dict)
    fallback_engine: str = ""
    chunk_us: int | None = None
    transport_options: Mapping[str, str] = field(default_factory=dict)
    early_firing: bool = False
    has_batch_ids: bool = True
    sets_parallelism: bool = False
    simulated: bool = False
    profiles: Mapping[str, TuningProfile] = field(default_factory=lambda: {TUNED: TuningProfile()})


@dataclass(frozen=True)
class StartRequest:
    """A planned start, for an engine to validate.

    - `flow`: None if the flow itself is invalid.
    - `queue_bytes`: the memory limit of the driver's queue. `generators_bytes`: memory reserved for generators. Both
      are 0 if unknown.
    - `bind`: the driver's address; empty if unknown.
    - `partitions`: the number of partitions per stream.
    - `parallelism`: the requested cores of the engine; None for its own default.
    """

    flow: Flow | None
    options: dict[str, str]
    master: str | None
    frontier: str
    queue_bytes: int = 0
    bind: str = ""
    generators_bytes: int = 0
    transport: str = "flight"
    partitions: int = 1
    parallelism: int | None = None


@dataclass(frozen=True)
class BatchInterval:
    """The shortest time between the starts of two batches, and the option that sets it. 0 means unknown."""

    seconds: float = 0.0
    option: str = ""


@dataclass(frozen=True)
class EngineStatus:
    """The engine's own status.

    `reason` of a failure, `disk_full` whether a full disk is that reason, and `busy` queries that process a batch, if
    known.
    """

    alive: bool
    reason: str = ""
    busy: tuple[str, ...] = ()
    disk_full: bool = False


class Engine(Protocol):
    """One start of one engine for one job."""

    def start(self, flow: Flow, edges: Edges, options: dict[str, str], master: str | None, folder: Path) -> None:
        """Starts the SUT and waits until its query runs. Raises EngineError with the engine's reason."""

    def stage(self) -> str:
        """The current step of a start, as text; empty if unknown."""

    def status(self) -> EngineStatus: ...

    def pids(self) -> list[int]:
        """The SUT's processes, children included."""

    def batch_progress(self, timeout_s: float = 30.0) -> list[BatchProgress]:
        """The engine's own report on its batches, for the run folder; no verdict depends on it.

        May include batches of earlier trials, and a batch several times: its last report counts. Empty if the engine
        reports nothing or does not answer within `timeout_s`.
        """

    def operator_row_counts(self, timeout_s: float = 30.0) -> OperatorCounts:
        """The rows that left each operator in each batch since the last call; empty without probes."""

    def settings(self) -> dict[str, str]:
        """The settings in force that are not the engine's defaults."""

    def stop(self) -> None: ...


CLUSTER_CORES = "cluster cores"
"""Setting of a result: the cores of all workers of a cluster on this machine."""


@dataclass(frozen=True)
class EnginePlugin:
    """An engine in the registry.

    Attributes:
        check: raises one InputError with every problem of a request.
        interval: the distance of its batches.
        watermark_delay_us: how far its watermark stays behind the latest event.
        heap_bytes: the memory that options give it beside the driver.
        require: raises MachineError if this machine lacks what a transport with its options needs and cannot get it.
        make: a fresh start on the given processors with a parallelism; loads the engine. None if it only answers.
        warmup_s: seconds of warm-up that a fresh start needs to do everything once, such as a checkpoint a minute.
        is_own_default: whether a setting in force, by name and value, is the engine's own default.
        sends_all_columns: whether options make events carry every declared column, not only those that the job reads.
        require_master: raises InputError if nothing answers at the address of a master, or what is there cannot hold
            what options and parallelism ask for.
        latency_probe: `module:name` of its class for `anatomy` (`studies/latency_breakdown/probe_api.py`); empty if its
            latency cannot be broken down.
    """

    capabilities: Capabilities
    check: Callable[[StartRequest], None] = lambda _: None
    interval: Callable[[StartRequest], BatchInterval] = lambda _: BatchInterval()
    watermark_delay_us: Callable[[StartRequest], int] = lambda _: 0
    heap_bytes: Callable[[Mapping[str, str]], int] = lambda _: 0
    require: Callable[[str, Mapping[str, str]], object] = lambda *_: None
    make: Callable[[Sequence[int] | None, int | None], Engine] | None = None
    warmup_s: Callable[[StartRequest], float] = lambda _: 0.0
    is_own_default: Callable[[str, str], bool] = lambda *_: False
    sends_all_columns: Callable[[Mapping[str, str]], bool] = lambda _: False
    latency_probe: str = ""
    require_master: Callable[[str | None, Mapping[str, str], int | None], object] = lambda *_: None
