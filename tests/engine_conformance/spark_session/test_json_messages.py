"""JSON messages on Spark: parsed in blocks by Arrow they give the rows of `from_json`, over everything odd."""

import random
from typing import Any

import pytest

from streamgauge.core.units import backquote
from streamgauge.engines.spark.io.json_blocks import ROWS_LEAST
from streamgauge.engines.spark.io.kafka import parsed_in_blocks
from streamgauge.transports.kafka.encodings.json import Json
from tests.unit.engines.spark.io.helpers_json_messages import CERTAIN, KINDS, UNCERTAIN

COLUMNS = tuple({**KINDS, "at": "timestamp"}.items())
LAYOUT = Json(COLUMNS)
TEXTS = {backquote(name): text for name, text in LAYOUT.expressions("event").items()}
PLAIN = [b'{"n":%d,"at":%d,"d":0.1}' % (number, number * 1000) for number in range(10 * ROWS_LEAST)]


@pytest.mark.spark
def test_blocks_give_what_from_json_gives(spark: Any) -> None:
    """Each message alone in a batch, and all of them among others. As text, so that -0.0 is not 0.0."""
    odd = [*CERTAIN, *UNCERTAIN]
    mixed = [*odd, *PLAIN]
    random.Random(1).shuffle(mixed)
    assert differing(spark, odd, rows_a_batch=1) == []
    assert differing(spark, mixed, rows_a_batch=10_000) == []
    assert differing(spark, PLAIN[: ROWS_LEAST + 1], rows_a_batch=7) == []


def differing(spark: Any, messages: list[bytes | None], rows_a_batch: int) -> list[tuple[Any, str, str]]:
    """(message, row by `from_json`, row by blocks) where they differ; `at` shows that times are read."""
    limit = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(limit)
    spark.conf.set(limit, str(rows_a_batch))
    try:
        frame = spark.createDataFrame([(message,) for message in messages], "value binary").coalesce(1)
        by_spark = frame.selectExpr(f"{LAYOUT.opened('value')} AS event")
        rows = [
            opened.selectExpr(*(f"{text} AS {name}" for name, text in TEXTS.items())).collect()
            for opened in (by_spark, parsed_in_blocks(frame, LAYOUT, COLUMNS))
        ]
    finally:
        spark.conf.set(limit, before)
    assert len(rows[0]) == len(rows[1]) == len(messages)
    triples = zip(messages, map(str, rows[0]), map(str, rows[1]), strict=True)
    return [triple for triple in triples if triple[1] != triple[2]]
