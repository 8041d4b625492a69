"""Machine Outlier (MO): machines whose CPU and memory use differs from that of the others.

1. scorer: the readings of one cluster in one `interval` form a batch. A reading's score is 1 plus its distance from the
   batch's centre, the means of both metrics.
2. anomaly scorer: the sum of a machine's last `window_length` scores, at every score.
3. alert trigger: of the n sums of a batch in ascending order, M is the one at index n // 2 (the upper median), and m
   the least. A sum S is abnormal if S > 2 M - m, S > m + 2 sqrt(2), and its last score is more than 0.1 above the
   batch's least score. Only abnormal sums come out.

Batches are windows of event time over a whole cluster, aligned to the epoch. A batch is complete once the watermark has
passed its end. One cluster (`clusters=1`) is the thesis's single batch for all machines.

Differences from the thesis's code:

- It distributes readings over instances, and each instance batches equal timestamps on arrival. With two instances each
  has half a batch, late readings count in the wrong batch, and the last batch is never judged.
- Its least sum is whichever its selection algorithm left in front.
- Its CPU share ranges from 0 to 100 and outweighs memory. Here both range from 0 to 1.
- Its other scorers and triggers (decaying sums, the greatest three, the first condition alone) are not implemented.

A machine that reports several times in a batch is scored, summed and judged each time, in order; `reading` is the index
within the batch, from 0. A machine belongs to one cluster. Malformed: readings without a machine or cluster, and those
with a metric that is null, NaN or outside 0 to 1. They move no centre and have no score.

Thresholds decide, so no result may depend on the last bit. Metrics are truncated to multiples of 1/1024, so that their
sums are exact in any order (generated ones already are). Scores are truncated to multiples of 2**-20 for the same
reason. The steps between (a division, two squares, a root) round alike everywhere.

What the engine meets here: results at the watermark, twice on one path; a count window; keys that change from cluster
to machine and back; an order over all rows of a batch; few results from many events.

Source: Bordin 2017, section 3.3.4.
"""

import math
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field

from streamgauge.core.arrays import Floats, Int64s
from streamgauge.core.clock import US
from streamgauge.core.schema import LINEAGE_TIMES, Schema
from streamgauge.dataflow.builder import source
from streamgauge.dataflow.operators.api import ROW, TIME, StateInAttributes
from streamgauge.dataflow.operators.grouped_arrays import groups
from streamgauge.loadgen.datasets.sensors import Cluster, Usage
from streamgauge.loadgen.fields import InTurn, StreamSpec, with_malformed
from streamgauge.workloads.helpers.last_values import OverLastValues
from streamgauge.workloads.registry import Feature, Job, Parameters, Seconds, Workload, unless

ColumnArrays = dict[str, NDArray[Any]]

MEANS = {"cpu": 0.4, "memory": 0.5}
"""Ordinary use of each metric, as a share."""
NO_SHARE = 40.0
"""A malformed reading's value: percent instead of a share."""
METRIC_GRID, GRID = 2**10, 2**20
"""Metrics are multiples of 1/2**10, scores of 1/2**20."""
SUM_MARGIN, SCORE_MARGIN = 2 * math.sqrt(2), 0.1
"""Least distance of an abnormal sum and score above the batch's least ones. Two readings are at most sqrt(2) apart."""

SCORED = Schema.from_types(
    cluster="int", machine="int", batch="bigint", reading="int", cpu="double", memory="double", score="double"
)
"""`batch` is its start in microseconds."""
SUMMED = Schema.from_types(**SCORED.types(), stream_score="double")
ALERTS = Schema.from_types(
    cluster="int", machine="int", window_start="timestamp", window_end="timestamp", reading="int",
    cpu="double", memory="double", score="double", stream_score="double",
)  # fmt: skip


class MachineOutlier(Parameters):
    """The thesis's parameter, the batches and the machines."""

    anomaly_scorer_window_length: int = Field(
        10, ge=1, le=10_000, description="number of a machine's last scores that are summed"
    )
    interval: Seconds = Field(
        1.0, ge=0.001, le=3600, description="length of a batch, whose readings are compared with each other"
    )
    clusters: int = Field(8, ge=1, le=10_000, description="number of clusters, each with its own batches")
    machines: int = Field(1000, ge=1, le=100_000, description="number of machines, which report in turn")
    overloaded: float = Field(0.01, ge=0, le=1, description="share of the machines that are overloaded at a time")
    malformed: float = Field(0.001, ge=0, le=1, description="share of the readings without a valid CPU share")


