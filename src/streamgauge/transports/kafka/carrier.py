"""What stands between the two ends for the time of a rig: a broker of our own, with the run's topics."""

from __future__ import annotations

from collections.abc import Sequence

from streamgauge.transports.kafka.broker import Broker
from streamgauge.transports.kafka.names import results_of, topic_of
from streamgauge.transports.kafka.topics import Topics
from streamgauge.transports.seam import Asked, Listen


class KafkaCarrier:
    """Fills the seam's `Carrier`: a broker with a topic for each stream, a partition in it for each generator, and one
    for results. At its end the broker is gone, and the topics with it.
    """

    def __init__(self, asked: Asked) -> None:
        self._broker = Broker(asked.folder, asked.log, asked.host, asked.cpus)
        try:
            topics = Topics(self._broker.location)
            topics.make([topic_of(asked.run, stream) for stream in asked.streams], asked.partitions)
            topics.make([results_of(asked.run)], 1)
        except BaseException:
            self._broker.stop()
            raise
        self._topics, self._run = topics, asked.run
        host, _, port = self._broker.location.rpartition(":")
        self.at = Listen(host, int(port), asked.run)

    @property
    def alive(self) -> bool:
        return self._broker.alive

    def pids(self) -> list[int]:
        return self._broker.pids()

    def appended_us(self, stream: str, partition: int, offsets: Sequence[int]) -> list[int]:
        return self._topics.appended_us(topic_of(self._run, stream), partition, offsets)

    def close(self) -> None:
        self._broker.stop()
