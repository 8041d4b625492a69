"""How operators are timed on Spark, and which parallelism they can be given. Loads Spark only for a timer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from streamgauge.dataflow.nodes import Node
from streamgauge.engines.operator_profiler import IsolatedOperator, OperatorTimer, ParallelismOptions
from streamgauge.engines.spark.parallelism import NOT_VISIBLE, SETTING, parallelism_options, tasks_unless_set
from streamgauge.engines.spark.user_job import timing_methods

MEMORY_OF = (
    "the processes of Spark that time one operator after the other, not of the application as it runs: mostly the "
    "JVM's heap, and of state only what a keyed process's own class holds"
)
"""Spark's own stateful operators begin each slice without state, in batch."""
STREAMING_OPTIONS = ("trigger", "source", "columns", "nullable", "state_store", "probes", "watermark_delay")


@dataclass(frozen=True)
class SparkOperatorProfiler:
    """Implements `OperatorProfiler` with Spark in batch."""

    methods: Mapping[str, str] = field(default_factory=lambda: timing_methods.METHODS)
    memory_of: str = MEMORY_OF
    unused_options: Sequence[str] = STREAMING_OPTIONS
    parallelism_setting: str = SETTING
    not_visible: str = NOT_VISIBLE

    def method_of(self, node: Node) -> str:
        return timing_methods.method_of(node)

    def parallelism_options(self, node: Node) -> ParallelismOptions:
        return parallelism_options(node)

    def default_parallelism(self, parallelism: int | None, partitions: int) -> int:
        return tasks_unless_set(parallelism, partitions)

    def timer(
        self, operators: Sequence[IsolatedOperator], options: dict[str, str], folder: Path, log: Path
    ) -> AbstractContextManager[OperatorTimer]:
        from streamgauge.engines.spark.user_job.operator_benchmark_client import benchmark_operators

        return benchmark_operators(operators, options, folder, log)
