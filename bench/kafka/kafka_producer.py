"""Events per second that one generator produces to a real broker, one message each, on one CPU.

The purchases of the windowed aggregation are generated, encoded and sent at full speed to one partition of our own
broker on another CPU. The time ends when the broker has stored the last message. Baseline: the same messages, generated
before. Each encoding is measured. Finally two such processes, each with its own partition, share all CPUs with the
broker.

Run alone: `python -m bench.kafka.kafka_producer`. The first run on a machine downloads the broker's jars.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from bench.support.row import Row, row
from bench.transports.transport import PURCHASES, START_US
from streamgauge.core.clock import US
from streamgauge.core.schema import EVENT_TIME
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.system.child_processes import wait_until
from streamgauge.system.cpu_pinning import cpus, pin_threads
from streamgauge.transports.kafka.broker import Broker
from streamgauge.transports.kafka.encodings.api import Encoding
from streamgauge.transports.kafka.encodings.choice import encoding
from streamgauge.transports.kafka.outlet import Messages, Producer
from streamgauge.transports.kafka.settings import ENCODINGS, KafkaSettings
from streamgauge.transports.kafka.topics import Topics

REPEATS = 5
RATE_PER_S, CHUNK_US, SECONDS = 1_000_000, 50_000, 4
COLUMNS = ("user_id", "gem_pack_id", "price", EVENT_TIME)
FLOOR_PER_S, GOAL_PER_S = 0.8e6, 1.2e6
STREAM, TOPIC = PURCHASES.name, "bench"
FLUSH_S = 60.0
PROCESSES = 2


class Share(NamedTuple):
    """The events that a process produced, with start and end by the machine's monotonic clock, in seconds."""

    events: int
    begin: float
    end: float


def chunks(plan: Plan) -> Iterator[pa.RecordBatch]:
    """All events of a plan, in the chunks of a generator."""
    for from_us in range(plan.start_us, plan.end_us, CHUNK_US):
        first, last = (plan.count_before(0, 0, when_us) for when_us in (from_us, from_us + CHUNK_US))
        yield plan.batch(0, 0, first, last, COLUMNS)


Sent = Callable[[pa.RecordBatch], pa.BinaryArray]
"""From a chunk to the messages to send."""


def known(plan: Plan, way: Encoding) -> tuple[Sent, Messages]:
    """Messages made before, in order, for any batch."""
    made = iter([way.messages(way.encode(batch)) for batch in chunks(plan)])
    return lambda batch: batch.column(0), lambda _: next(made)


def produced(broker: str, plan: Plan, sent: Sent, messages: Messages, topic: str = TOPIC) -> Share:
    """From generating the first event until the broker has stored the last."""
    topics = Topics(broker)
    topics.make([topic], 1)
    producer = Producer(KafkaSettings(broker), 0, {STREAM: (topic, messages)})
    begin = time.monotonic()
    events = 0
    for batch in chunks(plan):
        # At full speed without filling memory; an open loop would be judged by its schedule delay.
        while producer.pending > 20 * batch.num_rows:
            producer.check()
            time.sleep(0.001)
        events += producer.send({STREAM: sent(batch)})
    wait_until(lambda: not producer.pending, FLUSH_S, 0.001)
    producer.check()
    share = Share(events, begin, time.monotonic())
    assert topics.ends(topic, 1) == [events]
    topics.remove([topic])
    return share


def per_s(*shares: Share) -> float:
    """Events per second of all processes, from the first start to the last end."""
    took = max(share.end for share in shares) - min(share.begin for share in shares)
    return sum(share.events for share in shares) / took


def plan_of(seconds: int) -> Plan:
    plan = Plan((PURCHASES,), parse_profile("constant", RATE_PER_S, seconds), START_US, float(seconds), 1, 1)
    assert plan.end_us - plan.start_us == seconds * US
    return plan


def way_of(name: str) -> Encoding:
    types = {**PURCHASES.schema.types(), EVENT_TIME: "bigint"}
    return encoding(name, tuple((column, types[column]) for column in COLUMNS))


def measured(name: str, plan: Plan, broker: str) -> list[Row]:
    """Rows of one encoding: its rate, and its ratio to messages made before, in the same run."""
    way = way_of(name)
    made, before = [], []
    for _ in range(REPEATS):
        made.append(per_s(produced(broker, plan, way.encode, way.messages)))
        before.append(per_s(produced(broker, plan, *known(plan, way))))
    floor, goal = (FLOOR_PER_S, GOAL_PER_S) if name == "compact" else (None, None)
    note = f"{os.cpu_count()} CPUs: one for the generator, the others for the broker"
    what = f"kafka: events generated, encoded as {name}, and produced by one process on one CPU"
    ratios = [a / b for a, b in zip(made, before, strict=True)]
    return [
        row(what, made, "events/s", floor, goal, note=note),
        row(f"kafka: the same against {name} messages made before", ratios, "ratio"),
    ]


def together(broker: str) -> Row:
    """Row of several processes that start together."""
    context = get_context("spawn")
    topics = [f"{TOPIC}-{number}" for number in range(PROCESSES)]
    with ProcessPoolExecutor(PROCESSES, context, _meet, (context.Barrier(PROCESSES),)) as pool:
        made = [per_s(*pool.map(partial(_share, broker), topics)) for _ in range(REPEATS)]
    what = f"kafka: compact events, by {PROCESSES} processes that share all CPUs with the broker"
    return row(what, made, "events/s", FLOOR_PER_S, GOAL_PER_S, note=f"{os.cpu_count()} processors")


_meeting: list[Any] = []


def _meet(barrier: Any) -> None:
    """Initializer of each process: stores the barrier at which all of them meet."""
    _meeting.append(barrier)


def _share(broker: str, topic: str) -> Share:
    plan, way = plan_of(SECONDS), way_of("compact")
    _meeting[0].wait(FLUSH_S)
    return produced(broker, plan, way.encode, way.messages, topic)


def main() -> list[Row]:
    """Rows of every encoding, and of several processes."""
    plan = plan_of(SECONDS)
    ours, *others = cpus()
    with tempfile.TemporaryDirectory(prefix="streamgauge-bench-") as folder:
        at = Path(folder)
        with Broker(at / "broker", at / "broker.log", cpus=others or [ours]) as broker:
            with pin_threads([ours]):
                measured("compact", plan, broker.location)  # warms up the broker's JVM
                alone = [found for name in ENCODINGS for found in measured(name, plan, broker.location)]
            return [*alone, together(broker.location)]


if __name__ == "__main__":
    for each in main():
        print(each)
