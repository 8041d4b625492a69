"""Rate at which one core generates the input of the windowed aggregation, against plain NumPy in the same run.

Baseline: `Generator(Philox).integers` filling the same three columns (uniform, no event time). Run alone:
`python -m bench.loadgen.generation`.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from bench.support.row import Row, row
from streamgauge.loadgen.fields import Integer, Key, StreamSpec
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile

REPEATS = 7
CHUNK_EVENTS = 200_000
CHUNKS = 20
FLOOR_PER_S, GOAL_PER_S = 20e6, 50e6
PURCHASES = StreamSpec(
    "purchases", (Key("user_id", 1_000_000), Key("gem_pack_id", 1_000, "normal"), Integer("price", 1, 100))
)


def purchases_plan() -> Plan:
    """One partition at 1 M/s from a fixed start."""
    return Plan((PURCHASES,), parse_profile("constant", 1e6, 60.0), 1_700_000_000_000_000, 60.0, 1, 1)


def make_planned(plan: Plan) -> None:
    for chunk in range(CHUNKS):
        plan.batch(0, 0, chunk * CHUNK_EVENTS, (chunk + 1) * CHUNK_EVENTS)


def make_baseline(generator: np.random.Generator) -> None:
    for _ in range(CHUNKS):
        for low, high in ((0, 1_000_000), (0, 1_000), (1, 101)):
            generator.integers(low, high, CHUNK_EVENTS, dtype=np.int32)


def rate_per_s(make: Callable[[], None]) -> float:
    """Events per second in one repeat."""
    begin = time.perf_counter()
    make()
    return CHUNKS * CHUNK_EVENTS / (time.perf_counter() - begin)


def main() -> list[Row]:
    """Measures both in turn, so that background load affects both alike."""
    plan, generator = purchases_plan(), np.random.Generator(np.random.Philox(1))
    make_planned(plan)
    planned, baseline = [], []
    for _ in range(REPEATS):
        planned.append(rate_per_s(lambda: make_planned(plan)))
        baseline.append(rate_per_s(lambda: make_baseline(generator)))
    ratios = [ours / theirs for ours, theirs in zip(planned, baseline, strict=True)]
    return [
        row("generation: purchases with event time", planned, "events/s", FLOOR_PER_S, GOAL_PER_S),
        row("generation: numpy integers, three columns (baseline)", baseline, "events/s"),
        row("generation: purchases / numpy integers", ratios, "times"),
    ]


if __name__ == "__main__":
    for line in main():
        bounds = f"floor {line['floor']:.3g}, goal {line['goal']:.3g}" if line["floor"] else ""
        print(f"{line['what']:52} {line['value']:12.4g} {line['unit']:9} ±{line['spread']:.1%}  {bounds}")
