"""Drain rate of a keyed process with small state on Spark, on two CPUs, against the same rows through `mapInArrow`.

Subject: a running count of 1000 gem packs that returns one row in a thousand, so that the sink costs nothing. Baseline:
a stateless class over the same columns with the same filter after it, which only crosses to Python and back. Spike
detection with its defaults (54 devices, windows of 1000 values) is drained as well. Each runs on a fresh Spark, in
turn. Run alone: `python -m bench.spark.keyed_process`.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import cloudpickle
import numpy as np
import pyarrow as pa

from bench.support.drain_rate import drained_per_s, ready_for
from bench.support.row import Row, row
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import Stream, source
from streamgauge.dataflow.operators.api import ROW, Processor
from streamgauge.dataflow.operators.grouped_arrays import group_by_key, load, save
from streamgauge.preflight.resolved_experiment import ResolvedExperiment

REPEATS = 3
PACKS = 1000


class Same(Processor):
    """The baseline: returns its rows."""

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        packs, rows = batch.column("gem_pack_id"), np.arange(batch.num_rows)
        return pa.RecordBatch.from_arrays([packs, pa.array(rows), pa.array(rows)], names=["pack", "count", ROW])


class RunningCount(Processor):
    """The count of each pack's purchases so far, at every purchase."""

    def __init__(self) -> None:
        self._counts = np.zeros(PACKS, np.int64)

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        packs = batch.column("gem_pack_id").to_numpy()
        order = group_by_key(packs)
        grouped = packs[order]
        rank = np.arange(len(order)) - np.searchsorted(grouped, grouped) + 1
        count = np.empty(len(order), np.int64)
        count[order] = self._counts[grouped] + rank
        self._counts += np.bincount(packs, minlength=PACKS)
        columns = [batch.column("gem_pack_id"), pa.array(count), pa.array(np.arange(len(order)))]
        return pa.RecordBatch.from_arrays(columns, names=["pack", "count", ROW])

    def snapshot(self) -> bytes:
        return save(counts=self._counts)

    def restore(self, state: bytes) -> None:
        self._counts = load(state)["counts"].to_numpy().copy()


def ready_with(operator: type[Processor], keyed: bool) -> ResolvedExperiment:
    """The purchases of `filter` through a class that returns one result in a thousand."""
    resolved = ready_for("filter")
    bought = source("purchases", resolved.streams(1e6)[0].schema)
    gives = Schema.from_types(pack="int", count="bigint")
    made = _made(bought, operator, keyed, gives).where("count % 1000 = 0")
    return replace(resolved, flow=made.sink("counts"), reach_us=None if keyed else 0)


def _made(bought: Stream, operator: type[Processor], keyed: bool, gives: Schema) -> Stream:
    return bought.process(operator, keys="gem_pack_id" if keyed else (), reads="gem_pack_id", gives=gives)


def main() -> list[Row]:
    if __name__ != "__main__":  # pickle these classes with the job, because Spark's workers cannot import this module
        cloudpickle.register_pickle_by_value(sys.modules[__name__])
    keyed, stateless = ready_with(RunningCount, True), ready_with(Same, False)
    counts, bases, spikes = [], [], []
    for repeat in range(REPEATS):
        counts.append(drained_per_s(keyed))
        bases.append(drained_per_s(stateless))
        spikes.append(drained_per_s(ready_for("spike_detection")))
        found = f"{counts[-1] / 1e6:.2f} M/s keyed, {bases[-1] / 1e6:.2f} M/s stateless, {spikes[-1] / 1e6:.2f} M/s"
        print(f"repeat {repeat + 1}: {found} spike detection", file=sys.stderr, flush=True)
    ratios = [count / base for count, base in zip(counts, bases, strict=True)]
    return [
        row("baseline: mapInArrow alone", bases, "events/s", None, None),
        row("keyed process of small state", counts, "events/s", 0.4e6, 0.7e6),
        row("keyed process against mapInArrow alone", ratios, "ratio", 0.4, 0.6),
        row("spike detection drained", spikes, "events/s", 0.15e6, 0.4e6),
    ]


if __name__ == "__main__":
    for each in main():
        print(each)
