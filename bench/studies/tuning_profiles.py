"""The sustained rate of three workloads in both tuning profiles, in memory and over Kafka: twelve searches.

Each is `streamgauge sustain WORKLOAD --quick --transport TRANSPORT --tuning PROFILE`, one after the other. The profiles
of a pair follow each other, so that background load affects both alike. The aggregation comes first, then the join.

    python -m bench.studies.tuning_profiles FOLDER [--only NAME[,NAME...]] [--show] [-- OPTION...]

FOLDER keeps every search. Finished ones are not repeated, so a stopped study can be continued. `--only` selects the
searches that have all of these names, such as `windowed_join,kafka`; `--show` starts none. OPTIONs go to `sustain`.
A search takes five to twenty minutes; `-- --tolerance 20% --trials-max 8` makes it shorter and its figure coarser.

The table goes to stdout and to FOLDER/tuning-profiles.csv. To publish it, copy that file to docs/results/data and run
`python tools/docs_tables.py`; a file with some of the searches will do.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from bench.support.row import Row, row
from bench.support.run_command import run_search
from streamgauge.config import reproduce

WORKLOADS = ("windowed_aggregation", "windowed_join", "word_count")
TRANSPORTS = ("memory", "kafka")
PROFILES = ("idiomatic", "tuned")
TABLE = "tuning-profiles.csv"
HEAD = (
    "workload", "transport", "tuning", "sustained_per_s", "high_per_s", "high_verdict", "p50_us", "p99_us",
    "latency_at_per_s", "limit", "tolerance", "seconds", "date", "commit", "machine", "command",
)  # fmt: skip
"""`latency_at_per_s` is the rate at which both latencies were measured."""
GUESS_S = 480.0
"""How long a search is expected to take before one is finished."""
Result = dict[str, Any]


class Cell(NamedTuple):
    """One search of the study."""

    workload: str
    transport: str
    tuning: str


EVERY = tuple(Cell(*each) for each in product(WORKLOADS, TRANSPORTS, PROFILES))


def chosen(only: str | None) -> list[Cell]:
    """The searches that have all of these names; SystemExit if no search has a name."""
    names = [name.strip() for name in only.split(",")] if only else []
    there = {*WORKLOADS, *TRANSPORTS, *PROFILES}
    if unknown := [name for name in names if name not in there]:
        raise SystemExit(
            f"error: --only: {', '.join(unknown)} is not a known name\n  try: some of {', '.join(sorted(there))}"
        )
    return [cell for cell in EVERY if set(names) <= set(cell)]


def kept(folder: Path) -> dict[Cell, Result]:
    """The latest finished search of each cell in a folder.

    A search in which the driver failed proves nothing, and is repeated.
    """
    found = {}
    for path in sorted(folder.glob("*/result.json")):
        result = json.loads(path.read_text())
        if (result.get("search") or {}).get("trials") and result["verdict"]["value"] not in ("interrupted", "invalid"):
            found[Cell(result["workload"], result["experiment"]["transport"], result["tuning"])] = result
    return found


def search(cell: Cell, folder: Path, options: Sequence[str]) -> Result | None:
    """Runs one search; None if it failed to run."""
    arguments = [cell.workload, "--quick", "--transport", cell.transport, "--tuning", cell.tuning, *options]
    return run_search(" ".join(cell), arguments, folder)


def searched(
    folder: Path,
    cells: Sequence[Cell],
    options: Sequence[str] = (),
    make: Callable[[Cell, Path, Sequence[str]], Result | None] = search,
) -> Iterator[tuple[Cell, Result]]:
    """Each search with its result, run unless the folder has it; one that failed to run is left out."""
    there = kept(folder)
    seconds = [float(result["search"]["seconds"]) for result in there.values()]
    to_make = [cell for cell in cells if cell not in there]
    for cell in cells:
        result = there.get(cell)
        if result is None:
            print(progress(cell, to_make, seconds), file=sys.stderr, flush=True)
            result = make(cell, folder, options)
            seconds += [float(result["search"]["seconds"])] if result is not None else []
        if result is not None:
            yield cell, result


def progress(cell: Cell, to_make: Sequence[Cell], seconds: Sequence[float]) -> str:
    """Which of the searches begins, and how many minutes are left, by the `seconds` that searches took before."""
    number = to_make.index(cell) + 1
    each_s = sum(seconds) / len(seconds) if seconds else GUESS_S
    left = (len(to_make) - number + 1) * each_s / 60
    return f"search {number} of {len(to_make)}: {' '.join(cell)}, about {each_s / 60:.0f} min; all: {left:.0f} min left"


def latency_of(search: Result) -> Result:
    """The trial that tells the latency: the one at 90 % of the rate; in a quick search that at the rate itself."""
    sustained = [one for one in search["trials"] if one.get("verdict") == "sustained" and one.get("event_time_p99_us")]
    at_rate: Result = max(sustained, key=lambda one: float(one["offered_per_s"]), default={})
    return search.get("at_90_percent") or at_rate


def values_of(cell: Cell, result: Result) -> tuple[Any, ...]:
    """A row of the table, in the order of `HEAD`."""
    found, environment, experiment = result["search"], result["environment"], result["experiment"]
    trial = latency_of(found)
    return (
        *cell, found["sustained_per_s"], found.get("high"), found.get("high_verdict"),
        trial.get("event_time_p50_us"), trial.get("event_time_p99_us"), trial.get("offered_per_s"),
        found.get("limit") or "", experiment["search"]["tolerance"], found.get("seconds"), result["start_time"][:10],
        environment.get("streamgauge"), f"{environment['cpu_model']}, {environment['cpus']} processors",
        reproduce.command({**experiment, "out": None}) or "",
    )  # fmt: skip


def write_table(folder: Path) -> None:
    """Writes the table of all finished searches into the folder."""
    there = kept(folder)
    (folder / TABLE).write_text(as_csv([(cell, there[cell]) for cell in EVERY if cell in there]))


def as_csv(found: Sequence[tuple[Cell, Result]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEAD)
    writer.writerows(values_of(*each) for each in found)
    return text.getvalue()


def as_table(found: Sequence[tuple[Cell, Result]]) -> str:
    """Both profiles of each pair side by side, with the ratio of `tuned` to `idiomatic`."""
    rates = {cell: float(result["search"]["sustained_per_s"] or 0.0) for cell, result in found}
    lines = [("workload", "transport", *(f"{profile} /s" for profile in PROFILES), "tuned / idiomatic")]
    for workload, transport in product(WORKLOADS, TRANSPORTS):
        plain, tuned = (rates.get(Cell(workload, transport, profile)) for profile in PROFILES)
        if plain is None and tuned is None:
            continue
        times = f"{tuned / plain:.2f}" if plain and tuned else "-"
        lines.append((workload, transport, *("-" if one is None else f"{one:,.0f}" for one in (plain, tuned)), times))
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    return "\n".join("  ".join(text.ljust(wide) for text, wide in zip(line, widths, strict=True)) for line in lines)


def main(folder: Path | None = None) -> list[Row]:
    """The rows for `python -m bench --only tuning_profiles`."""
    with tempfile.TemporaryDirectory() as thrown_away:
        found = searched(folder or Path(thrown_away), EVERY)
        return [
            row(f"tuning profiles: {' '.join(cell)}, sustained", [float(result["search"]["sustained_per_s"] or 0.0)],
                "events/s", note=result["search"].get("limit") or "")
            for cell, result in found
        ]  # fmt: skip


def command(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.studies.tuning_profiles", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="keeps every search")
    parser.add_argument("--only", metavar="NAME,...", help="the searches that have all of these names")
    parser.add_argument("--show", action="store_true", help="make no search, show what the folder holds")
    given = sys.argv[1:] if arguments is None else list(arguments)
    own, options = (given[: given.index("--")], given[given.index("--") + 1 :]) if "--" in given else (given, [])
    asked = parser.parse_args(own)
    asked.folder.mkdir(parents=True, exist_ok=True)
    if not asked.show:
        try:
            for _ in searched(asked.folder, chosen(asked.only), options):
                write_table(asked.folder)
        except KeyboardInterrupt:
            print("stopped; the same command continues", file=sys.stderr)
    write_table(asked.folder)
    there = kept(asked.folder)
    found = [(cell, there[cell]) for cell in chosen(asked.only) if cell in there]
    print(as_table(found))
    print()
    print(as_csv(found), end="")


if __name__ == "__main__":
    command()
