"""A process in the ways that tests compare: by truth or by class, in one batch or wherever batches end."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streamgauge.dataflow import graph
from streamgauge.dataflow.lineage import needed_columns, with_lineage
from streamgauge.dataflow.nodes import Flow, Node, Process
from streamgauge.dataflow.operators.api import TIME
from streamgauge.engines.duckdb_oracle.engine import Oracle
from streamgauge.engines.operator_runtime import OperatorRuntime
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.workloads import registry
from streamgauge.workloads.registry import Job
from tests.unit.helpers_duckdb import duckdb_session

END = 1000
"""After every time of a test."""


def without_truth(flow: Flow) -> Flow:
    """The same flow, none of whose processes has SQL: the reference then runs their classes."""
    made: dict[Node, Node] = {}
    for node in graph.operators(flow):
        new = graph.with_inputs(node, tuple(made[input_] for input_ in graph.inputs(node)))
        made[node] = replace(new, truth=None) if isinstance(new, Process) else new
    return Flow(tuple(replace(sink, input=made[sink.input]) for sink in flow.sinks))


def flow_of(name: str, /, **parameters: Any) -> Flow:
    """A workload's flow."""
    return job_of(name, 1000.0, **parameters).flow


def job_of(name: str, rate_per_s: float, /, **parameters: Any) -> Job:
    """A workload as it is at a rate."""
    workload = registry.get(name)
    return workload.build(workload.read(parameters), rate_per_s)


def table(rows: Sequence[Sequence[Any]], times: Sequence[int] | None = None, **types: Any) -> pa.Table:
    """Rows as columns of these types. The n-th has event id n, and event time n without `times`."""
    numbers = range(len(rows))
    columns: dict[str, Any] = dict(zip(types, zip(*rows, strict=True) if rows else [()] * len(types), strict=True))
    columns |= {"event_time": numbers if times is None else times, "event_id": numbers}
    all_types = types | {"event_time": "int64", "event_id": "int64"}
    return pa.table({name: pa.array(column, all_types[name]) for name, column in columns.items()})


def in_batches(node: Process, sides: Sequence[pa.Table], cuts: Iterable[int]) -> pa.Table:
    """The results of the inputs' rows in batches up to each cut.

    A snapshot goes into a fresh instance at every cut, as in engines.
    """
    results, state, low = list[pa.Table](), None, -(2**62)
    for cut in sorted(set(cuts)):
        instance = OperatorRuntime(node)
        if state is not None:
            instance.restore(state)
        inside = [pc.and_(pc.greater(side[TIME], low), pc.less_equal(side[TIME], cut)) for side in sides]
        results += instance.advance([side.filter(those) for side, those in zip(sides, inside, strict=True)], cut)
        state, low = instance.snapshot(), cut
    return pa.concat_tables(results)


def results_in_batches(
    flow: Flow, rows: pa.Table, times: list[int], cuts: list[int], end: int = END, rel: float | None = None
) -> list[dict[str, Any]]:
    """The results of `rows` in one batch, which must be those of batches up to each cut, within `rel` if it is given.

    The n-th row has time `times[n]` and event id n. `end` is after every time.
    """
    node = next(each for each in graph.walk(with_lineage(flow).sink.input) if isinstance(each, Process))
    numbers, at = pa.array(range(len(times)), pa.int64()), pa.array(times, pa.int64())
    added = {"event_time": at, "ingest_time": numbers, "event_id": numbers, TIME: at}
    columns = [name for name in rows.column_names if name not in added]
    rows = pa.table(dict(zip(columns, rows.select(columns).columns, strict=True)) | added)
    whole, results = (in_batches(node, [rows], ends).to_pylist() for ends in ([end], [*cuts, end]))
    if rel is None:
        assert repr(results) == repr(whole)  # NaN equals nothing, and is the same all the same
    else:
        assert results == [pytest.approx(row, rel=rel, abs=1e-12) for row in whole]
    return whole


BOTH = pytest.mark.parametrize("variant", [lambda flow: flow, without_truth], ids=["truth", "class"])


def answered(flow: Flow, inputs: dict[str, pa.Table]) -> pa.Table:
    """The reference's results by event id, or by time where an id is not theirs; without ingest times."""
    with duckdb_session() as connection:
        results = Oracle().answer(with_lineage(flow, ingest_time=False), inputs, connection).to_arrow_table()
    return results.sort_by("event_id" if "event_id" in results.column_names else "event_time")


def made(name: str, rate: float, seconds: float, **parameters: Any) -> tuple[Flow, dict[str, pa.Table]]:
    """A workload's flow and the streams that two generators make for it, in order."""
    flow, streams, _ = job_of(name, rate, **parameters)
    plan = Plan(streams, parse_profile("constant", rate, seconds), 0, seconds, 2, 1)
    needed = needed_columns(with_lineage(flow, ingest_time=False))
    inputs = {}
    for number, stream in enumerate(streams):
        rows = all_rows(plan, number, (*dict.fromkeys((*needed[stream.name], "event_time", "event_id")),))
        inputs[stream.name] = rows.sort_by([("event_time", "ascending"), ("event_id", "ascending")])
    return flow, inputs


def all_rows(plan: Plan, stream: int, columns: Sequence[str]) -> pa.Table:
    """All events of a stream, partition by partition."""
    counts = [plan.count_before(stream, part, plan.end_us) for part in range(plan.partitions)]
    return pa.Table.from_batches([plan.batch(stream, part, 0, count, columns) for part, count in enumerate(counts)])
