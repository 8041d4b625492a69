"""Writes the data of applications in docs/results/data from searches and operator profiles.

    python tools/docs_applications.py RUN...           from folders that `streamgauge sustain` or `characterize` left
    python tools/docs_applications.py --measure DIR    characterize every workload into DIR first, one after the other;
                                                       finished ones are kept

`python -m bench.studies.applications DIR` searches the rate of every application. The data lie in
docs/results/data; `python tools/docs_tables.py` then counts the brackets on docs/results/performance.md again.
Applications that no folder is given of keep their rows in application-rates.csv; the files operator-*.csv are of the
given folders alone. A file that no folder is for stays as it is.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from streamgauge.results.profile import OperatorProfile

DATA = Path(__file__).parents[1] / "docs" / "results" / "data"
PROFILE, SEARCH = "characterization.json", "result.json"

Searched = Mapping[str, Any]
Measured = TypeVar("Measured")
Rows = list[tuple[str, ...]]


def read(path: Path) -> Searched | OperatorProfile:
    """A finished profile, or the result of a search; SystemExit with the reason where there is neither."""
    from streamgauge.results.profile import OperatorProfile

    file = path if path.is_file() else path / (PROFILE if (path / PROFILE).exists() else SEARCH)
    try:
        measured: dict[str, Any] = json.loads(file.read_text())
        if measured.get("search"):
            return measured
        if measured.get("finished"):
            return OperatorProfile.model_validate(measured)
    except (OSError, ValueError) as error:
        rule = f"must be a folder of streamgauge sustain or characterize, or its {PROFILE}"
        raise SystemExit(f"{path}: {rule} ({error})") from None
    raise SystemExit(f"{path}: is no search and was not finished: make {measured.get('workload', 'it')} again")


def by_name(every: Iterable[Measured], workload: Callable[[Measured], str]) -> list[Measured]:
    """In the order of their workloads; SystemExit where an application is there twice."""
    measured = sorted(every, key=workload)
    names = [workload(one) for one in measured]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise SystemExit(f"two of {', '.join(twice)}: name one of each")
    return measured


RATES = (
    "application", "operators", "exercises", "holds", "next rate up", "trials", "latency p50", "p95", "p99", "max",
    "Bordin 2017 on Spark: p95 at tuples/s at the sink", "what limits", "reference work", "date", "machine", "commit",
)  # fmt: skip


NO_UPPER_END = "no upper end was found"


def rates(every: Iterable[Searched], before: Iterable[Sequence[str]] = ()) -> Rows:
    """What each application was found to sustain, what limits it, and what it exercises; in the order of their names.

    Latencies are those of the trial that held, of the sink whose results come last. `before` are the rows there were:
    those of other applications than `every` are taken over; SystemExit where they have other columns than `RATES`.
    """
    searches = by_name(every, lambda one: str(one["workload"]))
    rows = {row[0]: tuple(row) for row in (*before, *map(_rate, searches))}
    if any(len(row) != len(RATES) for row in rows.values()):
        raise SystemExit("application-rates.csv has other columns now: give the searches of all applications")
    return [rows[name] for name in sorted(rows)]


def _rate(one: Searched) -> tuple[str, ...]:
    from tables.published import best_on_one_node

    from streamgauge.core.formatting import format_rate, format_us
    from streamgauge.dataflow import graph
    from streamgauge.workloads.registry import get

    workload = get(str(one["workload"]))
    flow = workload.build(workload.parameters(), 1000.0).flow
    latency = one["latency"]["event_time_us"] or {}
    search, here = one["search"], one["environment"]
    verdict = str(search["high_verdict"] or "").replace("_", " ")
    return (
        workload.name, str(sum(1 for _ in graph.operators(flow))), ", ".join(workload.features),
        format_rate(search["low"]) if search["low"] else "",
        f"{format_rate(search['high'])} {verdict}" if verdict else NO_UPPER_END if search["low"] else "",
        str(sum(trial["verdict"] is not None for trial in search["trials"])),
        *(_given(format_us(latency.get(name))) for name in ("p50", "p95", "p99", "max")),
        "; ".join(map(str, best_on_one_node(workload.name, "Spark"))), search["limit"],
        format_us(one["reference_work_us"]), one["start_time"][:10],
        f"{here['cpu_model']}, {here['cpus']} processors", here["streamgauge"],
    )  # fmt: skip


def _given(cell: str) -> str:
    from streamgauge.core.formatting import NONE

    return "" if cell == NONE else cell


OPERATORS = (
    "application", "operator", "type", "rows arrive", "selectivity", "bytes of a tuple", "time of a tuple p50", "p99",
    "instances (cumulative)", "instances (immediate)", "instances (Bordin 2017)",
)  # fmt: skip
MEMORY = ("application", "min", "p50", "p95", "max", "behaviour", "level")
ADVICE = ("application", "option")
RUNS = ("what", "figure", "date", "commit", "reference work", "machine")
MEDIAN = 3
"""Its place among an operator's cells."""


