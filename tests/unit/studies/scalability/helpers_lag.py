"""Series of a trial whose lag is that of a simulated engine. All figures are made up."""

import random
from collections.abc import Sequence

import pyarrow as pa

from streamgauge.artifacts import series_files

SPAN_S = 360


def series(lags: Sequence[float | None], at_commits: Sequence[float | None] | None = None, warmup: int = 3) -> pa.Table:
    """A span with these lags at the end of each second, and right after the last commit in it."""
    phases = ["warm-up"] * warmup + ["measured"] * len(lags) + ["tail"]
    ends = {
        "lag_events_mean": lags,
        "lag_at_commit_mean": [None] * len(lags) if at_commits is None else at_commits,
    }
    others = {
        field.name: pa.array(range(len(phases)), field.type)
        if not field.nullable
        else pa.nulls(len(phases), field.type)
        for field in series_files.SCHEMA
        if field.name not in ("phase", *ends)
    }
    columns = {name: pa.array([9e9] * warmup + [*values] + [9e9], pa.float64()) for name, values in ends.items()}
    return pa.table({**others, "phase": phases, **columns}).select(series_files.SCHEMA.names)


def micro_batches(
    rate_per_s: float, seed: int, interval_s: float = 1.0, fixed_s: float = 0.2, busy: float = 0.3, noise: float = 0.1
) -> pa.Table:
    """An engine that takes at each trigger what is due, and commits it when it is done.

    A batch takes `fixed_s`, and `busy` of the time of the events that it takes, both within `noise`. Above 1 the
    engine falls behind. Its first trigger is at any time within an interval.
    """
    chance = random.Random(seed)
    now, taken = -60.0 - chance.random() * max(interval_s, 1.0), -61.0 - interval_s
    commits: list[tuple[float, float]] = []  # (when, event time up to which it was committed)
    while now < SPAN_S:
        since, taken = now - taken, now
        took = (fixed_s + busy * since) * max(0.1, chance.gauss(1, noise))
        commits.append((now + took, taken))
        now += max(interval_s, took)
    ends: list[float | None] = []
    at_commits: list[float | None] = []
    for second in range(SPAN_S):
        reached = [until for when, until in commits if when < second + 1]
        inside = [(when, until) for when, until in commits if second <= when < second + 1]
        ends.append(rate_per_s * (second + 1 - reached[-1]) if reached else rate_per_s * 60)
        at_commits.append(rate_per_s * (inside[-1][0] - inside[-1][1]) if inside else None)
    return series(ends, at_commits)
