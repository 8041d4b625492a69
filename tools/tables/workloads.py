"""Tables of workloads: what each does, its parameters and its flow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from streamgauge.workloads.registry import MEANING, catalogue, get, names
from tables.markdown import DOCS, code, listed, table


def makers() -> dict[str, Callable[[], str]]:
    found = {"workloads": workload_list, "features": features}
    for name in names():
        found[f"parameters of {name}"] = partial(parameters_of, name)
        found[f"flow of {name}"] = partial(flow_of, name)
    return found


def page_of(workload: str) -> str:
    """The page of its family, on which the workload has its section; the index itself where it has none yet."""
    mark = f"<!-- generated: flow of {workload} -->"
    return next(
        (page.name for page in sorted((DOCS / "reference" / "workloads").glob("*.md")) if mark in page.read_text()),
        "index.md",
    )


def workload_list() -> str:
    rows = [
        (f"[{code(row['name'])}]({page_of(row['name'])}#{row['name']})", row["summary"],
         ", ".join(code(s["name"]) for s in row["streams"]),
         "; ".join(f"{code(s['name'])}, {s['mode']}" for s in row["sinks"]), row["source"])
        for row in catalogue()
    ]  # fmt: skip
    return table(("workload", "what it does", "streams", "results", "source"), rows)


def parameters_of(name: str) -> str:
    row = next(row for row in catalogue() if row["name"] == name)
    return table(
        ("parameter (`--set`)", "default", "meaning"),
        [(code(p["name"]), "none" if p["default"] == "" else code(p["default"]), p["meaning"])
         for p in row["parameters"]],
    )  # fmt: skip


def flow_of(name: str) -> str:
    row = next(row for row in catalogue() if row["name"] == name)
    return table(
        ("operator", "kind", "what it does", "reads"),
        [(code(n["name"]), n["kind"].replace("_", " "), n["label"], listed(n["inputs"]))
         for n in row["flow"]],
    )  # fmt: skip


def features() -> str:
    """What workloads ask of an engine, by what each states of itself."""

    def stating(feature: object) -> Iterable[str]:
        for name in names():
            for text, one in get(name).exercises().items():
                if one is feature:
                    yield code(name) + text.removeprefix(str(feature))

    rows = [(str(feature), meaning, ", ".join(stating(feature)) or "-") for feature, meaning in MEANING.items()]
    return table(("feature", "what it is", "workloads"), rows)
