"""Passes on the purchases above 90. It knows nothing of streamgauge but the addresses in its environment."""

import json
import os
import signal
import sys
from types import FrameType

from confluent_kafka import Consumer, Producer

BATCH = 1000
COMMIT_EVERY_MS = 100


def stop(_: int, __: FrameType | None) -> None:
    sys.exit(0)


def main() -> None:
    signal.signal(signal.SIGTERM, stop)
    brokers, results = os.environ["STREAMGAUGE_BROKERS"], os.environ["STREAMGAUGE_OUTPUT"]
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 5})
    consumer = Consumer({
        "bootstrap.servers": brokers,
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
