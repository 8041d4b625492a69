"""Scalability studies whose trials are simulated by a law: nothing is started. All figures are made up."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgauge.config.experiment import Experiment, build
from streamgauge.results.matrix import CellFigures
from streamgauge.studies.matrix.cells import Observers


@dataclass(frozen=True)
class Law:
    """The Universal Scalability Law. `knee` 0: none; `noise`: standard deviation of a capacity, as a share of it."""

    contention: float = 0.0
    coherency: float = 0.0
    knee: int = 0
    noise: float = 0.0

    def capacity(self, of_one_per_s: float, instances: int, chance: random.Random | None = None) -> float:
        """Events per second of so many instances; `chance` draws the noise, if there is any."""
        n = min(instances, self.knee) if self.knee else instances
        capacity = of_one_per_s * n / (1 + self.contention * (n - 1) + self.coherency * n * (n - 1))
        return capacity * (1 + chance.gauss(0.0, self.noise) if chance else 1)


LOADS, RESOURCES = "1k..64k", "1,2,4,8"
LAWS = {
    "linear": Law(),
    "contended": Law(contention=0.2),
    "coherent": Law(contention=0.05, coherency=0.005),
    "knee": Law(knee=4),
}


def scale_experiment(out: Path | None = None, of_load: dict[str, Any] | None = None, **scale: Any) -> Experiment:
    load = {"warmup": "1s", "duration": "4s", **(of_load or {})}
    values = {"command": "scale", "workload": "identity", "engine": "known", "load": load}
    of = {"resources": RESOURCES, "loads": LOADS, **scale}
    return build({**values, **({"out": str(out)} if out else {}), "scale": of})


Perform = Callable[[Experiment, Observers], CellFigures]


def resumed(folder: object, **values: Any) -> Experiment:
    """A study that goes on in its folder."""
    return build({"command": "scale", "workload": "", "search": {"resume": str(folder)}, **values})


def simulated(law: Law, of_one_per_s: float = 7000.0, seed: int = 1) -> tuple[Perform, list[Experiment]]:
    """A stand-in for `perform`, whose trials hold up to the capacity of a law, and the experiments given to it."""
    chance, trials = random.Random(seed), list[Experiment]()

    def perform(experiment: Experiment, observers: Observers) -> CellFigures:
        trials.append(experiment)
        held = experiment.load.rate <= law.capacity(of_one_per_s, experiment.parallelism or 0, chance)
        return made(experiment, "sustained" if held else "not_sustained")

    return perform, trials


def made(experiment: Experiment, verdict: Any) -> CellFigures:
    folder = Path(experiment.out or "") / "run"
    folder.mkdir(exist_ok=True)
    (folder / "report.html").touch()
    return CellFigures(verdict=verdict, folder=str(folder), ingested_per_s=experiment.load.rate, sentence="said so")
