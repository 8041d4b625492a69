"""How many events a second one generator produces to a real broker, one message each, on one processor.

The windowed aggregation's purchases are made, encoded and sent as fast as it goes, to one partition of a broker of our
own on another processor; the time ends when the broker has kept the last one. Baseline: the same messages, made before.
Run alone: `python -m bench.kafka_producer`. The first run on a machine resolves the broker's jars.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from bench._row import Row, row
from bench.transport import PURCHASES, START_US
from streamgauge.events import EVENT_TIME, US
from streamgauge.load.plan import Plan
from streamgauge.load.rates import parse_profile
from streamgauge.system.machine import cpus, only_on
from streamgauge.transports.kafka.broker import Broker
from streamgauge.transports.kafka.compact import Compact
from streamgauge.transports.kafka.producer import Encoding, Producer
from streamgauge.transports.kafka.topics import Topics

REPEATS = 5
RATE_PER_S, CHUNK_US, SECONDS = 1_000_000, 50_000, 4
COLUMNS = ("user_id", "gem_pack_id", "price", EVENT_TIME)
FLOOR_PER_S, GOAL_PER_S = 0.8e6, 1.2e6
STREAM = PURCHASES.name
FLUSH_S = 60.0


def chunks(plan: Plan) -> Iterator[pa.RecordBatch]:
    """All of a plan's events, in chunks as a generator offers them."""
    for from_us in range(plan.start_us, plan.end_us, CHUNK_US):
        first, last = (plan.count_before(0, 0, when_us) for when_us in (from_us, from_us + CHUNK_US))
        yield plan.batch(0, 0, first, last, COLUMNS)


class Ready:
    """Messages that were made before, in their order, whatever the batch."""

    def __init__(self, plan: Plan, encoding: Encoding) -> None:
        self._made = [encoding.messages(encoding.encode(batch)) for batch in chunks(plan)]
        self._next = iter(self._made)

    def encode(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        return batch.column(0)

    def messages(self, encoded: pa.BinaryArray) -> list[bytes]:
        return next(self._next)


def produced_per_s(
    broker: str, number: int, encoding: Encoding, batches: Callable[[], Iterator[pa.RecordBatch]]
) -> float:
    """Events a second, from the first one's making until the broker has kept the last."""
    topic = f"bench-{number}"
    topics = Topics(broker)
    topics.make([topic], 1)
    producer = Producer(broker, 0, {STREAM: (topic, encoding)})
    begin = time.perf_counter()
    events = 0
    for batch in batches():
        # As fast as it goes, without filling memory: an open loop would be judged by its slip.
        while producer.waiting > 20 * batch.num_rows:
            time.sleep(0.001)
        events += producer.send({STREAM: encoding.encode(batch)})
    producer.flush(FLUSH_S)
    took = time.perf_counter() - begin
    assert topics.ends(topic, 1) == [events]
    topics.remove([topic])
    return events / took


def main() -> list[Row]:
    """Rows of both ways, and their ratio in the same run."""
    plan = Plan((PURCHASES,), parse_profile("constant", RATE_PER_S, SECONDS), START_US, float(SECONDS), 1, 1)
    assert plan.end_us - plan.start_us == SECONDS * US
    types = {**PURCHASES.schema.types(), EVENT_TIME: "bigint"}
    encoding = Compact(tuple((name, types[name]) for name in COLUMNS))
    ours, *others = cpus()
    made, ready = [], []
    with tempfile.TemporaryDirectory(prefix="streamgauge-bench-") as folder:
        at = Path(folder)
        with Broker(at / "broker", at / "broker.log", cpus=others or [ours]) as broker, only_on([ours]):
            known = list(chunks(plan))
            produced_per_s(broker.location, 0, encoding, lambda: chunks(plan))  # the broker's JVM compiles
            for repeat in range(REPEATS):
                made.append(produced_per_s(broker.location, 2 * repeat + 1, encoding, lambda: chunks(plan)))
                before = Ready(plan, encoding)
                ready.append(produced_per_s(broker.location, 2 * repeat + 2, before, lambda: iter(known)))
    name = "kafka: events made, encoded and produced by one process on one processor"
    note = f"{os.cpu_count()} processors: one of the generator, the others of the broker"
    return [
        row(name, made, "events/s", FLOOR_PER_S, GOAL_PER_S, note=note),
        row("kafka: the same against messages made before", [a / b for a, b in zip(made, ready, strict=True)], "ratio"),
    ]


if __name__ == "__main__":
    for each in main():
        print(each)
