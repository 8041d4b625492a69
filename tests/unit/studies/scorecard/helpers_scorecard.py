"""Matrices of the files in experiments/karimov with made-up figures: nothing is started."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from streamgauge.config.experiment_file import read, read_published
from streamgauge.config.matrix import expand, values_of, varied
from streamgauge.results.matrix import MatrixCell, MatrixResult
from tests.helpers_modules import ROOT

FILES = ROOT / "experiments" / "karimov"
Figures = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]
"""The fields of a cell with these settings; None leaves it out."""


def study_of(name: str, figures: Figures, **changes: Any) -> MatrixResult:
    """What the experiment file of this name would leave."""
    experiment = read(FILES / f"{name}.toml")
    cells = expand(experiment)
    rows = [
        MatrixCell(
            number=one.number, settings=dict(one.settings), repetition=one.repetition, verdict="sustained"
        ).model_copy(update=dict(fields))
        for one in cells
        if (fields := figures(one.settings)) is not None
    ]  # fmt: skip
    values = {
        "command": experiment.command, "workload": experiment.workload, "engine": experiment.engine,
        "experiment": values_of(experiment, "matrix", "paper", "out"), "varied": varied(cells), "planned": len(cells),
        "environment": {"cpu_model": "made up", "cpus": 2}, "start_time": f"2026-01-01T00:00:00+00:00 {name}",
        "folder": f"runs/{name}-matrix", "finished": True, "cells": tuple(rows),
        "published": read_published(experiment.paper) if experiment.paper else None,
    }  # fmt: skip
    return MatrixResult(**{**values, **changes})


def written(folder: Path, *studies: MatrixResult) -> list[str]:
    """Their files."""
    names = []
    for number, study in enumerate(studies):
        file = folder / f"{number}.json"
        file.write_text(study.to_json())
        names.append(str(file))
    return names


def by_engine(**figures: Mapping[str, Any]) -> Figures:
    """Figures by engine, of Spark in memory only; other cells are left out."""

    def of(settings: Mapping[str, Any]) -> Mapping[str, Any] | None:
        is_other = (settings.get("transport"), settings["engine"]) == ("kafka", "spark")
        return None if is_other or settings.get("tuning") == "tuned" else figures.get(settings["engine"])

    return of


def fast(rate: float, mean_s: float = 1.0, max_s: float = 2.0) -> dict[str, Any]:
    """A search that found a rate, with latencies there."""
    return {
        "sustained_per_s": rate, "planned_per_s": rate, "ingested_per_s": rate,
        "event_time_mean_us": 1e6 * mean_s, "event_time_max_us": 1e6 * max_s,
    }  # fmt: skip
