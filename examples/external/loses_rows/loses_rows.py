"""Passes on the purchases above 90, and loses one in ten thousand of them."""

import itertools
import json
import os

from confluent_kafka import Consumer, Producer

LOST_OF = 10_000


def main() -> None:
    brokers, results = os.environ["STREAMGAUGE_BROKERS"], os.environ["STREAMGAUGE_OUTPUT"]
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 5})
    settings = {"bootstrap.servers": brokers, "group.id": os.environ["STREAMGAUGE_GROUP"]}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest", "auto.commit.interval.ms": 500})
    consumer.subscribe([os.environ["STREAMGAUGE_INPUT"]])
    numbers = itertools.count(1)
    while True:
        for message in consumer.consume(1000, timeout=0.05):
            dear = json.loads(message.value())["price"] > 90
            if dear and next(numbers) % LOST_OF:
                producer.produce(results, message.value(), message.key())
        producer.poll(0)


if __name__ == "__main__":
    main()
