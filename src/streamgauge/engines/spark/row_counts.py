"""The number of rows that left each operator in each batch, from Spark's own metrics.

How an operator is counted:

- A Spark node that makes exactly its rows (unpacked bundles, exploded arrays) is marked by the name of a column.
- A projection has as many rows as its input.
- Any other operator gets a filter that passes every row. Its condition depends on no row, so Spark neither moves nor
  removes it. A number in the condition identifies the operator. It costs some nanoseconds per row, and Spark moves no
  other condition past it.
- Rows that stand for several rows (partial aggregates) are counted by `observe`. It costs 20 to 50 %
  of the rate, so it is only used for these few rows.

Counts are read from Spark's store of finished executions. `foreachBatch` is not in that store, so counts of updates are
read in the batch from its plan. What counts rows is located in the plan's drawing or text, because asking each node
would be a call to the JVM.
"""

import re
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from threading import Lock
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.core.engine_reports import OperatorCounts, OperatorRows
from streamgauge.engines.spark.lowering.row_counter import RowCounter
from streamgauge.engines.spark.session.session import error_message
from streamgauge.system.child_processes import wait_until

WAITING_MAX = 400
"""Finished executions that may remain unread, so that a short trial reads none before its end."""
READ_S = 0.5
"""The longest delay of a status request by reading executions."""
RETENTION_S = 5.0
"""How long Spark may take to store an execution after the query has reported its batch. It does so asynchronously:
usually within 10 ms, but seconds if processors are busy.
"""
_NODE = re.compile(r'\s*\d+ \[id="node\d+"')
_COLUMN = "_counted_"
_MARK = re.compile(
    rf"spark_partition_id\(\)\s*(?:>|&gt;)\s*-(\d+)|\bGenerate .*(?:true|false), \[{_COLUMN}(\d+)#", re.IGNORECASE
)
"""Matches a filter's condition, or the output columns of a `Generate` node."""
_COUNT = re.compile(r"^(\d+) -> ([\d,]+)$", re.MULTILINE)
_STATED = "rows of "
ROWS_OUT = "numOutputRows"
WORKED = "addBatch"
"""The duration in a batch's progress in which its rows are computed and written."""
LONGEST = 25
"""The number of fields in a node's text, Spark's default."""
_BATCH = re.compile(r"runId = ([0-9a-f-]+).*?batch = (\d+)", re.DOTALL)


