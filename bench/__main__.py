"""Runs the benchmark programs of these packages and prints one table, each figure with its floor and goal.

    python -m bench                        all of them except those in `APART`, which run only by name
    python -m bench --only generation      some of them, by the last part of the name, separated by commas
    python -m bench --json | --markdown    rows for a program, or a table

Exits with 1 if a floor is missed or a program fails, with 2 if a name is unknown. A program is a module with
`main() -> list[Row]`. Each runs in its own process, so that it does not share caches, threads or CPUs with others.
"""

from __future__ import annotations

import argparse
import json
import pkgutil
import sys
from collections.abc import Callable, Sequence
from typing import Any

import bench
from bench import support
from bench.support.own_process import run_in_own_process

Row = dict[str, Any]
"""what, value, unit, floor, goal, median, spread, note; floor and goal may be None, the note empty."""

APART = ("applications", "marginal_cpu", "topologies", "tuning_profiles")
"""Studies of many runs each, of an hour and more."""

HEAD = ("what", "value", "unit", "spread", "floor", "goal", "met")


def programs() -> dict[str, str]:
    """Short name to full name of each program: `generation` to `bench.loadgen.generation`."""
    modules = [module.name for module in pkgutil.walk_packages(bench.__path__, "bench.") if not module.ispkg]
    names = [name for name in modules if name.count(".") == 2 and not name.startswith(f"{support.__name__}.")]
    return {name.rpartition(".")[2]: name for name in sorted(names)}


def chosen(only: str | None, there: Sequence[str]) -> list[str]:
    """The requested programs; SystemExit 2 if a name is unknown."""
    if only is None:
        return [name for name in there if name not in APART]
    asked = [name.strip() for name in only.split(",")]
    unknown = [name for name in asked if name not in there]
    if unknown:
        print(f"error: --only: no program {', '.join(unknown)}\n  try: one of {', '.join(there)}", file=sys.stderr)
        raise SystemExit(2)
    return asked


def met(row: Row, bound: str) -> bool | None:
    """Whether the value reaches `bound` ("floor" or "goal"); None without a bound.

    If the goal is below the floor, less is better, as for times.
    """
    limit = row[bound]
    if limit is None:
        return None
    less_is_better = row["goal"] is not None and row["floor"] is not None and row["goal"] < row["floor"]
    return bool(row["value"] <= limit if less_is_better else row["value"] >= limit)


def said(row: Row) -> str:
    """`goal`, `floor` or `missed`: the bound that the value reaches."""
    if met(row, "goal"):
        return "goal"
    return {True: "floor", False: "missed", None: "-"}[met(row, "floor")]


def cells(row: Row) -> tuple[str, ...]:
    bounds = (_number(row["floor"]), _number(row["goal"]))
    what = f"{row['what']} ({row['note']})" if row["note"] else row["what"]
    return (what, _number(row["value"]), row["unit"], f"±{row['spread']:.1%}", *bounds, said(row))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.4g}" if abs(value) < 1e5 else f"{value / 1e6:,.4g} M"


def plain(rows: Sequence[Row]) -> str:
    """The table as aligned text."""
    lines = [HEAD, *map(cells, rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def markdown(rows: Sequence[Row]) -> str:
    lines = [HEAD, ("---",) * len(HEAD), *map(cells, rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def collect(asked: Sequence[str], run: Callable[[str], list[Row]] = run_in_own_process) -> tuple[list[Row], bool]:
    """(rows of all programs, whether every program finished). A program that fails does not stop the others."""
    rows, whole, modules = [], True, programs()
    for name in asked:
        module = modules[name]
        print(module, file=sys.stderr)
        try:
            rows += run(module)
        except Exception as error:  # report whatever a program raises, and run the next one
            print(f"error: {module} failed: {type(error).__name__}: {error}", file=sys.stderr)
            whole = False
    return rows, whole


def main(arguments: Sequence[str] | None = None, run: Callable[[str], list[Row]] = run_in_own_process) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Benchmark programs, in one table.")
    parser.add_argument("--only", metavar="NAME,...", help=f"of {', '.join(sorted(programs()))}")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="rows as JSON")
    form.add_argument("--markdown", action="store_true", help="the table as Markdown")
    asked = parser.parse_args(arguments)
    rows, whole = collect(chosen(asked.only, sorted(programs())), run)
    print(json.dumps(rows, indent=2) if asked.json else markdown(rows) if asked.markdown else plain(rows))
    return 0 if whole and all(met(row, "floor") is not False for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
