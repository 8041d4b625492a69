"""Which operators have a configurable parallelism on Spark. Does not load Spark.

Spark fuses operators into stages, and a stage has one task per input partition. So parallelism can only be set for
operators that follow an exchange, and one setting applies to all exchanges of a session.
"""

from collections.abc import Iterator, Mapping
from typing import assert_never

from streamgauge.core.errors import Problem, Rule, broken
from streamgauge.dataflow.nodes import (
    Distinct,
    Explode,
    IntervalJoin,
    InWindows,
    Lookup,
    Node,
    OpaqueNode,
    Process,
    RunningAggregate,
    Select,
    SessionAggregate,
    Source,
    TopN,
    Union,
    Where,
    WindowAggregate,
    WindowJoin,
)
from streamgauge.engines.operator_profiler import ParallelismOptions
from streamgauge.engines.spark.session.masters import (
    ALL_CORES,
    EXECUTOR_CORES,
    is_local,
    is_standalone,
    local_slots,
    whole,
)
from streamgauge.engines.spark.session.session import SHUFFLE_PARTITIONS
from streamgauge.engines.spi import StartRequest

SETTING = SHUFFLE_PARTITIONS
INSTANCES = "spark.executor.instances"

NOT_VISIBLE = (
    "the plan of a user job is not analysed; the setting applies where its function exchanges rows, as in groupBy"
)


def tasks_unless_set(parallelism: int | None, partitions: int) -> int:
    """The default of `SETTING`: the requested parallelism, else the number of input partitions and at least two."""
    return parallelism or max(2, partitions)


def executor_cores(master: str, parallelism: int | None, users: Mapping[str, str]) -> dict[str, str]:
    """Spark configuration by which all executors of a cluster have `parallelism` cores; empty for a local Spark."""
    if parallelism is None or is_local(master):
        return {}
    if is_standalone(master):
        return {ALL_CORES: str(parallelism)}
    return {INSTANCES: str(parallelism // int(users.get(EXECUTOR_CORES, 1)))}


def parallelism_problems(request: StartRequest) -> Iterator[Problem]:
    """A parallelism that contradicts the master or one of Spark's settings, and settings that leave no executor."""
    parallelism, master, options = request.parallelism, request.master or "", request.options
    cores, total = whole(options.get(EXECUTOR_CORES, "1")), whole(options.get(ALL_CORES, ""))
    too_few = f"must be at least the cores of one executor ({EXECUTOR_CORES}={cores}), or none starts"
    both = f"--option {ALL_CORES}={cores}, or --option {EXECUTOR_CORES}={total}"
    may_start = not is_standalone(master) or not 0 < total < cores
    yield from broken(Rule(may_start, f"option {ALL_CORES}", too_few, options.get(ALL_CORES), both))
    if parallelism is None:
        return
    local, taken = is_local(master), ALL_CORES if is_standalone(master) else INSTANCES
    yield from broken(
        Rule(
            not local, "parallelism", f"must not be given with the master {master}, which states Spark's cores",
            parallelism, "leave --master out, or leave --parallelism out",
        ),
        Rule(
            local or taken not in options, "parallelism",
            f"must not be given with {taken}, which states the executors' cores",
            parallelism, f"leave --option {taken} out, or leave --parallelism out",
        ),
        Rule(
            local or not cores or parallelism % cores == 0, "parallelism",
            f"must be a multiple of {EXECUTOR_CORES} ({cores})",
            parallelism, f"--parallelism {cores * -(-parallelism // max(1, cores))}",
        ),
    )  # fmt: skip


def slot_problems(request: StartRequest, needed: int, slots: str) -> list[Problem]:
    """Too few slots for tasks that never end; others would wait forever. Only those of `local[N]` are known before the
    start. `slots`: what needs them.
    """
    master = request.master or (f"local[{request.parallelism}]" if request.parallelism else None)
    are_enough, is_named = master is None or (local_slots(master) or 0) >= needed, request.master is not None
    rule = f"{slots}: {needed} here"
    way_out = f"--parallelism {needed}, or leave it out"
    return broken(
        Rule(are_enough or is_named, "parallelism", f"must be {rule}", request.parallelism, way_out),
        Rule(
            are_enough or not is_named, "master", f"must be local[N] with {rule}",
            request.master, f"--master local[{needed}], or leave --master out",
        ),
    )  # fmt: skip


def parallelism_options(node: Node) -> ParallelismOptions:
    """Whether `SETTING` determines the parallelism of an operator."""
    match node:
        case (
            WindowAggregate() | RunningAggregate() | SessionAggregate() | WindowJoin() | IntervalJoin() | Distinct()
            | TopN()
        ):  # fmt: skip
            return ParallelismOptions(True, "its rows are exchanged by key before it")
        case Process() if node.keys:
            return ParallelismOptions(
                True, "its rows are exchanged by key before it; no more instances work than there are buckets"
            )
        case Source():
            return ParallelismOptions(False, "a source has a task for each partition (--partitions)")
        case Lookup():
            return ParallelismOptions(False, "its table is sent to every task, so it is fused with what it reads")
        case OpaqueNode():
            return ParallelismOptions(False, NOT_VISIBLE)
        case Select() | Where() | Explode() | InWindows() | Union() | Process():
            return ParallelismOptions(False, "fused with what it reads: it has that one's tasks")
        case _:
            assert_never(node)
