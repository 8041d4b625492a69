"""Checks a run's answers without streamgauge: plain pandas on the input that `generate` wrote and on its results.

    streamgauge run windowed_aggregation --rate 20k --duration 30s --keep-results
    streamgauge generate --of runs/2026-...-windowed_aggregation-spark --out input
    python examples/check_an_answer.py input runs/2026-...-windowed_aggregation-spark

The second command writes that very run's input. The script prints how many windows are equal, and exits with 1 if one
is not. A window is required if its last purchase lies before the end of the measured span. Other windows may be
missing, but must be right if they arrived. Windows that end after the last purchase of the input are not checked, and
counted as `outside`. A run that was extended has such windows if the input was made with `--start`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

KEYS = ["gem_pack_id", "window_start"]


def revenue(purchases: pd.DataFrame, range_us: int, slide_us: int) -> pd.DataFrame:
    """`revenue` and `last_us` (the latest event time) by pack and window start, in microseconds.

    A window holds the events with start <= event time < start + range.
    """
    newest = purchases.event_time // slide_us * slide_us
    parts = []
    for back in range(-(-range_us // slide_us)):
        start = newest - back * slide_us
        rows = purchases.assign(window_start=start)[purchases.event_time < start + range_us]
        parts.append(rows.groupby(KEYS).agg(revenue=("price", "sum"), last_us=("event_time", "max")))
    return pd.concat(parts).groupby(level=KEYS).agg(revenue=("revenue", "sum"), last_us=("last_us", "max"))


def micros(column: pd.Series) -> pd.Series:
    """A column of timestamps as whole microseconds since the epoch."""
    return column.dt.as_unit("us").astype("int64")


def read_purchases(generated: Path) -> pd.DataFrame:
    purchases = pd.read_parquet(generated / "purchases", columns=["gem_pack_id", "price", "event_time"])
    return purchases.assign(event_time=micros(purchases.event_time))


def read_results(run: Path) -> pd.DataFrame:
    """The run's windows by pack and start; the index repeats if a window arrived twice."""
    results = pd.read_parquet(run / "results.parquet", columns=[*KEYS, "revenue"])
    return results.assign(window_start=micros(results.window_start)).set_index(KEYS)


def measured_until(run: Path) -> int:
    """The end of the run's measured span, microseconds since the epoch."""
    phases = json.loads((run / "result.json").read_text())["phases"]
    return next(phase["end_us"] for phase in phases if phase["name"] == "measured")


def inside(windows: pd.DataFrame, range_us: int, last_us: int) -> np.ndarray:
    """Whether each window (by pack and start) ends by the input's last event, so that all of its events are there."""
    return windows.index.get_level_values("window_start") + range_us <= last_us


def compare(expected: pd.DataFrame, results: pd.DataFrame, until_us: int) -> dict[str, int]:
    """The number of windows that match, differ, are missing, are duplicates, or are unexpected."""
    repeated = results.index.duplicated()
    both = expected.join(results[~repeated].rename(columns={"revenue": "received"}), how="outer")
    arrived, known = both.received.notna(), both.revenue.notna()
    return {
        "matched": int((both.received == both.revenue).sum()),
        "different": int((arrived & known & (both.received != both.revenue)).sum()),
        "missing": int((~arrived & (both.last_us < until_us)).sum()),
        "extra": int((arrived & ~known).sum()),
        "duplicate": int(repeated.sum()),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Checks a run's windowed aggregation with pandas.")
    parser.add_argument("generated", type=Path, help="the folder that streamgauge generate wrote")
    parser.add_argument("run", type=Path, help="the run folder, made with --keep-results")
    parser.add_argument("--range", type=float, default=8.0, help="length of a window in seconds (8)")
    parser.add_argument("--slide", type=float, default=4.0, help="seconds from one window's start to the next (4)")
    asked = parser.parse_args(arguments)
    purchases, range_us = read_purchases(asked.generated), round(asked.range * 1e6)
    expected, results = revenue(purchases, range_us, round(asked.slide * 1e6)), read_results(asked.run)
    owed, came = (inside(windows, range_us, purchases.event_time.max()) for windows in (expected, results))
    counts = compare(expected[owed], results[came], measured_until(asked.run))
    print(", ".join(f"{count} {name}" for name, count in counts.items()) + f"; {(~came).sum()} outside")
    faults = sum(count for name, count in counts.items() if name != "matched")
    return 1 if faults or not counts["matched"] else 0


if __name__ == "__main__":
    sys.exit(main())
