"""The runner's side of timing operators alone: starts the process, asks for slice after slice, ends it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import cloudpickle
import psutil

from streamgauge.engines.spark.alone import AloneJob, OperatorAlone
from streamgauge.engines.spark.home import view_of_spark_home
from streamgauge.engines.spark.slices import Slice
from streamgauge.errors import EngineError, SettingError
from streamgauge.system.children import Child, ChildFailed

START_TIMEOUT_S, SLICE_TIMEOUT_S = 180.0, 3600.0


@dataclass(frozen=True)
class Samples:
    """One slice of every operator: those that had rows, and the reasons of those that failed, by name."""

    samples: dict[str, Slice] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


class Running:
    """The process that times; `settings` are those in force that are not the engine's defaults."""

    def __init__(self, child: Child, settings: dict[str, str]) -> None:
        self._child, self.settings = child, settings

    def slice(self, number: int) -> Samples:
        """Times a slice of every operator; EngineError where the engine itself ends."""
        try:
            answer = self._child.ask("slice", SLICE_TIMEOUT_S, number=number)
        except ChildFailed as error:
            raise EngineError(f"operators could not be timed: {error}", str(self._child.log)) from None
        samples = {name: Slice(*each) for name, each in answer.items() if isinstance(each, list)}
        return Samples(samples, {name: each for name, each in answer.items() if isinstance(each, str)})

    def memory_bytes(self) -> int | None:
        """Resident memory of the process and its children, JVM and Python workers; None where it has ended."""
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
def operators_alone(
    operators: Sequence[OperatorAlone], options: dict[str, str], folder: Path, log: Path
) -> Iterator[Running]:
    """A process that times operators; ended at the end. `folder` takes what it writes, `log` what it says.

    Raises SettingError for a setting that Spark refuses, EngineError where it does not start.
    """
    path = folder / "alone.pkl"
    path.write_bytes(cloudpickle.dumps(AloneJob(tuple(operators), options, str(folder))))
    environment = {"SPARK_HOME": str(view_of_spark_home(folder / "spark-home"))}
    child = Child("spark", "streamgauge.engines.spark.alone", [str(path)], log, None, environment)
    try:
        try:
            settings = child.ask("start", START_TIMEOUT_S)
        except ChildFailed as error:
            if error.problems:
                raise SettingError(error.problems) from None
            raise EngineError(f"spark did not start: {error}", str(log)) from None
        yield Running(child, settings)
    finally:
        child.stop()
