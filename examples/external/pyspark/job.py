"""The revenue of each gem pack in windows of 2 s.

It knows nothing of streamgauge but what is in its environment.
"""

import os
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def brokers() -> dict[str, str]:
    """The options of Spark's source and sink by which they reach the brokers, and log in if a file says how."""
    found = {"kafka.bootstrap.servers": os.environ["STREAMGAUGE_BROKERS"]}
    if login := os.environ.get("STREAMGAUGE_CLIENT_JAVA"):
        lines = (line.split("=", 1) for line in Path(login).read_text().splitlines())
        found |= {f"kafka.{name}": value.replace("\\\\", "\\") for name, value in lines}
    return found


def main() -> None:
    cores = os.environ["CORES"]
    settings = {"spark.jars": os.environ["JARS"], "spark.sql.shuffle.partitions": cores}
    spark = SparkSession.builder.master(f"local[{cores}]").config(map=settings).getOrCreate()
    source = spark.readStream.format("kafka").options(**{
        **brokers(),
        "subscribe": os.environ["STREAMGAUGE_INPUT"],
        "startingOffsets": "earliest",
    })  # fmt: skip
    message = F.from_json(F.col("value").cast("string"), "gem_pack_id INT, price INT, ts BIGINT")
    purchases = source.load().select(message.alias("one")).select("one.*")
    timed = purchases.withColumn("at", F.timestamp_millis("ts")).withWatermark("at", "1 second")
    revenue = timed.groupBy("gem_pack_id", F.window("at", "2 seconds")).agg(F.sum("price").alias("revenue"))
    closed = F.unix_millis("window.end").alias("closed")
    results = revenue.select(F.to_json(F.struct("gem_pack_id", "revenue", closed)).alias("value"))
    query = results.writeStream.format("kafka").options(**{
        **brokers(),
        "topic": os.environ["STREAMGAUGE_OUTPUT"],
        "checkpointLocation": f"{os.environ['STREAMGAUGE_SCRATCH']}/checkpoint",
    }).start()  # fmt: skip
    print("query started", flush=True)
    query.awaitTermination()


if __name__ == "__main__":
    main()
