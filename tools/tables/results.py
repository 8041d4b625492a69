"""Tables of measured figures, from docs/results/data/*.csv. A figure names its date, commit, machine and command."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from tables.markdown import DOCS, code, table
from tables.tuning_profiles import measured

DATA = DOCS / "results" / "data"

SHOWN: Mapping[str, Sequence[str]] = {
    "summary": ("what", "figure", "spread", "floor", "goal", "note", "date", "commit", "command", "machine"),
    "kafka": ("what", "figure", "note", "date", "commit", "command", "machine"),
    "stages-by-mode": (),
    "latency-by-mode": (),
    "scaling": (),
    "topologies": (),
}
"""Data files with a table on a page, and the columns of the table; () is all columns."""

ABOUT: Mapping[str, str] = {
    "summary": "the most important figure of each part",
    "tuning-profiles": "searches with the profiles `idiomatic` and `tuned`",
    "kafka": "searches over Kafka, with all engines",
    "stages-by-mode": "stages of the latency in each execution mode of Spark",
    "latency-by-mode": "latencies of each execution mode of Spark, repeated",
    "scaling": "capacity of one and two cores",
    "topologies": "the four topologies of Ehrenstein (2020) at their floors",
    "application-rates": "the rate of each DSPBench application, found by a quick search",
    "application-changes": "what changed the rates of applications",
    "changes": "pairs of runs before and after a change",
    "dstreams": "runs and searches of DStreams",
    "earlier-searches": "searches until 23 November 2026",
    "instrument": "generator, transport, recorder, histogram and verification beside their baselines",
    "kafka-earlier": "other searches over Kafka",
    "latency-by-mode-earlier": "the same modes on another machine",
    "latency-published": "figures that the latency study of Spark Streaming published",
    "latency-steps": "changes to the driver and to Spark's settings, with latencies before and after",
    "latency-tried": "changes without effect",
    "limits": "what limited a rate",
    "operator-advice": "advised instances of each application",
    "operator-memory": "memory of Spark while operators were measured",
    "operator-profiles": "selectivity, tuple size and time of each operator",
    "operator-runs": "input and machine of the operator profiles",
    "real-time": "searches in real-time mode",
    "real-time-steps": "changes of the driver for real-time mode",
    "search-model": "simulated searches of made-up engines",
    "search-time": "how long confirmed searches took",
    "searches": "five confirmed searches of the windowed aggregation",
    "single-figures": "figures of parts that are not in the summary",
    "stages-before-after": "stages of a micro-batch before and after the changes",
    "stages-receivers": "stages of DStreams with receivers",
    "stages-text-records": "stages with text records at two rates",
    "whole-run": "memory and verification time of whole runs",
}
"""What each data file holds."""


def makers() -> dict[str, Callable[[], str]]:
    return {
        **{f"results: {name}": partial(results, DATA / f"{name}.csv") for name in SHOWN},
        "results: tuning-profiles": partial(measured, DATA / "tuning-profiles.csv"),
        "results: files": files,
        "application brackets": application_brackets,
    }


def files() -> str:
    """Every data file, and what it holds; ValueError where `ABOUT` has others."""
    names = sorted(file.stem for file in DATA.glob("*.csv"))
    if names != sorted(ABOUT):
        raise ValueError(f"must describe the files of {DATA}: {', '.join(sorted({*names} ^ {*ABOUT}))}")
    return table(("file", "figures"), [(f"[{name}](data/{name}.csv)", ABOUT[name]) for name in names])


WHERE_FROM = ("date", "commit", "machine", "reference work", "command")
"""Columns that say how a figure was made: where all rows agree, they stand once, below the table."""
AS_CODE = ("application", "operator", "option", "command")


def rows_of(file: Path) -> list[dict[str, str]]:
    """The rows of a data file; ValueError where one has more or fewer cells than the head, or none says what it is."""
    with file.open(newline="", encoding="utf-8") as lines:
        reader = csv.DictReader(lines)
        rows = list(reader)
    names = list(reader.fieldnames or ())
    for number, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise ValueError(f"{file.name}, line {number}: must have {len(names)} cells, as the head has")
        if not row[names[0]]:
            raise ValueError(f"{file.name}, line {number}: must say its {names[0]}")
    if not rows:
        raise ValueError(f"{file.name}: must have rows")
    return rows


def results(file: Path) -> str:
    """The measured figures of a data file as a table; for the columns see `SHOWN`."""
    rows = rows_of(file)
    names = SHOWN.get(file.stem)
    if names:
        rows = [{name: row[name] for name in names} for row in rows]
    return _results(rows, file.name)


def _results(rows: Sequence[dict[str, str]], name: str) -> str:
    """A table; with a column `series`, a row for each `what` and a column for each series."""
    if "series" in rows[0]:
        return _by_series(rows, name)
    head = [name for name in rows[0] if any(row[name] for row in rows)]
    shared = [name for name in head if name in WHERE_FROM and len({row[name] for row in rows}) == 1]
    shown = [name for name in head if name not in shared]
    text = table(shown, ([_cell(name, row[name]) for name in shown] for row in rows))
    return f"{text}\n\n{_where_from(rows[0], shared)}" if shared else text


def _by_series(rows: Sequence[Mapping[str, str]], name: str) -> str:
    cells = {(row["what"], row["series"]): row["figure"] for row in rows}
    if len(cells) < len(rows):
        raise ValueError(f"{name}: must have one figure for each what and series")
    series = list(dict.fromkeys(row["series"] for row in rows))
    whats = dict.fromkeys(row["what"] for row in rows)
    text = table(("", *series), ((what, *(cells.get((what, one)) or "-" for one in series)) for what in whats))
    first = {one: next(row for row in rows if row["series"] == one) for one in series}
    return f"{text}\n\n" + "\n".join(f"- {one}: {_where_from(first[one], WHERE_FROM)}" for one in series)


def _cell(name: str, text: str) -> str:
    return (code(text) if name in AS_CODE else text) if text else "-"


def _where_from(row: Mapping[str, str], names: Iterable[str]) -> str:
    """How figures were made, in words."""
    said = {name: _cell(name, row[name]) for name in names if row.get(name)}
    return "; ".join(f"{name} {text}" if name in ("commit", "reference work") else text for name, text in said.items())


_RATE = re.compile(r"([0-9.]+) ([kM]?)/s")


def _per_s(text: str) -> float:
    match = _RATE.match(text)
    if match is None:
        raise ValueError(f"must begin with a rate: {text!r}")
    return float(match[1]) * {"": 1.0, "k": 1e3, "M": 1e6}[match[2]]


def application_brackets() -> str:
    """How far apart both ends of the applications' searches lie, and how many have no upper end."""
    rows = [row for row in rows_of(DATA / "application-rates.csv") if row["holds"]]
    ended = [row for row in rows if _RATE.match(row["next rate up"])]
    widths = [round(100 * (_per_s(row["next rate up"]) / _per_s(row["holds"]) - 1)) for row in ended]
    failed = sum("undecided" not in row["next rate up"] for row in ended)
    if len(ended) + sum(row["next rate up"] == "no upper end was found" for row in rows) < len(rows):
        raise ValueError("application-rates.csv: must have a rate or `no upper end was found` as next rate up")
    far = f"{min(widths)} to {max(widths)} % above the rate that holds"
    shown = (
        f"{failed} of these upper ends failed, the others are undecided." if failed else "All of these are undecided."
    )
    return (
        f"- {len(ended)} of {len(rows)} applications have an upper end, {far}.\n"
        f"  {shown}\n"
        f"- For {len(rows) - len(ended)} of them no upper end was found: no judged rate failed before the\n"
        "  allowed trials were used. They may sustain much more."
    )
