"""Tables of workloads: what each does, its parameters and what it asks of an engine."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from functools import partial

from streamgauge.workloads.registry import MEANING, catalogue, get, names
from tables.markdown import DOCS, code, described, listed, table


def makers() -> dict[str, Callable[[], str]]:
    own = {f"parameters of {name}": partial(parameters_of, name) for name in names()}
    return {"workloads": workload_list, "features": features, "shared parameters": shared_parameters, **own}


def page_of(workload: str) -> str:
    """The page of its family, on which the workload has its section; the index itself where it has none yet."""
    mark = f"<!-- generated: parameters of {workload} -->"
    return next(
        (page.name for page in sorted((DOCS / "reference" / "workloads").glob("*.md")) if mark in page.read_text()),
        "index.md",
    )


def workload_list() -> str:
    rows = [
        (f"[{code(row['name'])}]({page_of(row['name'])}#{row['name']})", row["summary"], row["source"])
        for row in catalogue()
    ]
    return table(("workload", "what it does", "source"), rows)


Row = tuple[str, str, str]
"""A parameter, its default and its meaning."""


@functools.cache
def parameters() -> dict[str, list[Row]]:
    """The parameters of each workload."""
    return {
        row["name"]: [
            (code(p["name"]), "none" if p["default"] == "" else code(p["default"]), p["meaning"])
            for p in row["parameters"]
        ]
        for row in catalogue()
    }


SHARED_BY = 3
"""A parameter that so many workloads have, alike, stands once."""


def takers(row: Row) -> list[str]:
    return [name for name, rows in parameters().items() if row in rows]


def shared_parameters() -> str:
    every = dict.fromkeys(row for rows in parameters().values() for row in rows)
    shared = [row for row in every if len(takers(row)) >= SHARED_BY]
    return table(
        ("parameter (`--set`)", "default", "meaning", "workloads"), [(*row, listed(takers(row))) for row in shared]
    )


def parameters_of(name: str) -> str:
    """The parameters that a workload does not share."""
    own = [row for row in parameters()[name] if len(takers(row)) < SHARED_BY]
    if not own:
        return "Parameters: only [shared ones](index.md#shared-parameters)."
    rows = described((f"{parameter} ({default})", meaning) for parameter, default, meaning in own)
    return f"Parameters (`--set`), with their defaults:\n\n{rows}"


def features() -> str:
    """What workloads ask of an engine, by what each states of itself."""

    def stating(feature: object) -> Iterable[str]:
        for name in names():
            for text, one in get(name).exercises().items():
                if one is feature:
                    yield code(name) + text.removeprefix(str(feature))

    return described((f"**{feature}**", ", ".join(stating(feature)) or "none") for feature in MEANING)
