"""When a program is ready, and what is said if it is not in time."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaException

from streamgauge.engines.external import readiness
from streamgauge.engines.external.readiness import LOG_BYTES, STARTED_S, Readiness, last_lines, output_end
from streamgauge.user_workloads.program_node import Launch, Ready

GROUP, TOPICS = "orders-job", ("ads", "views")


class Future:
    """An answer of the broker; an exception is raised."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def result(self, timeout_s: float) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


class Admin:
    """A broker's groups: the topics that each member of the program's is assigned, and its committed offsets."""

    def __init__(self, members: list[list[str]] | None = None, groups: tuple[str, ...] = (), offsets: Any = ()) -> None:
        self.members, self.groups, self.offsets = members, groups, offsets

    def describe_consumer_groups(self, groups: list[str], request_timeout: float) -> dict[str, Future]:
        assert groups == [GROUP]
        if self.members is None:
            return {GROUP: Future(KafkaException("no such group"))}
        members = [
            SimpleNamespace(assignment=SimpleNamespace(topic_partitions=[SimpleNamespace(topic=one) for one in topics]))
            for topics in self.members
        ]
        return {GROUP: Future(SimpleNamespace(members=members))}

    def list_consumer_groups(self, request_timeout: float) -> Future:
        return Future(SimpleNamespace(valid=[SimpleNamespace(group_id=name) for name in self.groups]))

    def list_consumer_group_offsets(self, request: list[Any], request_timeout: float) -> dict[str, Future]:
        (group,) = request
        assert (group.group_id, group.topic_partitions) == (GROUP, None)
        if isinstance(self.offsets, Exception):
            return {GROUP: Future(self.offsets)}
        parts = [SimpleNamespace(topic=topic, partition=0, offset=offset) for topic, offset in self.offsets]
        return {GROUP: Future(SimpleNamespace(topic_partitions=parts))}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The time, which tests set."""
    clock = SimpleNamespace(now_s=1000.0)
    monkeypatch.setattr(readiness, "time", SimpleNamespace(monotonic=lambda: clock.now_s))
    return clock


@pytest.fixture
def watched(tmp_path: Path, clock: SimpleNamespace) -> Callable[..., Readiness]:
    """The readiness of a program that begins now, with these answers of the broker."""

    def make(admin: Admin | None = None, **launch: Any) -> Readiness:
        inputs = tuple((topic, topic) for topic in TOPICS)
        one = Readiness(Launch(("program",), inputs=inputs, **launch), {}, GROUP, TOPICS, tmp_path / "program.log")
        one._admin = admin or Admin()
        return one

    return make


@pytest.mark.parametrize(
    ("members", "ready"),
    [
        (None, False),
        ([], False),
        ([["ads"]], False),
        ([["ads"], ["views"]], True),
        ([["views", "ads", "clicks"], []], True),
    ],
)
def test_a_consumer_is_ready_once_its_group_reads_every_input(
    watched: Callable[..., Readiness], members: list[list[str]] | None, ready: bool
) -> None:
    """By any of its members."""
    assert watched(Admin(members)).is_ready() is ready


@pytest.mark.parametrize(
    ("offsets", "ready"),
    [
        ((), False),
        ((("ads", -1001),), False),
        ((("clicks", 5),), False),
        ((("ads", -1001), ("views", 0)), True),
        (KafkaException("no such group"), False),
        (TimeoutError(), False),
    ],
)
def test_a_group_that_commits_is_ready_with_its_first_offset(
    watched: Callable[..., Readiness], offsets: Any, ready: bool
) -> None:
    """Of an input: offset 0 is one, and -1001 says that there is none."""
    assert watched(Admin(offsets=offsets), ready="committed").is_ready() is ready


def test_a_line_of_the_output_says_that_it_is_ready(watched: Callable[..., Readiness], tmp_path: Path) -> None:
    """Anchors are those of lines. Without output there is no line."""
    one = watched(ready="line", line="^up: [0-9]+$")
    assert not one.is_ready()
    (tmp_path / "program.log").write_text("starting up: 3 workers\n")
    assert not one.is_ready()
    (tmp_path / "program.log").write_text("starting\nup: 3\nreading\n")
    assert one.is_ready()


def test_a_program_without_a_sign_is_ready_after_a_second(
    watched: Callable[..., Readiness], clock: SimpleNamespace
) -> None:
    one = watched(ready="started")
    clock.now_s += STARTED_S / 2
    assert not one.is_ready()
    clock.now_s += STARTED_S / 2
    assert one.is_ready()


def test_the_timeout_is_that_of_its_file(watched: Callable[..., Readiness], clock: SimpleNamespace) -> None:
    one = watched(timeout_s=4.0)
    clock.now_s += 4.0
    assert not one.timed_out
    clock.now_s += 0.1
    assert one.timed_out


@pytest.mark.parametrize(
    ("admin", "words"),
    [
        (Admin([["ads"]]), "it reads ads"),
        (Admin([["views", "clicks"]]), "it reads clicks, views"),
        (Admin([[]]), "it has a member that is assigned no partition of any topic"),
        (Admin(None, ("other", GROUP, "another")), "the broker has the groups another, other"),
        (Admin([], tuple("gfedcba")), "the broker has the groups a, b, c, d, e."),
        (Admin(None, (GROUP,)), "the broker has no consumer group"),
    ],
)
def test_a_consumer_that_does_not_read_its_inputs(watched: Callable[..., Readiness], admin: Admin, words: str) -> None:
    """The message has what the broker knows of its group, or the other groups, and the ways out."""
    message = watched(admin, timeout_s=4.0).timeout_message()
    assert message.startswith(f"within 4 s group {GROUP} did not read ads, views; {words}")
    assert "the topics in $STREAMGAUGE_INPUT_ADS, $STREAMGAUGE_INPUT_VIEWS as group $STREAMGAUGE_GROUP" in message
    assert 'needs ready = "started" or ready_line' in message


@pytest.mark.parametrize("ready", ["consumer", "committed"])
def test_a_program_that_ran_already_has_no_variables(watched: Callable[..., Readiness], ready: Ready) -> None:
    """Its file says where it reads."""
    one = watched(ready=ready)
    one._launch = replace(one._launch, command=())
    message = one.timeout_message()
    assert "correct group, topic or brokers in its file" in message
    assert "$" not in message


def test_a_group_that_commits_nothing(watched: Callable[..., Readiness]) -> None:
    message = watched(ready="committed", timeout_s=2.5).timeout_message()
    assert message.startswith(f"within 2.5 s group {GROUP} committed no offset. Commit as this group")


def test_a_line_that_does_not_come(watched: Callable[..., Readiness]) -> None:
    message = watched(ready="line", line="^up$", timeout_s=30.0).timeout_message()
    advice = "Raise timeout in its file if it was still starting, else correct ready_line"
    assert message == f"within 30 s no line of its output matched '^up$'. {advice}"


def test_only_the_end_of_a_long_output_is_read(tmp_path: Path) -> None:
    """Its last lines go into messages, without empty ones."""
    log = tmp_path / "program.log"
    assert (output_end(log), last_lines(log)) == ("", "")
    log.write_text("first\n" + "x" * LOG_BYTES + "\n\na\n b\n\nc \nd\n")
    assert "first" not in output_end(log)
    assert len(output_end(log)) == LOG_BYTES
    assert last_lines(log) == "b | c | d"
    log.write_bytes(b"caf\xe9\n")
    assert last_lines(log) == "caf\N{REPLACEMENT CHARACTER}"