class OverBatches(StateInAttributes):
    """Base of the two processors of whole batches: keeps rows, in order of arrival, until their batch ends."""

    def __init__(self, interval_us: int) -> None:
        self._interval_us = interval_us

    def open(self, schema: pa.Schema) -> None:
        columns = [field for field in schema if field.name not in (TIME, "batch")]
        self._waiting = pa.schema([pa.field("batch", pa.int64()), *columns]).empty_table()

    def _over(self, rows: pa.Table, watermark_us: int) -> pa.Table:
        """Takes new rows and returns the rows of all complete batches."""
        rows = pa.concat_tables([self._waiting, rows.select(self._waiting.column_names)])
        over = pc.less_equal(rows.column("batch"), watermark_us + 1 - self._interval_us)
        self._waiting = rows.filter(pc.invert(over)).combine_chunks()
        return rows.filter(over)


class Scorer(OverBatches):
    """The distance of each reading from its batch's centre."""

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        rows = _sorted(self._over(self._sound(batch), watermark_us), "batch", "cluster", "machine")
        first, batch_of = groups(rows["batch"], rows["cluster"])
        first_of_machine, machine_of = groups(rows["batch"], rows["cluster"], rows["machine"])
        found = {name: rows[name] for name in SCORED.names if name in rows}
        found["reading"] = np.arange(len(machine_of)) - first_of_machine[machine_of]
        found["score"] = _scores([rows[name] for name in MEANS], batch_of)
        found[TIME] = rows["batch"] + self._interval_us - 1
        for name in LINEAGE_TIMES:
            found[name] = np.maximum.reduceat(rows[name], first)[batch_of]
        return pa.RecordBatch.from_pydict(found)

    def _sound(self, batch: pa.RecordBatch) -> pa.Table:
        conditions = [pc.is_valid(batch.column(name)) for name in ("cluster", "machine")]
        for name in MEANS:
            metric = batch.column(name)
            conditions += [pc.greater_equal(metric, 0.0), pc.less_equal(metric, 1.0)]
        sound = pa.Table.from_batches([batch]).filter(reduce(pc.and_, conditions))
        for name in MEANS:
            cut = pc.divide(pc.floor(pc.multiply(sound.column(name), float(METRIC_GRID))), float(METRIC_GRID))
            sound = sound.set_column(sound.column_names.index(name), name, cut)
        times = sound.column(TIME).to_numpy()
        return sound.append_column("batch", pa.array(times - times % self._interval_us))


class AnomalyScorer(OverLastValues):
    """The sum of each machine's last `window` scores, at every score."""

    key = "machine"

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        machines = self._keys.encode(batch.column("machine"))
        sums = self._recent.add(machines, batch.column("score").to_numpy()).sums
        columns = [*map(batch.column, SCORED.names), pa.array(sums), pa.array(np.arange(batch.num_rows))]
        return pa.RecordBatch.from_arrays(columns, names=[*SUMMED.names, ROW])


class AlertTrigger(OverBatches):
    """The abnormal sums of each batch."""

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        rows = self._over(pa.Table.from_batches([batch]), watermark_us)
        abnormal = _abnormal(_sorted(rows, "batch", "cluster", "stream_score"))
        start = abnormal.pop("batch")
        end = start + self._interval_us
        # The scorer gave all rows of a batch the timestamps of its last reading.
        return pa.RecordBatch.from_pydict({**abnormal, "window_start": start, "window_end": end, TIME: end - 1})


def _sorted(rows: pa.Table, *names: str) -> ColumnArrays:
    """The columns of rows, in a stable sort by some of them."""
    columns = {name: rows.column(name).to_numpy() for name in rows.column_names}
    order = np.lexsort(tuple(columns[name] for name in reversed(names)))
    return {name: column[order] for name, column in columns.items()}


def _scores(metrics: list[Floats], batch_of: Int64s) -> Floats:
    """1 plus the distance from the batch's means, truncated to a multiple of 1/GRID."""
    counts = np.bincount(batch_of)
    away = (metric - (np.bincount(batch_of, weights=metric) / counts)[batch_of] for metric in metrics)
    squares = sum(each * each for each in away)
    return 1 + np.floor(np.sqrt(squares) * GRID) / GRID