class RowCounters(RowCounter):
    """The counters of one session's queries, and their counts.

    One thread reads finished executions; batches of updates are counted in Spark's threads.

    Args:
        session: the Spark session.
        without: operators that are not counted.
        clock: seconds.
    """

    def __init__(
        self, session: Any, without: Collection[str] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._session, self._without, self._clock = session, without, clock
        self._operators: list[str] = []
        self._own: set[str] = set()
        self._alike: dict[str, str] = {}
        self._stated: list[str] = []
        self._runs: dict[str, str] = {}
        self._running: dict[str, Any] = {}
        self._reported_until: dict[str, int] = {}
        self._seen_until = -1
        self._open: set[int] = set()
        self._read_batches: dict[str, int] = {}
        self._counted: list[OperatorRows] = []
        self._adding = Lock()

    def behind(self, operator: str, frame: DataFrame, rows: str = "") -> DataFrame:
        """The frame with a counter for the operator. `rows`: a column whose sum is the number of rows."""
        if operator in self._without:
            return frame
        if operator in self._own:
            self._own.remove(operator)
            return frame
        if rows:
            self._stated.append(operator)
            return frame.observe(_STATED + operator, F.sum(rows))
        return frame.where(f"spark_partition_id() > -{self._number(operator)}")

    def column(self, operator: str) -> str:
        """The name of a `Generate` node's output column that marks the operator. `behind` then adds no counter in this
        query.
        """
        self._own.add(operator)
        return f"{_COLUMN}{self._number(operator)}"

    def alike(self, operator: str, before: str) -> None:
        """States that an operator gives one row per row of `before`. Call it in topological order."""
        self._alike[operator] = before

    def _number(self, operator: str) -> int:
        self._operators.append(operator)
        return len(self._operators)

    def started(self, query: str, handle: Any) -> None:
        """Registers a started query and its run id."""
        self._runs[str(handle.runId)] = query
        self._running[query] = handle

    def read(self) -> None:
        """Reads every finished batch. Waits up to `RETENTION_S` for the last ones that queries have reported."""
        if self._stated:
            for query, handle in list(self._running.items()):  # batches of updates take theirs out meanwhile
                self._read_progress(query, handle._jsq.recentProgress())
        if self._operators:
            reported = {query: _last_progress(handle) for query, handle in list(self._running.items())}
            wait_until(lambda: self._have_read(reported), RETENTION_S)

    def keep_up(self) -> None:
        """Reads executions beyond `WAITING_MAX`, for at most `READ_S`, before Spark evicts the oldest."""
        if self._operators:
            until = self._clock() + READ_S
            self._read_while(lambda latest: latest - self._seen_until > WAITING_MAX and self._clock() < until)

    def count_in(self, query: str, handle: Any, batch: int) -> None:
        """Reads a batch's counts from the plan of the query's last execution."""
        if not self._operators and not self._stated:
            return
        self._running.pop(query, None)  # its progress would report the same counts again
        last = handle._jsq.streamingQuery().lastExecution()
        rows: dict[str, int] = {}
        for operator, node in self._within(last.executedPlan()):
            rows.setdefault(operator, int(node.metrics().apply(ROWS_OUT).value()))
        observed: Any = last.observedMetrics() if self._stated else None
        for operator in self._stated:
            if (row := observed.get(_STATED + operator)).isDefined():
                rows[operator] = _sum(row.get())
        self._add(query, batch, rows)

    def _within(self, plan: Any) -> Iterator[tuple[str, Any]]:
        """(operator, node) of each counter in a running plan. The plan's text omits nodes of code generation, so a
        node's number is its line number or slightly more.
        """
        before, behind = -1, -1
        for line, text in enumerate(str(plan.treeString()).splitlines()):
            if mark := _mark(text):
                number = behind + line - before
                while (node := plan.p(number)) is not None and _mark(str(node.simpleString(LONGEST))) != mark:
                    number += 1
                if node is None:
                    return
                before, behind = line, number
                yield self._operators[mark - 1], node

    def _read_progress(self, query: str, reported: Any) -> None:
        """Adds the counts by `observe` of the batches reported since the last call, latest first."""
        until, latest = self._reported_until.get(query, -1), -1
        for progress in reversed(reported):
            batch, observed = int(progress.batchId()), progress.observedMetrics()
            if batch <= until:
                break
            observed_rows = {operator: observed.get(_STATED + operator) for operator in self._stated}
            if rows := {operator: _sum(row) for operator, row in observed_rows.items() if row is not None}:
                latest = max(latest, batch)
                self._add(query, batch, rows)
        self._reported_until[query] = max(until, latest)

    def take(self) -> list[OperatorRows]:
        """The counts since the last call."""
        with self._adding:
            counted, self._counted = self._counted, []
        return counted

    @property
    def _store(self) -> Any:
        return self._session._jsparkSession.sharedState().statusStore()

    def _have_read(self, reported: Mapping[str, int]) -> bool:
        """Reads available executions. Returns whether the last `reported` batch of each query was read."""
        self._read_while(lambda latest: True)
        return all(self._read_batches.get(query, -1) >= batch for query, batch in reported.items())

    def _read_while(self, should_read: Callable[[int], bool]) -> None:
        """Reads finished executions that were not read yet, oldest first. Running ones are read by a later call.

        Stops when `should_read(number of the latest execution)` is False. The list is fetched once, because its
        indices change when Spark evicts executions.
        """
        executions = self._store.executionsList()
        size = int(executions.size())
        latest = int(executions.apply(size - 1).executionId()) if size else -1
        oldest = min(self._open, default=self._seen_until + 1)
        for index in range(max(0, size - (latest - oldest + 1)), size):
            if not should_read(latest):
                return
            execution = executions.apply(index)
            number = int(execution.executionId())
            if number > self._seen_until or number in self._open:
                self._seen_until = max(self._seen_until, number)
                self._open.add(number)
                if not execution.completionTime().isEmpty():
                    self._open.remove(number)
                    self._read_execution(number, str(execution.description()))

    def _read_execution(self, number: int, description: str) -> None:
        match = _BATCH.search(description)
        if match is not None and match.group(1) in self._runs:
            query, batch = self._runs[match.group(1)], int(match.group(2))
            self._read_batches[query] = max(batch, self._read_batches.get(query, -1))
            try:
                self._add(query, batch, self._rows_of(number))
            except Py4JJavaError as error:
                if error.java_exception.getClass().getName() != "java.util.NoSuchElementException":
                    raise  # otherwise Spark has evicted it since it was listed

    def _rows_of(self, execution: int) -> dict[str, int]:
        """Operator to rows. An operator that a query computes twice has two equal counters and is counted once."""
        store = self._store
        counts = dict(_COUNT.findall(str(store.executionMetrics(execution).mkString("\n"))))
        rows: dict[str, int] = {}
        for operator, accumulator in self._counting_nodes(store.planGraph(execution)):
            if str(accumulator) in counts:
                rows.setdefault(operator, int(counts[str(accumulator)].replace(",", "")))
        return rows

    def _counting_nodes(self, graph: Any) -> Iterator[tuple[str, int]]:
        """(operator, id of its row accumulator) of each counter in a plan."""
        drawing, nodes = str(graph.makeDotFile(self._session._jvm.scala.Predef.Map().empty())), graph.allNodes()
        for index, mark in enumerate(_marks(drawing)):
            if mark:
                yield self._operators[mark - 1], int(nodes.apply(index).metrics().apply(0).accumulatorId())

    def _add(self, query: str, batch: int, rows: dict[str, int]) -> None:
        for operator, before in self._alike.items():
            if before in rows:
                rows[operator] = rows[before]
        with self._adding:
            self._counted += [
                OperatorRows(query, batch, *each) for each in rows.items() if each[0] not in self._without
            ]


def _last_progress(handle: Any) -> int:
    """The last batch that a query has reported, or -1. Ignores the idle report of the next batch, without durations."""
    batches = reversed(handle._jsq.recentProgress())
    return next((int(one.batchId()) for one in batches if WORKED in one.durationMs()), -1)


def _sum(row: Any) -> int:
    """The sum of observed rows; null (no rows) counts as 0."""
    return 0 if row.isNullAt(0) else int(row.getLong(0))


def _mark(text: str) -> int:
    """The number of the counter in a node's text, or 0."""
    match = _MARK.search(text)
    return int(match.group(1) or match.group(2)) if match is not None else 0


def _marks(drawing: str) -> Iterator[int]:
    """The counter's number of each node, or 0, in Spark's order, in which a cluster follows its nodes."""
    within = False
    for line in drawing.splitlines():
        if _NODE.match(line):
            yield _mark(line)
        elif "subgraph cluster" in line:
            within = True
        elif within and line.strip() == "}":
            within = False
            yield 0


class RowCounting:
    """The counters of a session, or None. An error ends the counting, but neither a query nor its status."""

    def __init__(self, counters: RowCounters | None = None) -> None:
        self.counters = counters
        self._handles: dict[str, Any] = {}
        self._ended = ""

    def started(self, query: str, handle: Any) -> None:
        """Registers a started query."""
        self._handles[query] = handle
        if self.counters is not None:
            self.counters.started(query, handle)

    def keep_up(self) -> None:
        """Reads what Spark would evict soon."""
        self._guarded(RowCounters.keep_up)

    def batch_written(self, query: str, batch: int) -> None:
        """Counts a batch that Spark's driver wrote, once its query is registered."""
        if query in self._handles:
            self._guarded(RowCounters.count_in, query, self._handles[query], batch)

    def take(self) -> OperatorCounts:
        """The counts since the last call."""
        self._guarded(RowCounters.read)
        return OperatorCounts(self.counters.take() if self.counters is not None else [], self._ended)

    def _guarded(self, count: Callable[..., None], *arguments: Any) -> None:
        if self.counters is None or self._ended:
            return
        try:
            count(self.counters, *arguments)
        except Exception as error:
            self._ended = error_message(str(error))
            print(f"streamgauge: stopped counting rows of operators: {error}", file=sys.stderr, flush=True)
