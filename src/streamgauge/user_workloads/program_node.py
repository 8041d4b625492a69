"""A program of the user's own as an operator of a flow: how it is started, and the topics that it reads and writes."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from streamgauge.dataflow.nodes import Flow, OpaqueNode

Ready = Literal["consumer", "committed", "line", "started"]
RUN_PLACEHOLDERS = (
    "python", "spark_kafka_jars", "brokers", "client", "client_java", "group", "run", "scratch", "parallelism",
)  # fmt: skip
PLACEHOLDER = re.compile(rf"\{{({'|'.join(RUN_PLACEHOLDERS)}|output(?:\.\w+)?|input(?:\.\w+)?)\}}")
"""A word of a command, or of a variable's value, that is replaced by a value of the run."""
PARALLELISM, SPARK_KAFKA_JARS, SCRATCH = "{parallelism}", "{spark_kafka_jars}", "{scratch}"
_WORD = re.compile(r"(?<![{$])\{([A-Za-z_]\w*(?:\.\w+)?)\}")
"""What looks like a placeholder. Shell variables and doubled braces do not."""
ESCAPED = re.compile(r"\{(\{[A-Za-z_]\w*(?:\.\w+)?\})\}")
"""A word in doubled braces, which stands for itself in single ones."""


@dataclass(frozen=True)
class Launch:
    """How a program is started, and when it counts as ready.

    - `command`: its words, with placeholders. Empty for a program that runs already.
    - `folder`: its working folder. `environment`: further variables.
    - `group`: its consumer group; empty for one of the run's own.
    - `line`: the pattern of the line in its output that says it is ready.
    - `timeout_s`: how long it may take to get ready, and to write its first result.
    - `inputs`, `outputs`: stream or sink to the topic that the program names; empty for one of the run's own.
    - `checkpoints`: the folders of its Spark queries, with placeholders.
    """

    command: tuple[str, ...] = ()
    folder: str = "."
    environment: tuple[tuple[str, str], ...] = ()
    group: str = ""
    ready: Ready = "consumer"
    line: str = ""
    timeout_s: float = 30.0
    inputs: tuple[tuple[str, str], ...] = ()
    outputs: tuple[tuple[str, str], ...] = ()
    checkpoints: tuple[str, ...] = ()

    @property
    def attached(self) -> bool:
        """Whether the program runs already."""
        return not self.command

    def uses(self, placeholder: str) -> bool:
        """Whether its command or environment has a placeholder, such as that of the number of cores."""
        return any(placeholder in text for text in (*self.command, *(value for _, value in self.environment)))


@dataclass(frozen=True)
class ProgramNode(OpaqueNode):
    """One output of a program that reads its inputs from Kafka and writes its results there.

    `path` is the file that declares it. The nodes of several outputs have the same launch.
    """

    kind = "program"
    code = "any code over Kafka"
    plural = "programs over Kafka"
    other_engine = "leave --engine out: external runs programs"
    reads_lineage = False

    launch: Launch = Launch()

    @property
    def label(self) -> str:
        return " ".join(self.launch.command) or "a running program"


def launch_of(flow: Flow) -> Launch | None:
    """How the program of a flow is started; None for a flow without one. All of its sinks have the same."""
    node = flow.sinks[0].input
    return node.launch if isinstance(node, ProgramNode) else None


def placeholders(streams: Iterable[str], sinks: Iterable[str]) -> list[str]:
    """The placeholders that a program with these inputs and outputs may use."""
    names = list(RUN_PLACEHOLDERS)
    for kind, given in (("input", list(streams)), ("output", list(sinks))):
        names += [*([kind] if len(given) == 1 else []), *(f"{kind}.{name}" for name in given)]
    return names


def unknown_placeholders(texts: Sequence[str], streams: Iterable[str], sinks: Iterable[str]) -> list[str]:
    """The words in braces that are no placeholders, such as the topic of one of several inputs without its name."""
    used = [found[1] for text in texts for found in _WORD.finditer(text)]
    right = placeholders(streams, sinks)
    return [name for name in dict.fromkeys(used) if name not in right]
