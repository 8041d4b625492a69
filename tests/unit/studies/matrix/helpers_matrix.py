"""Matrices whose cells are made up: nothing is started."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

from streamgauge.config.experiment import Experiment, build
from streamgauge.results.matrix import CellFigures, MatrixCell, MatrixResult
from streamgauge.studies.matrix.cells import Observers

RATES = ["1k", "2k", "3k"]


def matrix_experiment(out: Path | None = None, **matrix: Any) -> Experiment:
    values = {"workload": "identity", "engine": "known", "load": {"warmup": "1s", "duration": "4s"}}
    return build({**values, **({"out": str(out)} if out else {}), "matrix": {"load.rate": RATES, **matrix}})


class RecordingObserver:
    """An observer that records its calls."""

    def __init__(self) -> None:
        self.began: list[tuple[list[int], int]] = []
        self.cells: list[MatrixCell] = []

    def begin(self, result: MatrixResult, to_run: int) -> None:
        self.began.append(([cell.number for cell in result.cells], to_run))

    def progress(self, snapshot: Any) -> None:
        """Ignored."""

    def cell(self, cell: MatrixCell) -> None:
        self.cells.append(cell)


def performing(*verdicts: Any) -> tuple[Callable[[Experiment, Observers], CellFigures], list[Experiment]]:
    """A stand-in for `perform`, whose cells end with these verdicts, and the experiments that it was given.

    A verdict that is an exception is raised.
    """
    cells, ends = list[Experiment](), Mock(side_effect=verdicts)

    def perform(experiment: Experiment, observers: Observers) -> CellFigures:
        cells.append(experiment)
        folder, rate, verdict = Path(experiment.out or "") / "run", experiment.load.rate, ends()
        folder.mkdir(exist_ok=True)
        (folder / "report.html").touch()
        return CellFigures(verdict=verdict, folder=str(folder), planned_per_s=rate, ingested_per_s=rate, faults=0)

    return perform, cells
