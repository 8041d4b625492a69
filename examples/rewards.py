"""State per key: every tenth purchase of a user earns a reward.

    streamgauge run examples/rewards.py --rate 5k

A stateful processor counts each user's purchases. Which purchase is the tenth depends on their order, so the rows of a
batch are sorted. In memory, batches are in order of event time, because the driver cuts all partitions at the same
one. Over Kafka, `user_id` is the key of each message, so all rows of a user are in one partition, in order. A count
never ends, so the reach is unbounded: an event influences everything after it. Each user in a batch costs a call and
two trips to the state store, so this example has few users.
"""

from collections.abc import Iterator

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from streamgauge.jobs import Integer, Key, job, stream

PURCHASES = stream("purchases", Key("user_id", 500), Integer("price", 1, 100), key="user_id")
EVERY = 10

BY_ROW_NUMBER = f"""
    SELECT user_id, n, event_time, ingest_time, event_id
    FROM (SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY event_time, event_id) AS n FROM purchases)
    WHERE n % {EVERY} = 0
"""


class Counting(StatefulProcessor):
    """Counts a user's purchases, and returns every tenth."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._count = handle.getValueState("count", "n bigint")

    def handleInputRows(self, key: tuple, rows: Iterator[pd.DataFrame], timerValues: object) -> Iterator[pd.DataFrame]:
        bought = pd.concat(list(rows)).sort_values(["event_time", "event_id"], ignore_index=True)
        before = self._count.get()[0] if self._count.exists() else 0
        bought["n"] = before + 1 + bought.index
        self._count.update((before + len(bought),))
        rewarded = bought[bought["n"] % EVERY == 0]
        yield rewarded[["user_id", "n", "event_time", "ingest_time", "event_id"]]

    def close(self) -> None:
        pass


@job(PURCHASES, reach="unbounded", reference=BY_ROW_NUMBER)
def rewards(spark: SparkSession, inputs: dict[str, DataFrame]) -> DataFrame:
    """Every tenth purchase of a user earns a reward."""
    spark.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    return (
        inputs["purchases"]
        .groupBy("user_id")
        .transformWithStateInPandas(
            statefulProcessor=Counting(),
            outputStructType="user_id int, n bigint, event_time bigint, ingest_time bigint, event_id bigint",
            outputMode="Append",
            timeMode="None",
        )
    )
