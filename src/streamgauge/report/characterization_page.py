"""A characterization as one HTML file: what each operator does and takes, the instances it follows from, the memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamgauge.errors import InputError, Problem
from streamgauge.report import characterization_plots, words
from streamgauge.report.characterization_terminal import cells, change, reasons, second_weights, thesis, ways
from streamgauge.report.store import CHARACTERIZATION, OUT, RUN, Place, write_text
from streamgauge.report.templates import template

Found = Mapping[str, Any]


def write_characterization(folder: Path, found: Found, asked: Place = OUT) -> Path:
    """Makes report.html in the folder; `InputError` where that is no place to write to."""
    path = folder / "report.html"
    write_text(path, render(found), asked)
    return path


def write_again(path: Path) -> Path | None:
    """The same from what a folder of `characterize` holds; None where `path` is no such folder, nor its file.

    `InputError` where it was not finished, or is of another version.
    """
    file = (path.parent if path.is_file() else path) / CHARACTERIZATION
    if not file.is_file():
        return None
    try:
        found = json.loads(file.read_bytes())
        if not found["finished"]:
            way_out = f"streamgauge characterize {found['workload']}"
            raise InputError(Problem(RUN.setting, "must be a characterization that was finished", str(path), way_out))
        return write_characterization(file.parent, found, RUN)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        rule = f"{CHARACTERIZATION} must be of this version of streamgauge ({type(error).__name__}: {error})"
        raise InputError(Problem(RUN.setting, rule, str(path), "characterize it again")) from None


def render(found: Found) -> str:
    """The page as text."""
    second = second_weights(found)
    return template("characterization.html.j2").render(
        c=found,
        second=second,
        size=f"{words.count(found['input']['slices'])} slices of {words.count(found['input']['slice_events'])} events",
        rows=[(row["type"], cells(row, found["weights"], second)) for row in found["operators"]],
        reasons=reasons(found["operators"]),
        times=characterization_plots.times(found["operators"]),
        memory=characterization_plots.memory(found["memory"]),
        memory_figures=_memory_figures(found["memory"]),
        ways=ways(found),
        thesis=thesis(found),
        applied=change(found["applied"]) if found["applied"] else None,
        environment=words.flat(found["environment"]),
    )


def _memory_figures(memory: Found | None) -> list[tuple[str, str]]:
    labels = characterization_plots.MEMORY
    return [(label, words.size(memory[name])) for name, label in labels.items()] if memory else []
