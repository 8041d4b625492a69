"""Reads an experiment from its TOML file, with the published table that it names, and writes it."""

import csv
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from streamgauge.config.experiment import Experiment, Paper, build, left_out
from streamgauge.config.named_files import change_files, find_beside
from streamgauge.core.errors import InputError, Problem, Rule, near, require, require_all
from streamgauge.core.formatting import format_value
from streamgauge.results.matrix import PublishedTable


def read(path: Path) -> Experiment:
    """An experiment from a TOML file. Raises InputError with every problem of its settings."""
    return build(read_values(path))


def read_values(path: Path) -> dict[str, Any]:
    """The values of a TOML file. Relative paths in it start at the working folder, then at the file's folder.

    A published table may also be in a folder `published` there, or beside that folder.
    """
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
    folder, paper = path.resolve().parent, values.get("paper")
    if isinstance(paper, dict) and isinstance(name := paper.get("published"), str):
        places = (Path(name), *(one / "published" / name for one in (folder, folder.parent)))
        paper["published"] = next((str(place) for place in places if place.is_file()), name)
    return change_files(values, partial(find_beside, folder=folder))


def read_published(paper: Paper) -> PublishedTable:
    """The rows that an experiment names of a published table, whose lines with `#` are comments.

    Raises InputError with every problem: a file that cannot be read, unknown columns, no row left.
    """
    file, text = paper.published, ""
    with suppress(OSError, UnicodeDecodeError):
        text = Path(file).read_text(encoding="utf-8")
    reader = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    rows, names = list(reader), tuple(reader.fieldnames or ())
    where = {name: format_value(value) for name, value in paper.where.items()}
    left = [row for row in rows if all(row.get(name) == value for name, value in where.items())]
    columns = paper.columns or tuple(name for name in names if name not in where)
    there = (f"{name}: {', '.join(dict.fromkeys(str(row.get(name)) for row in rows))}" for name in where)
    require_all(
        Rule(
            rows, "paper.published",
            "must be a CSV file in a folder `published` beside the experiment file or its folder",
            file, "check the name",
        ),
        *(
            Rule(
                not rows or name in names, setting, f"must be columns of {file}", name,
                near(name, names) or ", ".join(names),
            )
            for setting, given in (("paper.where", where), ("paper.columns", paper.columns))
            for name in given
        ),
        Rule(
            left or not rows or not where.keys() <= {*names}, "paper.where", f"must leave a row of {file}", paper.where,
            "; ".join(there),
        ),
    )  # fmt: skip
    texts = (tuple(row[name] or "" for name in columns) for row in left)
    return PublishedTable(**paper.model_dump(include={"work", "table", "hardware"}), columns=columns, rows=tuple(texts))


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
