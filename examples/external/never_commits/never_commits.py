"""Passes on the purchases above 90, and never commits an offset."""

import json
import os

from confluent_kafka import Consumer, Producer


def main() -> None:
    brokers, results = os.environ["STREAMGAUGE_BROKERS"], os.environ["STREAMGAUGE_OUTPUT"]
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 5})
    settings = {"bootstrap.servers": brokers, "group.id": os.environ["STREAMGAUGE_GROUP"]}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe([os.environ["STREAMGAUGE_INPUT"]])
    while True:
        for message in consumer.consume(1000, timeout=0.05):
            if json.loads(message.value())["price"] > 90:
                producer.produce(results, message.value(), message.key())
        producer.poll(0)


if __name__ == "__main__":
    main()
