"""What PySpark jobs and programs have alike: a file of the user's own declares the workload and its truth."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from streamgauge.dataflow.nodes import OpaqueNode, UserJobNode
from streamgauge.jobs import Description
from streamgauge.loadgen.fields import sum_to_one
from streamgauge.user_workloads import reference
from streamgauge.workloads.registry import Parameters, Workload

SINK = "results"
"""The name of the only sink."""


class NoParameters(Parameters):
    """A user's workload has no parameters: the user changes its file."""


@dataclass(frozen=True, kw_only=True)
class UserWorkload(Workload):
    """A workload from a file; `notes` state what was assumed and fitted."""

    extra_names = ()
    without_parameters = "leave --set out, and change the values in its file"
    operators_known = False
    watermark_known = False
    declares_truth = True
    takes_data = False

    node_kind: ClassVar[type[OpaqueNode]]
    """The class of its nodes."""

    path: Path
    described: Mapping[str, Description]
    """Sink to what its file declares of it."""
    batch_job: UserJobNode | None = None
    """The job that the engine runs in batch for the truth, if a sink has no reference."""

    @classmethod
    def may_run_on(cls, nodes: Collection[str]) -> bool:
        return cls.node_kind.__name__ in nodes

    def answer(self, connection: Any, sink: str, tables: Mapping[str, str]) -> Any:
        """The relation of a sink's reference over `tables`: a query with fields and lineage, by stream."""
        return reference.answer(connection, self.path, self.described[sink], tables)


def user_workload(workload: Workload) -> UserWorkload:
    """A workload that declares its truth, as what it is."""
    assert isinstance(workload, UserWorkload)
    return workload


def shares_of(given: Sequence[float | None]) -> list[float]:
    """The inputs' shares of the rate: those given, equal ones if none is given, and empty if they are not right."""
    shares = [share for share in given if share is not None] or [1 / len(given)] * len(given)
    return shares if len(shares) == len(given) and sum_to_one(shares) else []
