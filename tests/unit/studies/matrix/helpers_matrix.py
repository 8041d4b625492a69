"""Matrices whose cells are made up: nothing is started."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

from streamgauge.config.experiment import Experiment, build
from streamgauge.results.matrix import CellFigures, MatrixCell, MatrixResult, SearchFigures
from streamgauge.studies.matrix.cells import Observers

RATES = ["1k", "2k", "3k"]
Perform = Callable[[Experiment, Observers], CellFigures]


def matrix_experiment(out: Path | None = None, **matrix: Any) -> Experiment:
    values = {"workload": "identity", "engine": "known", "load": {"warmup": "1s", "duration": "4s"}}
    return build({**values, **({"out": str(out)} if out else {}), "matrix": {"load.rate": RATES, **matrix}})


def sweep_experiment(out: Path | None = None, **sweep: Any) -> Experiment:
    values = {"command": "sweep", "workload": "identity", "engine": "known", "load": {"warmup": "1s", "duration": "4s"}}
    return build({**values, **({"out": str(out)} if out else {}), "sweep": sweep})


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


def performing(*verdicts: Any) -> tuple[Perform, list[Experiment]]:
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


def queue(capacity_per_s: float, searched: Any = "sustained") -> tuple[Perform, list[Experiment]]:
    """A stand-in for `perform`, whose trials hold up to a capacity, with latencies of a queue: 10 ms / (1 - load).

    A search ends with the verdict `searched` and leaves its experiment behind; an exception is raised.
    """
    given: list[Experiment] = []

    def perform(experiment: Experiment, observers: Observers) -> CellFigures:
        given.append(experiment)
        folder, rate = Path(experiment.out or "") / "run", experiment.load.rate
        folder.mkdir(exist_ok=True)
        for file in ("report.html", "experiment.toml"):
            (folder / file).touch()
        places = {"folder": str(folder), "ingested_per_s": rate, "planned_per_s": rate}
        if experiment.command == "sustain":
            if isinstance(searched, BaseException):
                raise searched
            return SearchFigures(**places, verdict=searched, sustained_per_s=capacity_per_s, sentence="found so")
        load = min(rate / capacity_per_s, 0.999)
        return CellFigures(
            **places, verdict="sustained" if rate <= capacity_per_s else "not_sustained", event_time_p50_us=1e4,
            event_time_p99_us=1e4 / (1 - load),
        )  # fmt: skip

    return perform, given
