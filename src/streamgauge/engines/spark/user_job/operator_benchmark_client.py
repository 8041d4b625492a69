"""The driver's side of timing isolated operators: starts the process, requests slices, stops it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from streamgauge.core.errors import EngineError
from streamgauge.engines.operator_profiler import IsolatedOperator, Samples, Slice
from streamgauge.engines.spark.launch import spark_process, started
from streamgauge.engines.spark.user_job.operator_benchmark import IsolatedJob
from streamgauge.system.child_processes import Child, ChildFailed

SLICE_TIMEOUT_S = 3600.0


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
        try:
            process = psutil.Process(self._child.pid)
            every = [process, *process.children(recursive=True)]
        except psutil.NoSuchProcess:
            return None
        total = 0
        for each in every:
            with suppress(psutil.Error):
                total += int(each.memory_info().rss)
        return total


@contextmanager
def benchmark_operators(
    operators: Sequence[IsolatedOperator], options: dict[str, str], folder: Path, log: Path
) -> Iterator[BenchmarkProcess]:
    """A process that times operators. It writes to `folder`, and its output goes to `log`.

    Raises InputError for a refused setting or an invalid job, EngineError if it does not start.
    """
    job = IsolatedJob(tuple(operators), options, str(folder))
    child = spark_process("streamgauge.engines.spark.user_job.operator_benchmark", job, folder, log, options=options)
    try:
        yield BenchmarkProcess(child, started(child, options=options))
    finally:
        child.stop()
