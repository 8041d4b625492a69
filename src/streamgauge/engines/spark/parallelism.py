"""Which operators have a configurable parallelism on Spark. Does not load Spark.

Spark fuses operators into stages, and a stage has one task per input partition. So parallelism can only be set for
operators that follow an exchange, and one setting applies to all exchanges of a session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from streamgauge.core.errors import Problem
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
from streamgauge.engines.spark.session.masters import ALL_CORES, EXECUTOR_CORES, is_local, is_standalone
from streamgauge.engines.spi import StartRequest

SETTING = "spark.sql.shuffle.partitions"


NOT_VISIBLE = (
    "the plan of a user job is not analysed; the setting applies where its function exchanges rows, as in groupBy"
)


def tasks_unless_set(parallelism: int | None, readers: int) -> int:
    """The default of `SETTING`: the requested parallelism, else the number of input readers and at least two."""
    return parallelism or max(2, readers)


def requested_master(request: StartRequest) -> str | None:
    """The master that a request names; None for a local Spark on all cores."""
    return request.master or (f"local[{request.parallelism}]" if request.parallelism else None)


def executor_cores(master: str, parallelism: int | None, users: Mapping[str, str]) -> dict[str, str]:
    """Spark configuration by which all executors of a cluster have `parallelism` cores; empty for a local Spark."""
    if parallelism is None or is_local(master):
        return {}
    if is_standalone(master):
        return {ALL_CORES: str(parallelism)}
    return {"spark.executor.instances": str(parallelism // cores_of_executor(users))}


def cores_of_executor(users: Mapping[str, str]) -> int:
    """The cores of an executor on YARN and Kubernetes."""
    return int(users.get(EXECUTOR_CORES, 1))


def parallelism_problems(request: StartRequest) -> Iterator[Problem]:
    """A parallelism that contradicts the master or one of Spark's settings, and settings that leave no executor."""
    parallelism, master = request.parallelism, request.master or ""
    if is_standalone(master):
        yield from _total_below_one_executor(request.options)
    if parallelism is None:
        return
    if is_local(master):
        rule = f"must not be given with the master {master}, which states Spark's cores"
        yield Problem("parallelism", rule, parallelism, "leave --master out, or leave --parallelism out")
        return
    taken = ALL_CORES if is_standalone(master) else "spark.executor.instances"
    if taken in request.options:
        rule = f"must not be given with {taken}, which states the executors' cores"
        yield Problem("parallelism", rule, parallelism, f"leave --option {taken} out, or leave --parallelism out")
    cores = request.options.get(EXECUTOR_CORES, "1")
    if cores.isdecimal() and int(cores) and parallelism % int(cores):
        rule = f"must be a multiple of {EXECUTOR_CORES} ({cores})"
        yield Problem("parallelism", rule, parallelism, f"--parallelism {int(cores) * -(-parallelism // int(cores))}")


def _total_below_one_executor(options: Mapping[str, str]) -> Iterator[Problem]:
    """All cores of a job on a standalone cluster, if they are fewer than one executor needs: it would never start."""
    total, cores = options.get(ALL_CORES, ""), options.get(EXECUTOR_CORES, "")
    if total.isdecimal() and cores.isdecimal() and 0 < int(total) < int(cores):
        rule = f"must be at least the cores of one executor ({EXECUTOR_CORES}={cores}), or none starts"
        way_out = f"--option {ALL_CORES}={cores}, or --option {EXECUTOR_CORES}={total}"
        yield Problem(f"option {ALL_CORES}", rule, total, way_out)


def parallelism_options(node: Node) -> ParallelismOptions:
    """Whether `SETTING` determines the parallelism of an operator."""
    match node:
        case WindowAggregate() | RunningAggregate() | SessionAggregate() | WindowJoin() | IntervalJoin():
            return ParallelismOptions(True, "its rows are exchanged by key before it")
        case Distinct() | TopN():
            return ParallelismOptions(True, "its rows are exchanged by key before it")
        case Process() if node.keys:
            reason = "its rows are exchanged by key before it; no more instances work than there are buckets"
            return ParallelismOptions(True, reason)
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
