"""Windowed aggregation: the revenue of each gem pack in windows of 10 s, every 5 s.

    streamgauge run examples/revenue.py --rate 100k

Over Kafka (`--transport kafka --partitions 4`) a batch reads partitions up to different times. The watermark stays 1 s
behind, so that Spark drops no row of a partition that is read a little later. A group has no event time of its own, so
the two lines with `F.max` carry it; over Kafka `ingest_time` is null. The reference is the same query in DuckDB's SQL.
It shares nothing with Spark, so the verification is independent.
"""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamgauge.jobs import Integer, Key, job, stream

PACK = Key("gem_pack_id", 1000, "normal")
PURCHASES = stream("purchases", Key("user_id", 1_000_000), PACK, Integer("price", 1, 100), key="gem_pack_id")

# An event is in the window that starts at the last multiple of 5 s, and in the one before.
BY_WINDOW = """
    SELECT gem_pack_id, make_timestamp(start) AS window_start, make_timestamp(start + 10_000_000) AS window_end,
           sum(price) AS revenue, max(event_time) AS event_time, max(ingest_time) AS ingest_time
    FROM (SELECT *, event_time // 5_000_000 * 5_000_000 - back AS start
          FROM purchases, (VALUES (0), (5_000_000)) AS windows(back))
    GROUP BY gem_pack_id, start
"""


@job(PURCHASES, reach="16s", keys="gem_pack_id", reference=BY_WINDOW)
def revenue(spark: SparkSession, inputs: dict[str, DataFrame]) -> DataFrame:
    """The revenue of each gem pack in windows of 10 s, every 5 s."""
    purchases = inputs["purchases"].withWatermark("timestamp", "1 second")
    return purchases.groupBy(F.window("timestamp", "10 seconds", "5 seconds"), "gem_pack_id").agg(
        F.sum("price").alias("revenue"),
        F.max("event_time").alias("event_time"),
        F.max("ingest_time").alias("ingest_time"),
    )
