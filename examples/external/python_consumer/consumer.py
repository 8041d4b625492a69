"""Passes on the purchases above 90. It knows nothing of streamgauge but the addresses in its environment."""

import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType

from confluent_kafka import Consumer, Producer

BATCH = 1000
COMMIT_EVERY_MS = 100


def stop(_: int, __: FrameType | None) -> None:
    sys.exit(0)


def main() -> None:
    signal.signal(signal.SIGTERM, stop)
    brokers, results = {"bootstrap.servers": os.environ["STREAMGAUGE_BROKERS"]}, os.environ["STREAMGAUGE_OUTPUT"]
    if login := os.environ.get("STREAMGAUGE_CLIENT"):
        lines = [line.strip() for line in Path(login).read_text().splitlines()]
        brokers |= dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    producer = Producer({**brokers, "linger.ms": 5})
    consumer = Consumer({
        **brokers,
        "group.id": os.environ["STREAMGAUGE_GROUP"],
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": COMMIT_EVERY_MS,
        "fetch.wait.max.ms": 10,
    })  # fmt: skip
    consumer.subscribe([os.environ["STREAMGAUGE_INPUT"]])
    while True:
        for message in consumer.consume(BATCH, timeout=0.05):
            purchase = json.loads(message.value())
            if purchase["price"] > 90:
                producer.produce(results, message.value(), message.key())
        producer.poll(0)


if __name__ == "__main__":
    main()
