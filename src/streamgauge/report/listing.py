"""Lists for people: the workloads and the engines there are."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table


def show_workloads(rows: list[dict[str, Any]]) -> None:
    """Name, what it does, and its parameters with their defaults."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("workload", "what it does", "parameters (--set name=value)"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        parameters = "\n".join(f"{p['name']}={p['default']}  {p['meaning']}" for p in row["parameters"])
        table.add_row(row["name"], f"{row['summary']} {row['source']}", parameters)
    Console().print(table)


TRUTH = "Truth of a job of your own: its reference where it has one, else the same function in Spark's batch mode."


def show_engines(rows: list[dict[str, Any]]) -> None:
    """The capability matrix, then each engine's options."""
    console = Console()
    nodes = sorted({node for row in rows for node in row["nodes"]})
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for row in rows:
        table.add_column(row["name"], justify="center")
    facts = [("runs streams", "streams"), ("computes truth", "truth"), ("several sinks", "several_sinks")]
    for label, key in facts:
        table.add_row(label, *[_mark(row[key]) for row in rows])
    for node in nodes:
        table.add_row(node, *[_mark(node in row["nodes"]) for row in rows])
    for label, key in (("sink modes", "sink_modes"), ("transports", "transports")):
        table.add_row(label, *[", ".join(row[key]) or "-" for row in rows])
    console.print(table)
    console.print(TRUTH, soft_wrap=True)
    for row in rows:
        for option in row["options"]:
            choices = f" ({' | '.join(option['choices'])})" if option["choices"] else ""
            console.print(f"{row['name']}  --option {option['name']}={option['default']}{choices}  {option['meaning']}")


def _mark(holds: bool) -> str:
    return "yes" if holds else "-"
