"""Scalability studies whose trials are simulated by a law: nothing is started. All figures are made up."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamgauge.config.experiment import Experiment, build
from streamgauge.engines.synthetic.options import ScalingOptions
from streamgauge.results.matrix import CellFigures
from streamgauge.studies.matrix.cells import Observers

LOADS, RESOURCES = "1k..64k", "1,2,4,8"
LAWS = {
    "linear": ScalingOptions(),
    "contended": ScalingOptions(contention=0.2),
    "coherent": ScalingOptions(contention=0.05, coherency=0.005),
    "knee": ScalingOptions(knee=4),
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


def simulated(law: ScalingOptions, of_one_per_s: float = 7000.0, seed: int = 1) -> tuple[Perform, list[Experiment]]:
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
