"""The interface of an engine that times the operators of a flow one by one, for `characterize`.

It takes folders of rows and gives times. Everything else is the same for every engine (`studies.operator_profile`).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Node, Source, UserJobNode


class Slice(NamedTuple):
    """One timed slice of an operator: its rows, seconds with the operator, and seconds of only reading.

    `fixed_seconds` is the same difference without rows: the fixed cost of a job with the operator.
    """

    rows: int
    seconds: float
    reading_seconds: float
    fixed_seconds: float = 0.0


@dataclass(frozen=True)
class Samples:
    """One slice of every operator: samples of those with rows, and the reasons of failures, by name."""

    samples: dict[str, Slice] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class IsolatedOperator:
    """An operator that reads only sources, and the folder of slices per source name.

    `job`: a user job in its original form, with the stream names that its function expects.
    """

    name: str
    node: Node
    folders: dict[str, str]
    folder_of_a_slice: str
    job: UserJobNode | None = None

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(each for each in graph.walk(self.node) if isinstance(each, Source))

    def files(self, source: Source, number: int) -> list[str]:
        """The files of a slice; empty if it has no rows."""
        return sorted(map(str, Path(self.folders[source.name]).glob(f"{self.folder_of_a_slice}={number}/*.parquet")))


@dataclass(frozen=True)
class ParallelismOptions:
    """Whether the parallelism of an operator can be set, and why."""

    acts: bool
    reason: str


class OperatorTimer(Protocol):
    """A started engine that times operators."""

    @property
    def settings(self) -> dict[str, str]:
        """The settings in force that are not the engine's defaults."""

    def slice(self, number: int) -> Samples:
        """Times a slice of every operator. Raises EngineError if the engine ends."""

    def memory_bytes(self) -> int | None:
        """Resident memory of the engine's processes in bytes; None if it has ended."""


@dataclass(frozen=True)
class OperatorProfiler(ABC):
    """How an engine times operators, and which parallelism they can be given.

    - `methods`: how an operator may be timed, to what that means.
    - `memory_of`: what the sampled memory is of.
    - `unused_options`: options of the engine without effect on an operator that is timed alone.
    - `parallelism_setting`: the option that sets the parallelism of operators.
    - `not_visible`: why it does not act on a user job.
    """

    methods: Mapping[str, str]
    memory_of: str
    unused_options: Sequence[str]
    parallelism_setting: str
    not_visible: str

    @abstractmethod
    def method_of(self, node: Node) -> str:
        """The method by which an operator is timed."""

    @abstractmethod
    def parallelism_options(self, node: Node) -> ParallelismOptions:
        """Whether `parallelism_setting` determines the parallelism of an operator."""

    @abstractmethod
    def default_parallelism(self, parallelism: int | None, partitions: int) -> int:
        """The value of `parallelism_setting` if it is not set, for a requested parallelism and input partitions."""

    @abstractmethod
    def timer(
        self, operators: Sequence[IsolatedOperator], options: dict[str, str], folder: Path, log: Path
    ) -> AbstractContextManager[OperatorTimer]:
        """A process that times operators; ended at the end. It writes to `folder`, and its output goes to `log`.

        Raises InputError for a refused setting or an invalid job, EngineError if it does not start.
        """
