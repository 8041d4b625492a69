"""The topics of a run: their names, and what the transport must know of a program of the user's own.

Each name contains the run id, so that other topics are not touched. A program may have names and formats of its own.
Times in its messages have units.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from streamgauge.core.clock import US


def topic_of(run: str, stream: str) -> str:
    """The topic of a stream's events."""
    return f"streamgauge-{run}-{stream}"


def results_of(run: str) -> str:
    """The topic of all results. It has one partition, so that a batch's results lie between its two marks."""
    return f"streamgauge-{run}.results"


def stream_of(topic: str, run: str) -> str:
    """The stream of an event topic."""
    return topic.removeprefix(topic_of(run, ""))


def group_of(run: str, own: str = "") -> str:
    """The consumer group of a program of the user's own: the one that it names, else one of the run."""
    return own or f"streamgauge-{run}"


def input_topics(run: str, own: Mapping[str, str]) -> dict[str, str]:
    """Stream of a program to its topic; `own` has the names that the program gives, empty where it gives none."""
    return {stream: name or topic_of(run, stream) for stream, name in own.items()}


def output_topics(run: str, own: Mapping[str, str]) -> dict[str, str]:
    """Sink of a program to its topic."""
    return {sink: name or results_of(run) + (f"-{sink}" if len(own) > 1 else "") for sink, name in own.items()}


def variables(kind: str, names: Iterable[str], of: Iterable[str] = ()) -> str:
    """The environment variables in which a program finds topics, for messages. `kind`: `input` or `output`.

    `of`: the names of all its inputs or outputs, if `names` are some of them.
    """
    named = list(names)
    if len(list(of) or named) == 1:
        return f"$STREAMGAUGE_{kind.upper()}"
    return ", ".join(f"$STREAMGAUGE_{kind}_{name}".upper() for name in named)


def scratch_purpose(run: str) -> str:
    """The purpose of the scratch folder that a program of the user's own gets, by which any process finds it."""
    return f"program-{run}"


UNITS = {"s": US, "ms": 1000, "us": 1}
"""Microseconds by the name of a unit."""
FAR_US = 86_400 * US
"""A time farther from now has another unit, or is of no result."""


def is_near(time_us: float, now_us: int) -> bool:
    """Whether a time can be that of a result, to a day."""
    return abs(time_us - now_us) <= FAR_US


def units_of(times: Collection[float], now_us: int) -> list[str]:
    """The names of the units in which all these numbers are near."""
    return [unit for unit, unit_us in UNITS.items() if all(is_near(time * unit_us, now_us) for time in times)]


def in_year(time_us: float) -> str:
    """`in 1970`, or that there is no such year."""
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_us)).strftime("in %Y")
    except OverflowError:
        return "out of range"


Kind = Literal["json", "csv", "text", "avro", "avro-confluent", "protobuf", "protobuf-confluent"]
PROTOBUF: tuple[Kind, ...] = ("protobuf", "protobuf-confluent")
WITH_SCHEMA: tuple[Kind, ...] = ("avro", "avro-confluent", *PROTOBUF)
FRAMED: tuple[Kind, ...] = ("avro-confluent", "protobuf-confluent")


@dataclass(frozen=True)
class MessageFormat:
    """How a message of a program carries fields.

    - `delimiter`: of CSV. `schema`: Avro's as JSON text, or the descriptor set of Protocol Buffers in base64.
    - `schema_id`: in the header of Confluent's framing. `message`: the name of one of Protocol Buffers.
    """

    kind: Kind = "json"
    delimiter: str = ","
    schema: str = ""
    schema_id: int = 1
    message: str = ""


RecordTimestamp = Literal["planned", "sent"]


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
    - `types`: field to SQL type. `required`: fields that every result has.
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
class ProgressSource:
    """What shows how far a program has read.

    - `by`: `group`, the committed offsets of its group; `results`, their event times; `spark_checkpoint`. Empty: its
      group, and the results of a program with one partition that never commits.
    - `checkpoints`: the folders of its queries' checkpoints, with placeholders.
    """

    by: Literal["", "group", "results", "spark_checkpoint"] = ""
    checkpoints: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProgramTopics:
    """All of a program's topics: `inputs` by stream, `outputs` by sink.

    - `attached`: whether it runs already on topics that exist.
    - `timeout_s`: how long it may take from the first event to its first result, beyond the reach of that.
    - `progress`: what shows how far it has read.
    """

    inputs: Mapping[str, InputTopic]
    outputs: Mapping[str, OutputTopic]
    attached: bool = False
    timeout_s: float = 30.0
    progress: ProgressSource = ProgressSource()

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
