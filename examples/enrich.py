"""Enrichment, row by row: each purchase with its tax, expensive ones marked.

    streamgauge run examples/enrich.py --rate 100k

It keeps every row's lineage because it adds columns and drops none. Its reference is the same function, run by Spark in
batch mode.
"""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamgauge.jobs import Integer, Key, job, stream

PURCHASES = stream("purchases", Key("user_id", 1_000_000), Key("gem_pack_id", 1000, "normal"), Integer("price", 1, 100))


@job(PURCHASES, reach="0s")
def enrich(spark: SparkSession, inputs: dict[str, DataFrame]) -> DataFrame:
    """Each purchase with its tax, expensive ones marked."""
    return inputs["purchases"].withColumn("tax", F.col("price") * 0.19).withColumn("dear", F.col("price") > 90)