def _abnormal(rows: ColumnArrays) -> ColumnArrays:
    """The rows, sorted by batch and sum, that meet all three conditions."""
    first, batch_of = groups(rows["batch"], rows["cluster"])
    sums, scores = rows["stream_score"], rows["score"]
    median, least = sums[first + np.bincount(batch_of) // 2], sums[first]
    far = (
        (sums > (2 * median - least)[batch_of])
        & (sums > (least + SUM_MARGIN)[batch_of])
        & (scores > (np.minimum.reduceat(scores, first) + SCORE_MARGIN)[batch_of])
    )
    return {name: column[far] for name, column in rows.items()}


def scorer_truth(interval_us: int) -> str:
    """The score as DuckDB SQL."""
    return (
        f"WITH sound AS (SELECT * REPLACE (floor(cpu * {METRIC_GRID}) / {METRIC_GRID} AS cpu,"
        f" floor(memory * {METRIC_GRID}) / {METRIC_GRID} AS memory),"
        f" _time - (_time % {interval_us} + {interval_us}) % {interval_us} AS batch FROM input"
        " WHERE cluster IS NOT NULL AND machine IS NOT NULL"
        " AND cpu BETWEEN 0 AND 1 AND memory BETWEEN 0 AND 1),"
        " away AS (SELECT *, cpu - sum(cpu) OVER whole / count(*) OVER whole AS x,"
        " memory - sum(memory) OVER whole / count(*) OVER whole AS y,"
        " max(event_time) OVER whole AS last_event, max(ingest_time) OVER whole AS last_ingest"
        " FROM sound WINDOW whole AS (PARTITION BY cluster, batch))"
        " SELECT cluster, machine, batch,"
        " row_number() OVER (PARTITION BY cluster, machine, batch ORDER BY _row) - 1 AS reading, cpu, memory,"
        f" 1 + floor(sqrt(x * x + y * y) * {GRID}) / {GRID} AS score,"
        f" batch + {interval_us} - 1 AS _time, last_event AS event_time, last_ingest AS ingest_time FROM away"
    )


def sums_truth(window: int) -> str:
    """The sum of the last scores, as DuckDB SQL."""
    return (
        "SELECT *, sum(score) OVER (PARTITION BY machine ORDER BY _row"
        f" ROWS BETWEEN {window - 1} PRECEDING AND CURRENT ROW) AS stream_score FROM input"
    )


def alerts_truth(interval_us: int) -> str:
    """The abnormal sums, as DuckDB SQL."""
    return (
        "WITH placed AS (SELECT *, count(*) OVER whole AS n, min(stream_score) OVER whole AS lowest_sum,"
        " min(score) OVER whole AS lowest_score,"
        " row_number() OVER (PARTITION BY cluster, batch ORDER BY stream_score) - 1 AS place"
        " FROM input WINDOW whole AS (PARTITION BY cluster, batch)),"
        " compared AS (SELECT *, max(CASE WHEN place = n // 2 THEN stream_score END)"
        " OVER (PARTITION BY cluster, batch) AS median FROM placed)"
        " SELECT cluster, machine, make_timestamp(batch) AS window_start,"
        f" make_timestamp(batch + {interval_us}) AS window_end, reading, cpu, memory, score, stream_score,"
        f" batch + {interval_us} - 1 AS _time, event_time, ingest_time FROM compared"
        " WHERE stream_score > 2 * median - lowest_sum AND stream_score > lowest_sum + 2 * sqrt(2)"
        f" AND score > lowest_score + {SCORE_MARGIN!r}::DOUBLE"
    )


def build(parameters: MachineOutlier, rate_per_s: float) -> Job:
    machine, place = InTurn("machine", parameters.machines), 1
    cpu, memory = (Usage(name, machine, place, mean, parameters.overloaded) for name, mean in MEANS.items())
    cpu_field = with_malformed(cpu, parameters.malformed, None, math.nan, NO_SHARE)
    cluster = Cluster("cluster", machine, place, parameters.clusters)
    machines = StreamSpec("machines", (cluster, machine, cpu_field, memory), key="machine")
    interval_us, window = round(parameters.interval * US), parameters.anomaly_scorer_window_length
    alerts = (
        source("machines", machines.schema)
        .process(
            Scorer,
            keys="cluster",
            gives=SCORED,
            identity=("cluster", "machine", "batch", "reading"),
            parameters={"interval_us": interval_us},
            reach=parameters.interval,
            truth=scorer_truth(interval_us),
            name="scorer",
        )
        .process(
            AnomalyScorer,
            keys="machine",
            gives=SUMMED,
            parameters={"window": window},
            truth=sums_truth(window),
            name="anomaly_scorer",
        )
        .process(
            AlertTrigger,
            keys="cluster",
            gives=ALERTS,
            identity=("cluster", "machine", "window_end", "reading"),
            parameters={"interval_us": interval_us},
            reach=0,  # all rows of a batch have the time of its end
            truth=alerts_truth(interval_us),
            name="alert_trigger",
        )
    )
    sound = "cluster IS NOT NULL AND machine IS NOT NULL AND cpu BETWEEN 0 AND 1 AND memory BETWEEN 0 AND 1"
    return Job(alerts.sink("alerts"), (machines,), {"machines": unless(sound)})


WORKLOAD = Workload(
    name="machine_outlier",
    title="machine outlier",
    summary="machines whose CPU and memory use differs from the rest of their cluster, batch by batch",
    source="Bordin 2017, section 3.3.4",
    parameters=MachineOutlier,
    build=build,
    features=(Feature.FILTER, Feature.COUNT_WINDOW, Feature.WINDOW, Feature.PYTHON),
    prefix="mo",
)
