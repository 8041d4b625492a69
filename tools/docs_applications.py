"""Writes the tables of docs/results/applications.md from searches and characterizations.

    python tools/docs_applications.py RUN...           from folders that `streamgauge sustain` or `characterize` left
    python tools/docs_applications.py --measure DIR    characterize every workload into DIR first, one after the other;
                                                       finished ones are kept

`python -m bench.studies.applications DIR` searches the rate of every application. In the table of rates, applications
that no folder is given of keep their rows; the other tables are of the given folders alone. A table that no folder
is for stays, and so does the text around them.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "results" / "applications.md"
FILE, SEARCH = "characterization.json", "result.json"

Found = Mapping[str, Any]


def read(path: Path) -> dict[str, Any]:
    """A finished characterization, or the result of a search; SystemExit with the reason where there is none."""
    file = path if path.is_file() else path / (FILE if (path / FILE).exists() else SEARCH)
    try:
        found: dict[str, Any] = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        rule = f"must be a folder of streamgauge sustain or characterize, or its {FILE}"
        raise SystemExit(f"{path}: {rule} ({error})") from None
    if found.get("search") or found.get("finished"):
        return found
    raise SystemExit(f"{path}: is no search and was not finished: make {found.get('workload', 'it')} again")


def tables(every: Iterable[Found]) -> str:
    """All tables of characterizations, applications in the order of their names."""
    found = _by_name(every)
    parts = [_operators(found), _memory(found), _applied(found), _made(found)]
    return "\n\n".join(parts)


def _by_name(every: Iterable[Found]) -> list[Found]:
    """In the order of their names; SystemExit where an application is there twice."""
    found = sorted(every, key=lambda one: str(one["workload"]))
    names = [one["workload"] for one in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise SystemExit(f"two of {', '.join(twice)}: name one of each")
    return found


RATES = (
    "application", "operators", "exercises", "holds", "latency, median", "p95", "p99", "most",
    "thesis: Spark's p95 at tuples/s at the sink", "what limits", "reference work", "made on", "by",
)  # fmt: skip


def rates(every: Iterable[Found], before: str = "") -> str:
    """What each application was found to sustain, what limits it, and what it exercises; in the order of their names.

    Latencies are those of the trial that held, of the sink whose results come last. `before` is the table as it was:
    rows of other applications than `every` are taken over.
    """
    rows = {row[0]: row for row in (*_rows_of(before), *map(_rate, _by_name(every)))}
    return _table()(RATES, [rows[name] for name in sorted(rows)])


def _rows_of(table: str) -> list[tuple[str, ...]]:
    """The applications' rows of a table of rates; SystemExit where it has other columns than `RATES`."""
    lines = [line for line in table.splitlines() if line.startswith("| `")]
    rows = [tuple(line.removeprefix("| ").removesuffix(" |").split(" | ")) for line in lines]
    if any(len(row) != len(RATES) for row in rows):
        raise SystemExit("the table of rates has other columns now: give the searches of all applications")
    return rows


def _rate(found: Found) -> tuple[str, ...]:
    from streamgauge.core.formatting import NONE, format_us
    from streamgauge.dataflow import graph
    from streamgauge.studies.operator_profile.published import best_on_one_node
    from streamgauge.workloads.registry import get

    workload = get(str(found["workload"]))
    flow = workload.build(workload.parameters(), 1000.0).flow
    latency = found["latency"]["event_time_us"] or {}
    said = str(found["search"]["sentence"]).replace("; not confirmed (quick)", "")
    here = found["environment"]
    made = f"{found['start_time'][:10]}, {here['cpu_model']}, {here['cpus']} processors"
    thesis = "; ".join(map(str, best_on_one_node(workload.name, "Spark"))) or NONE
    return (
        f"`{workload.name}`", str(sum(1 for _ in graph.operators(flow))), ", ".join(workload.features), said,
        *(format_us(latency.get(name)) for name in ("p50", "p95", "p99", "max")),
        thesis, found["search"]["limit"], format_us(found["reference_work_us"]), made, here["streamgauge"],
    )  # fmt: skip


MEDIAN = 3
"""Its place among an operator's cells."""


