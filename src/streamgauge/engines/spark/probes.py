"""Probes: how many rows left each operator in each batch, by Spark's own count.

Behind each operator stands a filter that lets every row through. Spark counts the rows of a filter anyhow, and because
this one's condition depends on no row, it is neither moved nor removed. Its number says whose it is. `observe`, which
is meant for this, costs a fifth to a half of the rate.

Counts are read where Spark keeps finished executions for its own pages. What `foreachBatch` runs is not counted there,
so of updates they are read in the batch itself, from the accumulators. Where the probes are in a plan is found in its
drawing, which is one text: asking each node would be a call across processes for every one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from streamgauge.engines.seam import OperatorRows

WAITING_MAX = 400
"""So many finished executions may wait to be read; Spark keeps a thousand."""
READ_AT_ONCE = 10
_NODE = re.compile(r'\s*\d+ \[id="node\d+"')
_MARK = re.compile(r"spark_partition_id\(\)\s*(?:>|&gt;)\s*-(\d+)", re.IGNORECASE)
_COUNT = re.compile(r"^(\d+) -> ([\d,]+)$", re.MULTILINE)
_BATCH = re.compile(r"runId = ([0-9a-f-]+).*?batch = (\d+)", re.DOTALL)


class Probes:
    """The probes of one session's queries, and what they counted."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._operators: list[str] = []
        self._runs: dict[str, str] = {}
        self._read_until = -1
        self._rows: dict[tuple[str, int, str], int] = {}

    def behind(self, operator: str, frame: DataFrame) -> DataFrame:
        """The same rows, counted as those of the operator."""
        self._operators.append(operator)
        return frame.where(f"spark_partition_id() > -{len(self._operators)}")

    def started(self, query: str, running: Any) -> None:
        """A query runs: its executions are known by its run."""
        self._runs[str(running.runId)] = query

    @property
    def rows(self) -> list[OperatorRows]:
        """All that was counted so far, of batches that are done."""
        if self._operators:
            self._read(self._finished())
        return [OperatorRows(*key, rows) for key, rows in self._rows.items()]

    def keep_up(self) -> None:
        """Reads some of what is finished where much has gathered: Spark forgets the oldest."""
        if self._operators and self._latest() - self._read_until > WAITING_MAX:
            self._read(self._finished()[:READ_AT_ONCE])

    def _latest(self) -> int:
        """The number of the last execution that began: asked often, so the list is not gone through for it."""
        count = self._store.executionsCount()
        return int(self._store.executionsList(count - 1, 1).apply(0).executionId()) if count else -1

    def count_in(self, query: str, running: Any, batch: int) -> None:
        """Reads a batch's counts from its plan, where nothing else of it has begun since."""
        if not self._operators:
            return
        plan, jvm = running._jsq.streamingQuery().lastExecution().executedPlan(), self._session._jvm
        drawn = jvm.org.apache.spark.sql.execution.SparkPlanInfo.fromSparkPlan(plan)
        graph = jvm.org.apache.spark.sql.execution.ui.SparkPlanGraph.apply(drawn)
        for operator, accumulator in self._probed(graph):
            found = jvm.org.apache.spark.util.AccumulatorContext.get(accumulator)
            if found.isDefined():
                self._note(query, batch, operator, int(found.get().value()))

    @property
    def _store(self) -> Any:
        return self._session._jsparkSession.sharedState().statusStore()

    def _finished(self) -> list[Any]:
        """Executions that were not read yet, oldest first, up to the first that still runs."""
        executions = self._store.executionsList()
        found = []
        for place in range(executions.size() - 1, -1, -1):
            execution = executions.apply(place)
            if execution.executionId() <= self._read_until:
                break
            found.append(execution)
        found.sort(key=lambda execution: int(execution.executionId()))
        running = (place for place, each in enumerate(found) if each.completionTime().isEmpty())
        return found[: next(running, len(found))]

    def _read(self, executions: list[Any]) -> None:
        for execution in executions:
            self._read_until = int(execution.executionId())
            said = _BATCH.search(str(execution.description()))
            if said is not None and said.group(1) in self._runs:
                self._read_batch(self._runs[said.group(1)], int(said.group(2)))

    def _read_batch(self, query: str, batch: int) -> None:
        store = self._store
        counts = dict(_COUNT.findall(str(store.executionMetrics(self._read_until).mkString("\n"))))
        for operator, accumulator in self._probed(store.planGraph(self._read_until)):
            if str(accumulator) in counts:
                self._note(query, batch, operator, int(counts[str(accumulator)].replace(",", "")))

    def _probed(self, graph: Any) -> Iterator[tuple[str, int]]:
        """(operator, accumulator of the rows that left it) of each probe in a plan."""
        drawing, nodes = str(graph.makeDotFile(self._session._jvm.scala.Predef.Map().empty())), graph.allNodes()
        for place, mark in enumerate(_marks(drawing)):
            if mark:
                yield self._operators[mark - 1], int(nodes.apply(place).metrics().apply(0).accumulatorId())

    def _note(self, query: str, batch: int, operator: str, rows: int) -> None:
        """An operator that a query does twice has two probes with the same count, and stands once."""
        self._rows.setdefault((query, batch, operator), rows)


def _marks(drawing: str) -> Iterator[int]:
    """The number of each node's probe, 0 of one that is none, in Spark's order: a cluster follows its nodes."""
    within = False
    for line in drawing.splitlines():
        if _NODE.match(line):
            mark = _MARK.search(line)
            yield int(mark.group(1)) if mark is not None else 0
        elif "subgraph cluster" in line:
            within = True
        elif within and line.strip() == "}":
            within = False
            yield 0
