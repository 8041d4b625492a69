"""When a program of the user's own is ready, and the message if it is not in time."""

import re
import time
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from streamgauge.core.errors import DriverError
from streamgauge.transports.kafka.topics import committed_of
from streamgauge.transports.topic_names import variables
from streamgauge.user_workloads.program_node import Launch

POLL_S = 0.2
STARTED_S = 1.0
"""A program without a sign of readiness must run for so long."""
REQUEST_S = 5.0
LOG_BYTES = 65_536
_OF_ATTACHED = "Start the program before the run, or correct group, topic or brokers in its file"


class Readiness:
    """Watches one program from now on. `client`: the settings of a client of its brokers, by librdkafka's names."""

    def __init__(
        self, launch: Launch, client: Mapping[str, str], group: str, topics: Collection[str], log: Path
    ) -> None:
        self._launch, self._group, self._topics, self._log = launch, group, set(topics), log
        self._settings, self._since_s = dict(client), time.monotonic()

    @property
    def timed_out(self) -> bool:
        return time.monotonic() - self._since_s > self._launch.timeout_s

    def is_ready(self) -> bool:
        """Whether the program is ready now."""
        if self._launch.ready == "started":
            return time.monotonic() - self._since_s >= STARTED_S
        if self._launch.ready == "line":
            return re.search(self._launch.line, output_end(self._log), re.MULTILINE) is not None
        if self._launch.ready == "committed":
            return self._has_committed()
        return self._topics <= self._topics_read()

    @property
    def awaited(self) -> str:
        """What makes it ready, and how long that may take."""
        sign = {
            "line": f"a line of its output that matches {self._launch.line!r}",
            "committed": f"the first commit of group {self._group}",
            "consumer": f"group {self._group} reads every input",
            "started": f"it has run for {STARTED_S:g} s",
        }[self._launch.ready]
        return f"{sign}, at most {self._launch.timeout_s:g} s"

    def timeout_message(self) -> str:
        """What did not happen in time, what happened instead, and what to change."""
        launch, within = self._launch, f"within {self._launch.timeout_s:g} s"
        if launch.ready == "line":
            return (
                f"{within} no line of its output matched {launch.line!r}. "
                "Raise timeout in its file if it was still starting, else correct ready_line"
            )
        if launch.ready == "committed":
            lacks, no_group = "committed no offset", ""
            advice = "Commit as this group ($STREAMGAUGE_GROUP), or name the program's own with group in its file"
        else:
            lacks = f"did not read {', '.join(sorted(self._topics))}; {self._consumers_in_words()}"
            no_group = '. A program that joins no group needs ready = "started"'
            advice = (
                f"Subscribe to the topics in {variables('input', dict(launch.inputs))} as group $STREAMGAUGE_GROUP, "
                f"or name the program's own group with group in its file{no_group} or ready_line"
            )
        return f"{within} group {self._group} {lacks}. {_OF_ATTACHED + no_group if launch.attached else advice}"

    def _consumers_in_words(self) -> str:
        """What the group reads, or which groups the broker has."""
        if reads := self._topics_read():
            return f"it reads {', '.join(sorted(reads))}"
        if self._members():
            return "it has a member that is assigned no partition of any topic, as of a topic that does not exist"
        others = [name for name in self._groups() if name != self._group][:5]
        return f"the broker has the groups {', '.join(others)}" if others else "the broker has no consumer group"

    @cached_property
    def _admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient({**self._settings, "log_level": 0, "error_cb": lambda _: None})

    def _members(self) -> list[Any]:
        answers = self._admin.describe_consumer_groups([self._group], request_timeout=REQUEST_S)
        group = _answer_of(answers[self._group])
        return list(group.members) if group is not None else []

    def _topics_read(self) -> set[str]:
        """The topics that members of the group are assigned."""
        return {part.topic for one in self._members() for part in one.assignment.topic_partitions}

    def _groups(self) -> list[str]:
        groups = _answer_of(self._admin.list_consumer_groups(request_timeout=REQUEST_S))
        return sorted(each.group_id for each in groups.valid) if groups is not None else []

    def _has_committed(self) -> bool:
        """Whether the group has committed an offset of an input."""
        try:
            return any(topic in self._topics for topic, _ in committed_of(self._admin, self._group))
        except DriverError:  # the group does not exist yet
            return False


def _answer_of(request: Any) -> Any:
    """The broker's answer; None without one, as of a group that does not exist yet."""
    from confluent_kafka import KafkaException

    try:
        return request.result(REQUEST_S)
    except (KafkaException, TimeoutError):
        return None


def output_end(log: Path) -> str:
    """The end of the program's output."""
    try:
        with log.open("rb") as output:
            output.seek(max(0, log.stat().st_size - LOG_BYTES))
            return output.read().decode(errors="replace")
    except OSError:
        return ""


def last_lines(log: Path, count: int = 3) -> str:
    """The last lines of the program's output, in one line; empty without output."""
    lines = [line.strip() for line in output_end(log).splitlines() if line.strip()]
    return " | ".join(lines[-count:])
