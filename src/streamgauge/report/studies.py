"""Shows an operator profile or a latency breakdown: in the terminal, and as the page of its folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from streamgauge.artifacts.run_folder import ANATOMY, CHARACTERIZATION, OUT, RUN, STUDIES, Place, RunFolder, write_text
from streamgauge.core.errors import InputError, Problem
from streamgauge.report.document_blocks import Document
from streamgauge.report.documents import breakdown, profile
from streamgauge.report.html.render import render
from streamgauge.report.terminal.console import console, say, show, show_result

Found = Mapping[str, Any]

_DOCUMENTS: dict[str, Callable[[Found], Document]] = {
    CHARACTERIZATION: profile.document, ANATOMY: breakdown.document,
}  # fmt: skip


def show_characterization(found: Found, apply: bool = False, on: Console | None = None) -> None:
    """The whole characterization; `apply`: also the option that is now set, and why others have none."""
    show(profile.document(found, apply), f"{found['folder']}/report.html", on=on)


def show_applied(applied: Found, on: Console | None = None) -> None:
    """What was set, how to ask for the trial with it again, and then its result as that of every trial."""
    to = on or console()
    change = profile.change(applied)
    say(to, "")
    say(to, f"{'applied':<12}{change}; streamgauge experiment {applied['experiment']} runs it again")
    show_result(RunFolder.open(applied["run"]).read_result(), verbose=False, on=to)


def show_anatomy(found: Found, on: Console | None = None) -> None:
    """Each trial's mean latency in its stages, and what each trial was."""
    show(breakdown.document(found), f"{found['folder']}/report.html", on=on)


def write_study_page(file: str, found: Found) -> None:
    """The page of what a study keeps in its `file`, beside that."""
    _write(Path(found["folder"]), file, found, OUT)


def rerender_study(path: Path) -> Path | None:
    """The page of a study's folder, or of its file, from what that holds; None where `path` is neither.

    `InputError` where the study has nothing to show yet, or is of another version.
    """
    folder = path.parent if path.is_file() else path
    file = next((file for file in _DOCUMENTS if (folder / file).is_file()), None)
    if file is None:
        return None
    try:
        return _write(folder, file, _showable(folder, file, json.loads((folder / file).read_bytes())), RUN)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        rule = f"{file} must be of this version of streamgauge ({type(error).__name__}: {error})"
        way_out = f"streamgauge {STUDIES[file].command} makes one anew"
        raise InputError(Problem(RUN.setting, rule, str(path), way_out)) from None


def _showable(folder: Path, file: str, found: Any) -> Found:
    """What has something to show: an anatomy from its first trial on, a characterization only whole."""
    if not found["finished"] and not found.get("trials"):
        rule = f"must hold {STUDIES[file].what.partition(',')[0]} with something to show: this one was not finished"
        way_out = f"streamgauge {STUDIES[file].command} {found['workload']}"
        raise InputError(Problem(RUN.setting, rule, str(folder), way_out))
    return dict(found)


def _write(folder: Path, file: str, found: Found, asked: Place) -> Path:
    path = folder / "report.html"
    write_text(path, render(_DOCUMENTS[file](found)), asked)
    return path
