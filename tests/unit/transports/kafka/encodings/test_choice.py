"""What Spark makes of a message is what was sent, whatever the encoding."""

import math
from datetime import UTC
from typing import Any

import pytest

from streamgauge.core.errors import MachineError
from streamgauge.engines.spark.session.environment import AVRO
from streamgauge.system.java import resolved
from streamgauge.transports.kafka.encodings.choice import encoding
from streamgauge.transports.kafka.settings import ENCODINGS
from tests.unit.transports.kafka.helpers_rows import KINDS, ROWS, batch_of


@pytest.mark.spark
def test_spark_makes_the_same_of_it(spark: Any) -> None:
    """NaN included, which is no equal of itself."""
    try:
        jars = [str(path) for path in resolved(AVRO)]
    except MachineError as error:
        pytest.skip(str(error))
    for jar in jars:  # a JVM of an earlier test takes no jars at its start
        spark.sql(f"ADD JAR '{jar}'")
    for name in ENCODINGS:
        by = encoding(name, tuple(KINDS.items()))
        messages = by.messages(by.encode(batch_of([*ROWS, {**ROWS[0], "d": math.nan}], KINDS)))
        opened = spark.createDataFrame([(message,) for message in messages], "value binary")
        opened = opened.selectExpr(f"{by.opened('value')} AS event")
        events = opened.selectExpr(*[f"{text} AS {column}" for column, text in by.expressions("event").items()])
        assert dict(events.dtypes) == KINDS
        *plain, odd = [{**row, "t": row["t"] and row["t"].astimezone(UTC)} for row in events.toArrow().to_pylist()]
        assert plain == ROWS, name
        assert math.copysign(1, plain[-1]["d"]) == -1, name
        assert math.isnan(odd["d"])
