"""CPU time by which Spark reads JSON messages: in blocks by Arrow (`json_parser=arrow`), against `from_json`.

Spark on one core reads two million messages of purchases from a file, parses them and sums prices by window and pack,
without streamgauge and without a broker. CPU time is that of the JVM and its Python workers. Both sides are measured in
turn, in one session, after a round that is not counted. Both must give the same sums. Run alone:
`python -m bench.kafka.json_parser`.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
from pyarrow import parquet

from bench.support.row import Row, row
from streamgauge.engines.spark.options import JVM_OPTIONS, TUNED_SETTINGS
from streamgauge.engines.spark.session.session import open_session
from streamgauge.transports.kafka.encodings.json import Json

REPEATS = 4
"""Even, so that each side is first equally often."""
MESSAGES = 2_000_000
COLUMNS = tuple((name, "bigint") for name in ("user_id", "gem_pack_id", "price", "event_time", "event_id"))
LAYOUT = Json(COLUMNS)


def write_messages(path: Path) -> None:
    """A file with purchases of twenty seconds, one in ten microseconds."""
    random, numbers = np.random.default_rng(1), np.arange(MESSAGES)
    values = [
        random.integers(0, 100_000, MESSAGES),
        random.integers(0, 1000, MESSAGES),
        random.integers(1, 100, MESSAGES),
        1_764_000_000_000_000 + 10 * numbers,
        numbers,
    ]
    events = pa.RecordBatch.from_arrays([pa.array(each) for each in values], [name for name, _ in COLUMNS])
    messages = LAYOUT.encode(events).cast(pa.binary())
    parquet.write_table(pa.table({"value": messages}), path, compression="none", use_dictionary=False)


def by_window(opened: Any) -> Any:
    """The sums of a frame with parsed messages in `event`."""
    from pyspark.sql import functions as F

    texts = LAYOUT.expressions("event")
    events = opened.select(*[F.expr(text).alias(name) for name, text in texts.items()])
    window = F.expr("event_time div 4000000").alias("window")
    return events.groupBy(window, "gem_pack_id").agg(F.sum("price").alias("price"), F.max("event_id").alias("last"))


def cpu_s() -> float:
    """CPU time of all processes that this one started; ended ones count for their parent."""
    used = 0.0
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            used += sum(process.cpu_times()[:4])
    return used


def us_a_message(frame: Any) -> float:
    before = cpu_s()
    frame.write.format("noop").mode("overwrite").save()
    return (cpu_s() - before) / MESSAGES * 1e6


def measured(spark: Any, path: Path) -> list[tuple[float, float]]:
    """(by Arrow, by `from_json`) of each repeat, microseconds of CPU time per message."""
    from streamgauge.engines.spark.io.kafka import parsed_in_blocks

    messages = spark.read.parquet(str(path))
    frames = [by_window(parsed_in_blocks(messages, LAYOUT, COLUMNS))]
    frames.append(by_window(messages.selectExpr(f"{LAYOUT.opened('value')} AS event")))
    arrow, from_json = (sorted(map(tuple, frame.collect())) for frame in frames)
    assert arrow == from_json, "Arrow and from_json gave different sums"
    pairs = []
    for repeat in range(REPEATS):
        used = {number: us_a_message(frames[number]) for number in ((0, 1) if repeat % 2 else (1, 0))}
        pairs.append((used[0], used[1]))
    return pairs


def main() -> list[Row]:
    """Measures both in turn."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "messages.parquet"
        write_messages(path)
        conf = {**TUNED_SETTINGS, "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
        conf |= {"spark.sql.shuffle.partitions": "1", "spark.driver.memory": "4g"}
        spark = open_session("local[1]", conf, Path(folder), JVM_OPTIONS["late"])
        try:
            pairs = measured(spark, path)
        finally:
            spark.stop()
    what = "kafka: JSON messages parsed"
    return [
        row(f"{what} by from_json, CPU time of a message", [spark for _, spark in pairs], "us"),
        row(f"{what} in blocks by Arrow, CPU time of a message", [arrow for arrow, _ in pairs], "us"),
        row(f"{what} in blocks, CPU time / by from_json", [arrow / spark for arrow, spark in pairs], "times", 0.8, 0.6),
    ]


if __name__ == "__main__":
    for each in main():
        print(each)
