"""How far each batch reads streams in memory; without Spark, from real queues."""

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from streamgauge.core.clock import US
from streamgauge.engines.spark.io.flight_source import POSITIONS, Range, Reader
from streamgauge.transports.memory.endpoints import FlightOutlet
from streamgauge.transports.spi import EndpointConfig, OutletConfig

TOKEN, CHUNK_US, ROWS, CHUNKS = "a-token", 1000, 10, 8
SCHEMA = pa.schema([("n", pa.int64())])


@pytest.fixture
def outlets() -> Iterator[list[FlightOutlet]]:
    """Two generators' outlets, with all their chunks."""
    config = OutletConfig({"rows": SCHEMA}, 3600 * US, 2**30, lambda: 123_456)
    both = [FlightOutlet(EndpointConfig("127.0.0.1", 0, TOKEN), config) for _ in range(2)]
    for one in both:
        for index in range(CHUNKS):
            batch = pa.record_batch([np.arange(ROWS) + index * ROWS], schema=SCHEMA)
            one.offer(index * CHUNK_US, (index + 1) * CHUNK_US, {"rows": batch}, 0)
    yield both
    for one in both:
        one.shutdown()


@pytest.mark.parametrize("frontier", ["common", "free"])
@pytest.mark.parametrize(("events_max", "chunks"), [
    (60, [3, 3, 2]), (75, [3, 3, 2]), (1, [1] * CHUNKS), (None, [CHUNKS]),
])  # fmt: skip
def test_a_batch_has_at_most_so_many_events(
    outlets: list[FlightOutlet], frontier: str, events_max: int | None, chunks: list[int]
) -> None:
    """Of both generators together, in whole chunks and at least one of each, until all are read."""
    limit = {} if events_max is None else {"events_max": str(events_max)}
    reader = Reader({
        "stream": "rows", "token": TOKEN, "query": "q0", "reader": "0", "columns": '["n"]', "frontier": frontier,
        "locations": json.dumps([one.location for one in outlets]), **limit,
    })  # fmt: skip
    assert reader.getDefaultReadLimit() == (ReadAllAvailable() if events_max is None else ReadMaxRows(events_max))
    position, batches = reader.initialOffset(), []
    while position[POSITIONS] != [CHUNKS * CHUNK_US] * 2:
        end = reader.latestOffset(position, reader.getDefaultReadLimit())
        ranges = reader.partitions(position, end)
        batches.append([(one.to_us - one.from_us) // CHUNK_US for one in ranges if isinstance(one, Range)])
        position = end
    assert batches == [[count] * 2 for count in chunks]


def test_what_spark_asks_for_is_read(outlets: list[FlightOutlet]) -> None:
    """All that is there, whatever the option says."""
    reader = Reader({
        "stream": "rows", "token": TOKEN, "query": "q0", "reader": "0", "columns": '["n"]', "frontier": "common",
        "locations": json.dumps([one.location for one in outlets]), "events_max": "1",
    })  # fmt: skip
    assert reader.latestOffset(reader.initialOffset(), ReadAllAvailable()) == {POSITIONS: [CHUNKS * CHUNK_US] * 2}
