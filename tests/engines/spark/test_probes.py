"""Which finished executions probes read, and what they make of their drawing; that Spark counts right is seen in trials
(`tests/engines/test_spark_path.py`).
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.engines.seam import OperatorRows
from streamgauge.engines.spark import probes
from streamgauge.engines.spark.probes import Probes

RUN = "01234567-89ab-cdef-0123-456789abcdef"
DRAWING = """digraph G {
  0 [id="node0" label="AppendData" tooltip="AppendData"];
  subgraph cluster1 {
    isCluster="true";
    id="cluster1";
      2 [id="node2" label="Filter" tooltip="Filter ((price#1 > 5) AND (SPARK_PARTITION_ID() > -2))"];
  3 [id="node3" label="Filter" tooltip="Filter (price#1 > 5)"];
  }

  4 [id="node4" label="Filter" tooltip="Filter (SPARK_PARTITION_ID() &gt; -1)"];
  2->0;
}"""
PLACES = (0, 2, 3, 1, 4)
"""The nodes as Spark lists them: a cluster after its own."""
METRICS = "102 -> 1,234\n101 -> 3 ms\n103 -> 7\n104 -> 20,000"


class Store:
    """Executions as Spark keeps them: the last `kept` ones, oldest first."""

    def __init__(self, executions: list[Any]) -> None:
        self.executions, self.read = executions, list[int]()

    def executionsCount(self) -> int:
        return len(self.executions)

    def executionsList(self, offset: int = 0, length: int = 1000) -> Any:
        found = self.executions[offset : offset + length]
        return SimpleNamespace(size=lambda: len(found), apply=lambda place: found[place])

    def executionMetrics(self, number: int) -> Any:
        return SimpleNamespace(mkString=lambda separator: METRICS)

    def planGraph(self, number: int) -> Any:
        self.read.append(number)
        return GRAPH


def node(place: int) -> Any:
    metric = SimpleNamespace(accumulatorId=lambda: 100 + PLACES[place])
    return SimpleNamespace(metrics=lambda: SimpleNamespace(apply=lambda number: metric))


GRAPH = SimpleNamespace(makeDotFile=lambda empty: DRAWING, allNodes=lambda: SimpleNamespace(apply=node))


def execution(number: int, batch: int, run: str = RUN, done: bool = True) -> Any:
    return SimpleNamespace(
        executionId=lambda: number,
        completionTime=lambda: SimpleNamespace(isEmpty=lambda: not done),
        description=lambda: f"id = 77<br/>runId = {run}<br/>batch = {batch}",
    )


ACCUMULATORS = {104: 500}


def accumulator(number: int) -> Any:
    there = SimpleNamespace(value=lambda: ACCUMULATORS[number])
    return SimpleNamespace(isDefined=lambda: number in ACCUMULATORS, get=lambda: there)


SQL = SimpleNamespace(
    SparkPlanInfo=SimpleNamespace(fromSparkPlan=lambda plan: plan),
    ui=SimpleNamespace(SparkPlanGraph=SimpleNamespace(apply=lambda plan: GRAPH)),
)
SPARK = SimpleNamespace(
    sql=SimpleNamespace(execution=SQL), util=SimpleNamespace(AccumulatorContext=SimpleNamespace(get=accumulator))
)
JVM = SimpleNamespace(
    scala=SimpleNamespace(Predef=SimpleNamespace(Map=lambda: SimpleNamespace(empty=lambda: None))),
    org=SimpleNamespace(apache=SimpleNamespace(spark=SPARK)),
)


class Frame:
    def where(self, condition: str) -> Frame:
        return self


def probed(store: Store) -> Probes:
    """Of one query with a source and a filter."""
    state = SimpleNamespace(sharedState=lambda: SimpleNamespace(statusStore=lambda: store))
    found = Probes(SimpleNamespace(_jsparkSession=state, _jvm=JVM))
    for operator in ("purchases", "dear"):
        found.behind(operator, Frame())  # type: ignore[arg-type]
    found.started("q0", SimpleNamespace(runId=RUN))
    return found


def test_each_finished_batch_is_read_once() -> None:
    """Until the first that still runs; those of other queries and those that are no batch are passed over."""
    other = "ffffffff-89ab-cdef-0123-456789abcdef"
    store = Store([execution(3, 0), execution(4, 9, run=other), execution(5, 1), execution(6, 2, done=False)])
    found = probed(store)
    assert found.rows == [
        OperatorRows("q0", batch, operator, rows)
        for batch in (0, 1)
        for operator, rows in (("dear", 1234), ("purchases", 20_000))
    ]
    store.executions = [*store.executions[1:3], execution(6, 2), execution(7, 3)]
    assert {one.batch for one in found.rows} == {0, 1, 2, 3}
    assert store.read == [3, 5, 6, 7]


def test_much_that_waits_is_read_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark forgets the oldest, and one who asks how it is does not want to wait."""
    store = Store([execution(number, number) for number in range(10)])
    found = probed(store)
    found.keep_up()
    assert store.read == []
    monkeypatch.setattr(probes, "WAITING_MAX", 5)
    monkeypatch.setattr(probes, "READ_AT_ONCE", 3)
    found.keep_up()
    assert store.read == [0, 1, 2]
    found.keep_up()
    found.keep_up()
    assert store.read == [0, 1, 2, 3, 4, 5]


def test_a_batch_that_runs_tells_its_own_counts() -> None:
    """As of `foreachBatch`; one that Spark has forgotten already is left out."""
    last = SimpleNamespace(executedPlan=lambda: "plan")
    running = SimpleNamespace(_jsq=SimpleNamespace(streamingQuery=lambda: SimpleNamespace(lastExecution=lambda: last)))
    found = probed(Store([]))
    found.count_in("q0", running, 4)
    assert found.rows == [OperatorRows("q0", 4, "purchases", 500)]
