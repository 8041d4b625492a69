"""Probes: how many rows left each operator in each batch, by Spark's own count.

Spark counts the rows of most of its own nodes anyhow. Where such a node makes an operator's rows and no others, it is
only marked, by the name of a column that it makes: bundles that are opened, arrays that are exploded (`counted`). Rows
that are only computed anew are as many as before. Behind every other operator stands a filter that lets every row
through: because its condition depends on no row, it is neither moved nor removed. Its number says whose it is.
`observe`, which is meant for this, costs a fifth to a half of the rate, so it is for those rows alone that state how
many they stand for (`parts`, `onward`), of which there are few. What a filter costs: some nanoseconds for every row,
and a plan in which Spark moves no other condition past it.

Counts are read where Spark keeps finished executions for its own pages. What `foreachBatch` runs is not counted there,
so of updates they are read in the batch itself, from its plan. What rows state stands in the query's progress. Where
the probes are in a plan is found in its drawing or its text: asking each node would be a call across processes for
every one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from threading import Lock
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.core.operator_rows import OperatorRows
from streamgauge.system.child_processes import wait_until

WAITING_MAX = 400
"""So many finished executions may wait to be read: a short trial reads none before its end."""
READ_S = 0.5
"""So long may somebody who asks how the engine is wait for the reading of more than that."""
RETENTION_S = 5.0
"""So long may Spark take to keep an execution whose batch a query has told of. It does that by the way, on its queue of
events: in hundredths of a second, or in seconds where processors are scarce.
"""
_NODE = re.compile(r'\s*\d+ \[id="node\d+"')
_COLUMN = "_counted_"
_MARK = re.compile(
    rf"spark_partition_id\(\)\s*(?:>|&gt;)\s*-(\d+)|\bGenerate .*(?:true|false), \[{_COLUMN}(\d+)#", re.IGNORECASE
)
"""Of a filter; of what makes a column, those that it takes along stand before the word, those that it makes behind."""
_COUNT = re.compile(r"^(\d+) -> ([\d,]+)$", re.MULTILINE)
_STATED = "rows of "
ROWS_OUT = "numOutputRows"
WORKED = "addBatch"
"""Of the times that a batch tells, that in which its rows are made and written."""
LONGEST = 25
"""Fields of a node that its text names, as Spark itself does."""
_BATCH = re.compile(r"runId = ([0-9a-f-]+).*?batch = (\d+)", re.DOTALL)


class RowCounters:
    """The probes of one session's queries, and what they counted.

    Requests read what is finished in one thread; batches of updates count in one of Spark's.

    Args:
        session: Spark's.
        without: operators behind which none are put.
        clock: gives seconds.
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
        """The same rows, counted as those of the operator; `rows`: a column of updates whose sum says how many."""
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
        """What to call a column that a `Generate` node makes, whose rows are the operator's. Nothing goes behind it
        then; another query may have to do the operator otherwise.
        """
        self._own.add(operator)
        return f"{_COLUMN}{self._number(operator)}"

    def alike(self, operator: str, before: str) -> None:
        """An operator gives a row for each that the one before it gives; to be said of those before it first."""
        self._alike[operator] = before

    def _number(self, operator: str) -> int:
        self._operators.append(operator)
        return len(self._operators)

    def started(self, query: str, running: Any) -> None:
        """A query runs: its executions are known by its run."""
        self._runs[str(running.runId)] = query
        self._running[query] = running

    def read(self) -> None:
        """Reads every batch that is done, the last ones that queries have told of among them, for which it may wait."""
        if self._stated:
            for query, running in list(self._running.items()):  # batches of updates take theirs out meanwhile
                self._read_progress(query, running._jsq.recentProgress())
        if self._operators:
            reported = {query: _last_progress(running) for query, running in list(self._running.items())}
            wait_until(lambda: self._have_read(reported), RETENTION_S)

    def keep_up(self) -> None:
        """Reads what has gathered beyond `WAITING_MAX`, for at most `READ_S`: Spark forgets the oldest."""
        if self._operators:
            until = self._clock() + READ_S
            self._read_while(lambda latest: latest - self._seen_until > WAITING_MAX and self._clock() < until)

    def count_in(self, query: str, running: Any, batch: int) -> None:
        """Reads a batch's counts from its plan, where nothing else of it has begun since."""
        if not self._operators and not self._stated:
            return
        self._running.pop(query, None)  # its progress would tell the same again
        last = running._jsq.streamingQuery().lastExecution()
        rows: dict[str, int] = {}
        for operator, node in self._within(last.executedPlan()):
            rows.setdefault(operator, int(node.metrics().apply(ROWS_OUT).value()))
        self._add(query, batch, rows | self._counts_in(last))

    def _within(self, plan: Any) -> Iterator[tuple[str, Any]]:
        """(operator, node) of each probe in a plan that runs. Its text has a line for each node but those around the
        code that Spark makes, so a node's number is that of its line or a little more.
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

    def _counts_in(self, execution: Any) -> dict[str, int]:
        """Operator to rows, of those that state them."""
        if not self._stated:
            return {}
        observed = execution.observedMetrics()
        found = {operator: observed.get(_STATED + operator) for operator in self._stated}
        return {operator: _sum(one.get()) for operator, one in found.items() if one.isDefined()}

    def _read_progress(self, query: str, reported: Any) -> None:
        """What rows state, of the batches that a query has told since it was last read, latest first."""
        until, latest = self._reported_until.get(query, -1), -1
        for place in range(len(reported) - 1, -1, -1):
            batch, observed = int(reported[place].batchId()), reported[place].observedMetrics()
            if batch <= until:
                break
            found = {operator: observed.get(_STATED + operator) for operator in self._stated}
            if rows := {operator: _sum(row) for operator, row in found.items() if row is not None}:
                latest = max(latest, batch)
                self._add(query, batch, rows)
        self._reported_until[query] = max(until, latest)

    def taken(self) -> list[OperatorRows]:
        """What was counted since it was last asked for."""
        with self._adding:
            counted, self._counted = self._counted, []
        return counted

    @property
    def _store(self) -> Any:
        return self._session._jsparkSession.sharedState().statusStore()

    def _have_read(self, reported: Mapping[str, int]) -> bool:
        """Reads what there is; whether the batches that were `reported` of, the last of each query, are among it."""
        self._read_while(lambda latest: True)
        return all(self._read_batches.get(query, -1) >= batch for query, batch in reported.items())

    def _read_while(self, wanted: Callable[[int], bool]) -> None:
        """Reads executions that were not read yet, oldest first, but those that still run: they are looked at again.

        `wanted` is asked before each, with the number of the last one that has begun. The list is Spark's as it is now,
        asked for once: places in it change whenever Spark forgets some. It stays in the JVM.
        """
        executions = self._store.executionsList()
        size = int(executions.size())
        latest = int(executions.apply(size - 1).executionId()) if size else -1
        oldest = min(self._open, default=self._seen_until + 1)
        for place in range(max(0, size - (latest - oldest + 1)), size):
            if not wanted(latest):
                return
            execution = executions.apply(place)
            number = int(execution.executionId())
            if number > self._seen_until or number in self._open:
                self._seen_until = max(self._seen_until, number)
                self._open.add(number)
                if not execution.completionTime().isEmpty():
                    self._open.remove(number)
                    self._read_execution(number, str(execution.description()))

    def _read_execution(self, number: int, description: str) -> None:
        said = _BATCH.search(description)
        if said is not None and said.group(1) in self._runs:
            query, batch = self._runs[said.group(1)], int(said.group(2))
            self._read_batches[query] = max(batch, self._read_batches.get(query, -1))
            try:
                self._add(query, batch, self._rows_of(number))
            except Py4JJavaError as error:
                if error.java_exception.getClass().getName() != "java.util.NoSuchElementException":
                    raise  # else Spark has forgotten it since it was listed

    def _rows_of(self, execution: int) -> dict[str, int]:
        """Operator to rows. One that a query does twice has two probes with the same count, and stands once."""
        store = self._store
        counts = dict(_COUNT.findall(str(store.executionMetrics(execution).mkString("\n"))))
        rows: dict[str, int] = {}
        for operator, accumulator in self._probed(store.planGraph(execution)):
            if str(accumulator) in counts:
                rows.setdefault(operator, int(counts[str(accumulator)].replace(",", "")))
        return rows

    def _probed(self, graph: Any) -> Iterator[tuple[str, int]]:
        """(operator, accumulator of the rows that left it) of each probe in a plan."""
        drawing, nodes = str(graph.makeDotFile(self._session._jvm.scala.Predef.Map().empty())), graph.allNodes()
        for place, mark in enumerate(_marks(drawing)):
            if mark:
                yield self._operators[mark - 1], int(nodes.apply(place).metrics().apply(0).accumulatorId())

    def _add(self, query: str, batch: int, rows: dict[str, int]) -> None:
        for operator, before in self._alike.items():
            if before in rows:
                rows[operator] = rows[before]
        reported = [OperatorRows(query, batch, *each) for each in rows.items() if each[0] not in self._without]
        with self._adding:
            self._counted += reported


def _last_progress(running: Any) -> int:
    """The last batch that a query has told of, -1 where there is none. While it waits it tells of the batch to come,
    which has taken no time yet.
    """
    reported = running._jsq.recentProgress()
    batches = (reported[place] for place in range(len(reported) - 1, -1, -1))
    return next((int(one.batchId()) for one in batches if WORKED in one.durationMs()), -1)


def _sum(row: Any) -> int:
    """Of what rows state; none have said anything where there were none."""
    return 0 if row.isNullAt(0) else int(row.getLong(0))


def _mark(text: str) -> int:
    """The number of the probe that a node's text tells of, 0 where it is none."""
    found = _MARK.search(text)
    return int(found.group(1) or found.group(2)) if found is not None else 0


def _marks(drawing: str) -> Iterator[int]:
    """The number of each node's probe, 0 of one that is none, in Spark's order: a cluster follows its nodes."""
    within = False
    for line in drawing.splitlines():
        if _NODE.match(line):
            yield _mark(line)
        elif "subgraph cluster" in line:
            within = True
        elif within and line.strip() == "}":
            within = False
            yield 0
