"""The revenue of each gem pack in windows of 2 s.

It knows nothing of streamgauge but what is in its environment.
"""

import os

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def main() -> None:
    cores = os.environ["CORES"]
    settings = {"spark.jars": os.environ["JARS"], "spark.sql.shuffle.partitions": cores}
    spark = SparkSession.builder.master(f"local[{cores}]").config(map=settings).getOrCreate()
    source = spark.readStream.format("kafka").options(**{
        "kafka.bootstrap.servers": os.environ["STREAMGAUGE_BROKERS"],
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
        "kafka.bootstrap.servers": os.environ["STREAMGAUGE_BROKERS"],
        "topic": os.environ["STREAMGAUGE_OUTPUT"],
        "checkpointLocation": f"{os.environ['STREAMGAUGE_SCRATCH']}/checkpoint",
    }).start()  # fmt: skip
    print("query started", flush=True)
    query.awaitTermination()


if __name__ == "__main__":
    main()
