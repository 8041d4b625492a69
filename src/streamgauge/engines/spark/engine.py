"""The driver's side of the Spark engine: starts the SUT process, polls its status and progress, stops it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from streamgauge.core.engine_reports import BatchProgress, OperatorCounts, OperatorRows
from streamgauge.core.errors import EngineError, is_full
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.held_engine import HeldEngine
from streamgauge.engines.local_cluster import Cluster, ended_in_words
from streamgauge.engines.spark import options_dstream, options_realtime
from streamgauge.engines.spark.cluster.master import settings_of
from streamgauge.engines.spark.cluster.state import cluster_at
from streamgauge.engines.spark.launch import SparkJob, spark_process, started
from streamgauge.engines.spark.session.environment import jars_for
from streamgauge.engines.spark.session.masters import is_local
from streamgauge.engines.spark.session.reports import DStreamProgress
from streamgauge.engines.spi import Edges, EngineStatus
from streamgauge.system.child_processes import ChildFailed
from streamgauge.system.cpu_pinning import cpus
from streamgauge.system.disk import Scratch

LOCAL_GRACE_S, CLUSTER_GRACE_S = 1.5, 4.0
"""A local Spark can be killed at once; executors on other machines need time to be released."""


@dataclass(frozen=True)
class ExecutionMode:
    """`master` gives a local Spark for (flow, number of processors, edges). `progress` is the class of its batches'
    progress.
    """

    name: str
    master: Callable[[Flow, int, Edges], str]
    progress: type[BatchProgress] = BatchProgress


MICRO_BATCH = ExecutionMode("micro-batch", lambda _, processors, __: f"local[{processors}]")
REAL_TIME = ExecutionMode("real-time", lambda flow, processors, _: options_realtime.master_for(flow, processors))
DSTREAM = ExecutionMode(
    "dstream",
    lambda _, processors, edges: options_dstream.master_for(processors, edges.transport, len(edges.inputs)),
    DStreamProgress,
)


class SparkEngine(HeldEngine):
    """One start of Spark for one flow, in one execution mode."""

    stop_s = LOCAL_GRACE_S

    def __init__(
        self,
        cpus_allowed: Sequence[int] | None = None,
        mode: ExecutionMode = MICRO_BATCH,
        parallelism: int | None = None,
    ) -> None:
        super().__init__(cpus_allowed, parallelism)
        self._mode = mode
        self._job: SparkJob
        self._cluster: Cluster | None = None
        """This machine's cluster, if its master is the job's."""

    def start(self, flow: Flow, edges: Edges, options: dict[str, str], master: str | None, folder: Path) -> None:
        jars = tuple(map(str, jars_for(edges.transport, edges.transport_options)))
        folder.mkdir(parents=True, exist_ok=True)
        self._scratch = Scratch("spark")
        private, checkpoint = str(self._scratch.path), str(self._scratch.path / "checkpoint")
        spark_master = master or self._mode.master(flow, self._parallelism or len(self._cpus or cpus()), edges)
        self._job = job = SparkJob(
            flow, edges, options, spark_master, private, checkpoint, jars, self._parallelism, self._mode.name
        )
        self.stop_s = LOCAL_GRACE_S if is_local(job.master) else CLUSTER_GRACE_S
        self._cluster = cluster_at(job.master)
        in_force = self._start_process(folder / "spark.log")
        self._settings = {"master": job.master, **settings_of(job.master), **in_force}

    def _start_process(self, log: Path) -> dict[str, str]:
        """Starts the process of the job, and waits until Spark runs. Returns the settings in force."""
        job = self._job
        self._child = spark_process(
            "streamgauge.engines.spark.main", job, Path(job.folder), log, self._cpus, job.master, job.options
        )
        return started(self._child, job.master, job.options)

    def status(self) -> EngineStatus:
        assert self._child is not None
        if self._cluster is not None and (members := self._cluster.ended()):
            ended = ended_in_words(members)
            return EngineStatus(False, f"the cluster's {ended}. Start it again: streamgauge cluster stop, then start")
        if not self._child.alive:
            return EngineStatus(
                False, f"the Spark process ended (exit code {self._child.exit_code}); its log: {self._child.log}"
            )
        try:
            return EngineStatus(**self._child.ask("status", 20.0))
        except ChildFailed as error:
            # The Python process outlives its JVM; both write to the same log.
            log = f"; its log: {self._child.log}" if error.kind == EngineError.__name__ else ""
            return EngineStatus(False, f"{error}{log}", disk_full=is_full(error))

    def stage(self) -> str:
        return self._child.stage or "importing PySpark" if self._child is not None else ""

    def pids(self) -> list[int]:
        """The processes of Spark's driver, and those of this machine's cluster."""
        if self._child is None or not self._child.alive:
            return []
        of_cluster = [process.pid for process in self._cluster.processes()] if self._cluster is not None else []
        return [*self._child.pids(), *of_cluster]

    def batch_progress(self, timeout_s: float = 30.0) -> list[BatchProgress]:
        assert self._child is not None
        try:
            return [self._mode.progress(**each) for each in self._child.ask("batch_progress", timeout_s)]
        except ChildFailed:
            return []

    def operator_row_counts(self, timeout_s: float = 30.0) -> OperatorCounts:
        assert self._child is not None
        try:
            reply = self._child.ask("operator_row_counts", timeout_s)
        except ChildFailed as error:
            return OperatorCounts(ended=str(error))
        return OperatorCounts([OperatorRows(**each) for each in reply["rows"]], reply["ended"])

    def has_checkpoint(self) -> bool:
        """Whether every query has committed a batch. DStreams have no checkpoint to wait for."""
        assert self._scratch is not None
        if self._mode is DSTREAM:
            return True
        queries = [path for path in (self._scratch.path / "checkpoint").iterdir() if path.is_dir()]
        return bool(queries) and all(any((query / "commits").glob("[0-9]*")) for query in queries)

    def restart(self) -> None:
        """Kills Spark, and starts its process again, whose queries go on from their checkpoints."""
        assert self._child is not None
        self._child.kill()
        self._start_process(self._child.log)
