"""The four topologies of Ehrenstein 2020: whether each holds its floor, and what overlapping windows cost.

Floors: one run of each topology at its floor, for 60 s. The value is the rate if the run was sustained, and 0 if not.

- sink and tumbling windows: 0.5 M/s with 1000 keys;
- hierarchical aggregation: 0.1 M/s with 100,000 sensors in 11,111 groups;
- hopping windows of a minute: 0.2 M/s with 60 windows of each event, 1 k/s with 6000 and 10 keys.

Cost curve: hopping windows of a minute at 1 k/s with 10 keys, with more and more windows of each event, by each
lowering: the CPU of the engine. `window` is Spark's own, `panes` merges panes in Spark, `sliding` reduces them in a
process. A lowering that is not sustained ends its curve.

    python -m bench.studies.topologies                          all; a run takes three minutes, so about an hour
    python -m bench.studies.topologies --only sink,sliding      some floors, or the curves of some lowerings
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from bench.__main__ import chosen, met, plain
from bench.support.row import Row, row
from bench.support.run_command import RunCase, if_sustained

HOPPING = "scalability_hopping"
RANGE = ("--set", "range=60s")
LOWERINGS = ("window", "panes", "sliding")
WINDOWS = (6, 60, 120, 300, 600, 1200, 6000)
"""Windows of each event in the cost curve; the period is a minute divided by it."""


class Floor(NamedTuple):
    """A topology at the rate that it must sustain."""

    what: str
    case: RunCase
    rate_per_s: float


FLOORS = {
    "sink": Floor("sink", RunCase("scalability_sink", "500k"), 500e3),
    "tumbling": Floor("tumbling windows", RunCase("scalability_tumbling", "500k"), 500e3),
    "hierarchical": Floor(
        "hierarchical, 11,111 groups", RunCase("scalability_hierarchical", "100k", more=("--set", "height=5")), 100e3
    ),
    "hopping_60": Floor("hopping, 60 windows", RunCase(HOPPING, "200k", more=(*RANGE, "--set", "period=1s")), 200e3),
    "hopping_6000": Floor(
        "hopping, 6000 windows", RunCase(HOPPING, "1k", more=(*RANGE, "--set", "period=10ms", "--set", "keys=10")), 1e3
    ),
}  # fmt: skip
"""By the name that `--only` takes."""
EVERY = (*FLOORS, *LOWERINGS)


def floor_row(floor: Floor) -> Row:
    """The rate if it was sustained, else 0."""
    held = if_sustained(floor.case) is not None
    return row(f"topologies: floor of {floor.what}", [floor.rate_per_s if held else 0.0], "events/s", floor.rate_per_s)


def curve_rows(lowering: str) -> Iterator[Row]:
    """The engine's CPU by number of windows, up to the first that is not sustained."""
    for windows in WINDOWS:
        name = f"topologies: cost of hopping, {lowering}, {windows} windows"
        result = if_sustained(_on_curve(lowering, windows))
        if result is None:
            yield row(name, [float("nan")], "cores", note="not sustained")
            return
        yield row(name, [cores_of(result)], "cores")


def _on_curve(lowering: str, windows: int) -> RunCase:
    period = ("--set", f"period={60_000 / windows:g}ms", "--set", "keys=10")
    return RunCase(HOPPING, "1k", more=(*RANGE, *period, "--option", f"lowering.aggregate={lowering}"))


def cores_of(result: dict[str, Any]) -> float:
    """Cores that the engine's processes used in the measured span, on average."""
    sut = (each for each in result["processes"] if each["role"] == "sut")
    return sum(float(each["cpu_percent_mean"]) for each in sut) / 100


def main(only: Sequence[str] = EVERY) -> list[Row]:
    """The rows of these floors and lowerings."""
    floors = [floor_row(floor) for name, floor in FLOORS.items() if name in only]
    curves = [each for lowering in LOWERINGS if lowering in only for each in curve_rows(lowering)]
    return floors + curves


def command(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; 1 if a floor is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.studies.topologies", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", metavar="NAME,...", help=f"of {', '.join(EVERY)}")
    only = parser.parse_args(arguments).only
    rows = main(EVERY if only is None else chosen(only, EVERY))
    print(plain(rows))
    return 1 if any(met(each, "floor") is False for each in rows) else 0


if __name__ == "__main__":
    sys.exit(command())
