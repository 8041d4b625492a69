"""What Spark makes of a message is what was sent, whatever the encoding."""

from __future__ import annotations

import math
from datetime import UTC
from typing import Any

import pytest

from streamgauge.core.errors import MachineError
from streamgauge.engines.spark.session.environment import AVRO
from streamgauge.system.java import resolved
from streamgauge.transports.kafka.encodings.choice import columns_of, encoding
from streamgauge.transports.kafka.settings import ENCODINGS
from tests.unit.transports.kafka.helpers_rows import KINDS, ROWS, batch_of


def test_columns_are_known_by_arrow() -> None:
    """Their types, by Spark's names."""
    assert columns_of(batch_of(ROWS, KINDS).schema) == tuple(KINDS.items())


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
        way = encoding(name, tuple(KINDS.items()))
        messages = way.messages(way.encode(batch_of([*ROWS, {**ROWS[0], "d": math.nan}], KINDS)))
        opened = spark.createDataFrame([(message,) for message in messages], "value binary")
        opened = opened.selectExpr(f"{way.opened('value')} AS event")
        told = opened.selectExpr(*[f"{text} AS {column}" for column, text in way.expressions("event").items()])
        assert dict(told.dtypes) == KINDS
        found = told.toArrow().to_pylist()
        *plain, odd = [{**row, "t": row["t"] and row["t"].astimezone(UTC)} for row in found]
        assert plain == ROWS, name
        assert math.copysign(1, plain[-1]["d"]) == -1, name
        assert math.isnan(odd["d"])
