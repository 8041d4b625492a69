"""An anatomy as one HTML file: where a record's time goes, trial beside trial, and how well that is known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamgauge.errors import InputError, Problem
from streamgauge.report import anatomy_plots, words
from streamgauge.report.anatomy_terminal import heading, meanings, remarks, rows
from streamgauge.report.store import ANATOMY, OUT, RUN, Place, write_text
from streamgauge.report.templates import template

Found = Mapping[str, Any]


def write_anatomy(folder: Path, found: Found, asked: Place = OUT) -> Path:
    """Makes report.html in the folder; `InputError` where that is no place to write to."""
    path = folder / "report.html"
    write_text(path, render(found), asked)
    return path


def write_again(path: Path) -> Path | None:
    """The same from what a folder of `anatomy` holds; None where `path` is no such folder, nor its file.

    `InputError` where it is of another version.
    """
    file = (path.parent if path.is_file() else path) / ANATOMY
    if not file.is_file():
        return None
    try:
        return write_anatomy(file.parent, json.loads(file.read_bytes()), RUN)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        rule = f"{ANATOMY} must be of this version of streamgauge ({type(error).__name__}: {error})"
        raise InputError(Problem(RUN.setting, rule, str(path), "take it apart again")) from None


def render(found: Found) -> str:
    """The page as text."""
    return template("anatomy.html.j2").render(
        a=found,
        waterfall=anatomy_plots.waterfall(found["trials"]),
        spread=anatomy_plots.spread(found["trials"]),
        headings=[heading(trial) for trial in found["trials"]],
        rows=list(rows(found)),
        meanings=meanings(found),
        remarks=[(heading(trial), list(remarks(trial))) for trial in found["trials"]],
        environment=words.flat(found["environment"]),
    )
