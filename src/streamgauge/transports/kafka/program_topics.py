"""What the transport must know of a program of the user's own: its topics, the formats of their messages, its group.

Processes of the driver get it as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from streamgauge.transports.kafka.topics import input_topics, output_topics

Kind = Literal["json", "csv", "text", "avro", "avro-confluent"]
AVRO: tuple[Kind, ...] = ("avro", "avro-confluent")
RecordTimestamp = Literal["planned", "sent"]


@dataclass(frozen=True)
class MessageFormat:
    """How a message carries fields.

    - `delimiter`: of CSV. `schema`: Avro's, as JSON text. `schema_id`: in the header of Confluent's framing.
    """

    kind: Kind = "json"
    delimiter: str = ","
    schema: str = ""
    schema_id: int = 1


@dataclass(frozen=True)
class InputTopic:
    """An input.

    - `topic`: empty for one of the run's own name.
    - `record_timestamp`: the time of its records: the event time of the plan, or that of sending.
    """

    topic: str = ""
    format: MessageFormat = field(default_factory=MessageFormat)
    record_timestamp: RecordTimestamp = "planned"


@dataclass(frozen=True)
class OutputTopic:
    """Results.

    - `topic`: empty for one of the run's own name.
    - `types`: field to Spark SQL type. `required`: fields that every result has.
    - `time`, `window_end`: the fields with its event time and the end of its window; empty without one.
    - `unit_us`: microseconds of the unit in which these fields, and all timestamps, are numbers.
    - `reach_s`: how long one event can influence its results.
    """

    types: Mapping[str, str]
    required: tuple[str, ...] = ()
    time: str = ""
    window_end: str = ""
    unit_us: int = 1000
    topic: str = ""
    format: MessageFormat = field(default_factory=MessageFormat)
    reach_s: float = 0.0


@dataclass(frozen=True)
class ProgramTopics:
    """All of a program's topics: `inputs` by stream, `outputs` by sink.

    - `group`: its consumer group; empty for one of the run's own.
    - `attached`: whether it runs already on topics that exist.
    - `timeout_s`: how long it may take from the first event to its first result, beyond the reach of that.
    - `starts`: (topic, partition, offset) before the first event; the broker's side adds them.
    """

    inputs: Mapping[str, InputTopic]
    outputs: Mapping[str, OutputTopic]
    group: str = ""
    attached: bool = False
    timeout_s: float = 30.0
    starts: tuple[tuple[str, int, int], ...] = ()

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> ProgramTopics:
        """The reverse of `dataclasses.asdict`, by way of JSON."""
        inputs = {name: InputTopic(**_with_format(each)) for name, each in plain["inputs"].items()}
        outputs = {name: OutputTopic(**_with_format(each)) for name, each in plain["outputs"].items()}
        starts = tuple((topic, partition, offset) for topic, partition, offset in plain["starts"])
        return cls(**{**plain, "inputs": inputs, "outputs": outputs, "starts": starts})

    def starting_at(self, starts: Iterable[tuple[str, int, int]]) -> ProgramTopics:
        return replace(self, starts=tuple(starts))

    @property
    def first_result_s(self) -> float:
        """How long it may take from the first event to the first result of any output."""
        return self.timeout_s + min(each.reach_s for each in self.outputs.values())

    @property
    def planned(self) -> frozenset[str]:
        """Streams whose records carry their planned time."""
        return frozenset(name for name, each in self.inputs.items() if each.record_timestamp == "planned")

    def input_topics(self, run: str) -> dict[str, str]:
        """Stream to topic."""
        return input_topics(run, {name: each.topic for name, each in self.inputs.items()})

    def output_topics(self, run: str) -> dict[str, str]:
        """Sink to topic."""
        return output_topics(run, {name: each.topic for name, each in self.outputs.items()})


def _with_format(plain: Mapping[str, Any]) -> dict[str, Any]:
    named = {name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()}
    return {**named, "format": MessageFormat(**plain["format"])}