def _operators(found: Sequence[Found]) -> str:
    from streamgauge.report.documents.profile import cells

    head = (
        "application", "operator", "type", "rows come", "selectivity", "bytes of a tuple", "time of a tuple, median",
        "its p99", "instances, cumulative", "immediate", "thesis",
    )  # fmt: skip
    rows = []
    for one in found:
        for place, row in enumerate(one["operators"]):
            told = list(cells(row, "cumulative", "immediate"))
            if (time := row["time_per_tuple_us"]) and not time["distinguishable"]:
                told[MEDIAN] += " (not told from only reading)"
            name = f"`{one['workload']}`" if place == 0 else ""
            rows.append((name, f"`{told[0]}`", row["type"], row["communication"], *told[1:]))
    return _table()(head, rows)


def _memory(found: Sequence[Found]) -> str:
    from streamgauge.core.formatting import format_size

    rows = [
        (f"`{one['workload']}`", *(format_size(one["memory"][name]) for name in ("min", "p50", "p95", "max")),
         one["memory"]["behaviour"], one["memory"]["level"])
        for one in found
        if one["memory"]
    ]  # fmt: skip
    head = ("application", "least memory of Spark as it timed operators", "p50", "p95", "most", "behaviour", "level")
    return _table()(head, rows)


def _applied(found: Sequence[Found]) -> str:
    lines = [(one["workload"], one["apply"]["line"]) for one in found]
    rows = [(f"`{name}`", f"`{line}`" if line else "not applicable") for name, line in lines]
    return _table()(("application", "what `--apply` sets"), rows)


def _made(found: Sequence[Found]) -> str:
    """Of what input and on what machines: each way once, with the applications that it holds for."""
    ways: dict[str, list[str]] = {}
    for one in found:
        asked, here = one["input"], one["environment"]
        text = (
            f"{asked['slices']} slices of {asked['slice_events']} events ({asked['warmup_slices']} more to warm up), "
            f"{asked['rate_per_s']:g} events/s, seed {asked['seed']}; {here['cpu_model']}, {here['cpus']} processors, "
            f"{here['java']}, PySpark {here['pyspark']}"
        )
        ways.setdefault(text, []).append(f"`{one['workload']}`")
    return "\n".join(f"- {', '.join(names)}: {text}" for text, names in ways.items())


def _table() -> Callable[[Sequence[str], Iterable[Sequence[str]]], str]:
    """The form of all tables of the documents."""
    sys.path.insert(0, str(Path(__file__).parent))
    try:
        from docs_tables import table
    finally:
        sys.path.pop(0)
    return table


def there(text: str, block: str) -> str:
    """What stands in that place of the page; ValueError where it has none."""
    found = _place(block).search(text)
    if not found:
        raise ValueError(f"the page has no place for the tables of {block}")
    return found[2]


def renewed(text: str, made: str, block: str = "applications") -> str:
    """The page with another table in that place; ValueError where it has none."""
    there(text, block)
    return _place(block).sub(lambda match: f"{match[1]}{made}\n{match[3]}", text)


def _place(block: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- measured: {block} -->\n)(.*?)(<!-- end of measured -->)", re.DOTALL)


def measured(out: Path) -> list[str]:
    """Every workload characterized, those anew that the folder does not hold whole; gives their folders."""
    from streamgauge.workloads.registry import names

    out.mkdir(parents=True, exist_ok=True)
    folders = whole(out)
    for name in names():
        if name in folders:
            print(f"{name}: kept, {folders[name]}", file=sys.stderr)
            continue
        print(f"characterizing {name}", file=sys.stderr)
        command = [sys.executable, "-m", "streamgauge", "characterize", name, "--json", "--out", str(out)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        folders[name] = str(json.loads(done.stdout)["folder"])
    return list(folders.values())


def whole(out: Path) -> dict[str, str]:
    """The folders of characterizations that came to their end, by workload; the latest of each."""
    found = {path.parent: json.loads(path.read_text()) for path in sorted(out.glob(f"*/{FILE}"))}
    return {one["workload"]: str(folder) for folder, one in found.items() if one.get("finished")}


def main(words: Sequence[str]) -> int:
    if len(words) == 2 and words[0] == "--measure":
        words = measured(Path(words[1]))
    if not words or words[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    found = [read(Path(word)) for word in words]
    searches, characterized = ([one for one in found if ("search" in one) is kind] for kind in (True, False))
    page = PAGE.read_text()
    if searches:
        page = renewed(page, rates(searches, there(page, "rates")), "rates")
    if characterized:
        page = renewed(page, tables(characterized))
    PAGE.write_text(page)
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
