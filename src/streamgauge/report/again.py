"""The page of a study's folder, a characterization's or an anatomy's: from what is known, and again from its file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from streamgauge.artifacts.run_folder import ANATOMY, CHARACTERIZATION, OUT, RUN, STUDIES, Place, write_text
from streamgauge.errors import InputError, Problem
from streamgauge.report import anatomy_page, characterization_page

Found = Mapping[str, Any]

_RENDERED: dict[str, Callable[[Found], str]] = {
    CHARACTERIZATION: characterization_page.render, ANATOMY: anatomy_page.render,
}  # fmt: skip


def write_study_page(file: str, found: Found) -> None:
    """The page of what a study keeps in its `file`, beside that."""
    _write(Path(found["folder"]), file, found, OUT)


def write_again(path: Path) -> Path | None:
    """The page of a study's folder, or of its file, from what that holds; None where `path` is neither.

    `InputError` where the study has nothing to show yet, or is of another version.
    """
    folder = path.parent if path.is_file() else path
    file = next((file for file in _RENDERED if (folder / file).is_file()), None)
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
    write_text(path, _RENDERED[file](found), asked)
    return path
