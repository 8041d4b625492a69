"""A process in the ways that tests compare: by truth or by class, in one batch or wherever batches end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
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


def whole_and_in_parts(
    flow: Flow, rows: pa.Table, times: list[int], cuts: list[int], end: int = END
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The results of `rows`, the n-th with time `times[n]` and event id n, in one batch, and in one up to each cut.

    `end` is after every time.
    """
    node = next(each for each in graph.walk(with_lineage(flow).sink.input) if isinstance(each, Process))
    numbers, at = pa.array(range(len(times)), pa.int64()), pa.array(times, pa.int64())
    for name, column in (("event_time", at), ("ingest_time", numbers), ("event_id", numbers), (TIME, at)):
        rows = rows.append_column(name, column)
    whole = pa.concat_tables(list(OperatorRuntime(node).advance([rows], end)))
    parts, state, low = [], None, -1
    for cut in sorted({*cuts, end}):
        instance = OperatorRuntime(node)
        if state is not None:
            instance.restore(state)
        inside = pa.array([low < time <= cut for time in times], pa.bool_())
        parts += list(instance.advance([rows.filter(inside)], cut))
        state, low = instance.snapshot(), cut
    return whole.to_pylist(), pa.concat_tables(parts).to_pylist()


BOTH = pytest.mark.parametrize("way", [lambda flow: flow, without_truth], ids=["truth", "class"])


def answered(flow: Flow, inputs: dict[str, pa.Table]) -> pa.Table:
    """The reference's results by event id, or by time where an id is not theirs; without ingest times."""
    with duckdb_session() as connection:
        found = Oracle().answer(with_lineage(flow, ingest_time=False), inputs, connection).to_arrow_table()
    return found.sort_by("event_id" if "event_id" in found.column_names else "event_time")


def made(name: str, rate: float, seconds: float, **parameters: Any) -> tuple[Flow, dict[str, pa.Table]]:
    """A workload's flow and the streams that two generators make for it, in order."""
    workload = registry.get(name)
    flow, streams, _ = workload.build(workload.read(parameters), rate)
    plan = Plan(streams, parse_profile("constant", rate, seconds), 0, seconds, 2, 1)
    needed = needed_columns(with_lineage(flow, ingest_time=False))
    inputs = {}
    for number, stream in enumerate(streams):
        columns = (*dict.fromkeys((*needed[stream.name], "event_time", "event_id")),)
        counts = [plan.count_before(number, part, plan.end_us) for part in range(2)]
        batches = [plan.batch(number, part, 0, count, columns) for part, count in enumerate(counts)]
        rows = pa.Table.from_batches(batches)
        inputs[stream.name] = rows.sort_by([("event_time", "ascending"), ("event_id", "ascending")])
    return flow, inputs
