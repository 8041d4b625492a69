"""Reads an experiment from its TOML file, and writes it."""

import tomllib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from streamgauge.config.experiment import Experiment, build, left_out
from streamgauge.config.named_files import change_files, find_beside
from streamgauge.core.errors import InputError, Problem, require


def read(path: Path) -> Experiment:
    """An experiment from a TOML file. Raises InputError with every problem of its settings."""
    return build(read_values(path))


def read_values(path: Path) -> dict[str, Any]:
    """The values of a TOML file. Relative paths in it start at the working folder, then at the file's folder."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except tuple(_UNREADABLE) as error:
        words = next(words for kind, words in _UNREADABLE.items() if isinstance(error, kind))
        rule, way_out = (text.format(path=path, error=error) for text in words)
        raise InputError(Problem("FILE", rule, str(path), way_out)) from None
    if values.get("kind") == "experiment":  # beside files of programs, it says what this one is
        del values["kind"]
    rule = "must be an experiment, and this is the file of a program"
    require(values.get("kind") != "program", "FILE", rule, str(path), f"streamgauge run {path}")
    return change_files(values, partial(find_beside, folder=path.resolve().parent))


_UNREADABLE: Mapping[type[Exception], tuple[str, str]] = {
    FileNotFoundError: ("must be an existing file", "check the path"),
    NotADirectoryError: ("must be an existing file", "check the path"),
    IsADirectoryError: ("must be a file, and this is a folder", "name a file in it, such as {path}/experiment.toml"),
    PermissionError: ("must be readable", "check the permissions of {path}"),
    OSError: ("must be a file that can be read ({error.strerror})", "name another file"),
    UnicodeDecodeError: ("must be TOML, which is UTF-8 text ({error.reason})", "--print-toml shows an example"),
    tomllib.TOMLDecodeError: ("must be TOML ({error})", "correct that line"),
}
"""Rule and way out by the error of reading a file; the first that fits."""


def to_toml(experiment: Experiment) -> str:
    """The experiment as TOML for `read`."""
    import tomli_w

    return tomli_w.dumps(experiment.model_dump(exclude_none=True, exclude=left_out(experiment), mode="json"))