def profiles(every: Iterable[OperatorProfile]) -> dict[str, Rows]:
    """The rows of each data file that profiles give, by the file's name; applications in the order of their names."""
    measured = by_name(every, lambda one: one.workload)
    return {
        "operator-profiles.csv": [OPERATORS, *_operators(measured)],
        "operator-memory.csv": [MEMORY, *_memory(measured)],
        "operator-advice.csv": [ADVICE, *((one.workload, one.apply.line or "") for one in measured)],
        "operator-runs.csv": [RUNS, *_runs(measured)],
    }


def _operators(measured: Sequence[OperatorProfile]) -> Rows:
    from streamgauge.report.documents.profile import cells

    rows = []
    for one in measured:
        for row in one.operators:
            told = list(cells(row, "cumulative", "immediate"))
            if (time := row.time_per_tuple_us) and not time.distinguishable:
                told[MEDIAN] += " (not distinguishable from reading)"
            rows.append((one.workload, told[0], row.type, row.communication, *map(_given, told[1:])))
    return rows


def _memory(measured: Sequence[OperatorProfile]) -> Rows:
    from streamgauge.core.formatting import format_size

    return [
        (one.workload, *(format_size(getattr(one.memory, name)) for name in ("min", "p50", "p95", "max")),
         one.memory.behaviour, one.memory.level)
        for one in measured
        if one.memory
    ]  # fmt: skip


def _runs(measured: Sequence[OperatorProfile]) -> Rows:
    """From what input and on what machines: each way once, with the applications that it holds for."""
    ways: dict[tuple[str, ...], list[str]] = {}
    for one in measured:
        given, here = one.input, one.environment
        figure = (
            f"{given.slices} slices of {given.slice_events} events ({given.warmup_slices} more to warm up), "
            f"{given.rate_per_s:g} events/s, seed {given.seed}"
        )
        machine = f"{here['cpu_model']}, {here['cpus']} processors; {here['java']}, PySpark {here['pyspark']}"
        way = (figure, one.start_time[:10], str(here.get("streamgauge") or ""), "", machine)
        ways.setdefault(way, []).append(one.workload)
    return [(", ".join(names), *way) for way, names in ways.items()]


def write(name: str, rows: Iterable[Sequence[str]]) -> None:
    """A data file, its head first."""
    with (DATA / name).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def rates_before() -> Rows:
    """The applications' rows as they stand in the data."""
    file = DATA / "application-rates.csv"
    if not file.exists():
        return []
    with file.open(newline="", encoding="utf-8") as lines:
        return [tuple(row) for row in csv.reader(lines)][1:]


def measure(out: Path) -> list[str]:
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
    """The folders of profiles that came to their end, by workload; the latest of each."""
    profiled = {path.parent: json.loads(path.read_text()) for path in sorted(out.glob(f"*/{PROFILE}"))}
    return {one["workload"]: str(folder) for folder, one in profiled.items() if one.get("finished")}


def main(words: Sequence[str]) -> int:
    if len(words) == 2 and words[0] == "--measure":
        words = measure(Path(words[1]))
    from streamgauge.results.profile import OperatorProfile

    if not words or words[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    measured = [read(Path(word)) for word in words]
    profiled = [one for one in measured if isinstance(one, OperatorProfile)]
    searches = [one for one in measured if not isinstance(one, OperatorProfile)]
    if searches:
        write("application-rates.csv", [RATES, *rates(searches, rates_before())])
    for name, rows in profiles(profiled).items() if profiled else ():
        write(name, rows)
    print(f"wrote {DATA}; now: python tools/docs_tables.py")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
