"""How operators are timed on Spark, and which parallelism they can be given. Loads Spark only for a timer.

The driver's side: `operator_timer` is the process, which is requested slice by slice.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from streamgauge.core.errors import EngineError
from streamgauge.dataflow.nodes import Node, Process
from streamgauge.engines.operator_profiler import (
    IsolatedOperator,
    OperatorProfiler,
    OperatorTimer,
    Samples,
    Slice,
)
from streamgauge.engines.spark.parallelism import NOT_VISIBLE, SETTING, parallelism_options, tasks_unless_set
from streamgauge.system.child_processes import Child, ChildFailed

MEMORY_OF = (
    "the processes of Spark that time one operator after the other, not of the application as it runs: mostly the "
    "JVM's heap, and of state only what a keyed process's own class holds"
)
"""Spark's own stateful operators begin each slice without state, in batch."""
STREAMING_OPTIONS = ("trigger", "source", "columns", "nullable", "state_store", "probes", "watermark_delay")
SLICE_TIMEOUT_S = 3600.0
CLASS_ONLY, DIFFERENCE = "class_alone", "difference"
METHODS = {
    DIFFERENCE: "Spark in batch with one task: the time with the operator over a slice in memory, minus the time of "
    "only reading that slice, minus the same difference for an empty slice. Plans are made beforehand, results are "
    "discarded, and stateful operators begin each slice without state",
    CLASS_ONLY: "the keyed process's class alone, in Python, over the slices in order. It keeps its state. Spark's "
    "exchange, blocks and state store are not included, and nothing is subtracted",
}


def method_of(node: Node) -> str:
    """The method for an operator: a keyed process would lose its state in batch."""
    return CLASS_ONLY if isinstance(node, Process) and node.keys else DIFFERENCE


@dataclass(frozen=True)
class SparkOperatorProfiler(OperatorProfiler):
    """Implements `OperatorProfiler` with Spark in batch."""

    methods: Mapping[str, str] = field(default_factory=lambda: METHODS)
    memory_of: str = MEMORY_OF
    unused_options: Sequence[str] = STREAMING_OPTIONS
    parallelism_setting: str = SETTING
    not_visible: str = NOT_VISIBLE

    method_of = staticmethod(method_of)
    parallelism_options = staticmethod(parallelism_options)
    default_parallelism = staticmethod(tasks_unless_set)

    @contextmanager
    def timer(
        self, operators: Sequence[IsolatedOperator], options: dict[str, str], folder: Path, log: Path
    ) -> Iterator[OperatorTimer]:
        from streamgauge.engines.spark.launch import spark_process, started

        job = IsolatedJob(tuple(operators), options, str(folder))
        child = spark_process("streamgauge.engines.spark.operator_timer", job, folder, log, options=options)
        try:
            yield BenchmarkProcess(child, started(child, options=options))
        finally:
            child.stop()


@dataclass(frozen=True)
class IsolatedJob:
    """What the runner hands over, by file."""

    operators: tuple[IsolatedOperator, ...]
    options: dict[str, str]
    folder: str


class BenchmarkProcess:
    """Implements `OperatorTimer`; `settings` are those in force that are not the engine's defaults."""

    def __init__(self, child: Child, settings: dict[str, str]) -> None:
        self._child, self.settings = child, settings

    def slice(self, number: int) -> Samples:
        """Times a slice of every operator. Raises EngineError if the engine ends."""
        try:
            answer = self._child.ask("slice", SLICE_TIMEOUT_S, number=number)
        except ChildFailed as error:
            raise EngineError(f"operators could not be timed: {error}", str(self._child.log)) from None
        samples = {name: Slice(*each) for name, each in answer.items() if isinstance(each, list)}
        return Samples(samples, {name: each for name, each in answer.items() if isinstance(each, str)})

    def memory_bytes(self) -> int | None:
        """Resident memory of the process and its children in bytes; None if it has ended."""
        total = 0
        for pid in self._child.pids():
            with suppress(psutil.Error):
                total += int(psutil.Process(pid).memory_info().rss)
        return total or None
