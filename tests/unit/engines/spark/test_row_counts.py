"""Which finished executions probes read, and what they make of their drawing; that Spark counts right is seen in
`tests/real/spark/test_row_counts.py`, and in trials (`tests/engine_conformance/spark_trials/test_whole_path.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from streamgauge.core.engine_reports import OperatorRows
from streamgauge.engines.spark import row_counts
from streamgauge.engines.spark.row_counts import RowCounters

RUN, OTHER = "01234567-89ab-cdef-0123-456789abcdef", "ffffffff-89ab-cdef-0123-456789abcdef"
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

    def __init__(self, executions: list[Any], to_come: Sequence[Any] = ()) -> None:
        self.executions, self.read, self.gone = executions, list[int](), dict[int, str]()
        self.to_come = list(to_come)

    def executionsList(self) -> Any:
        """One `to_come` is there the next time."""
        found = list(self.executions)
        self.executions += [self.to_come.pop(0)] if self.to_come else []
        return SimpleNamespace(size=lambda: len(found), apply=lambda place: found[place])

    def executionMetrics(self, number: int) -> Any:
        return SimpleNamespace(mkString=lambda separator: METRICS)

    def planGraph(self, number: int) -> Any:
        if number in self.gone:
            raise thrown(self.gone[number])
        self.read.append(number)
        return GRAPH


def thrown(name: str) -> Py4JJavaError:
    kind = SimpleNamespace(getName=lambda: name)
    gateway = SimpleNamespace(send_command=lambda command: "!xnothing")
    return Py4JJavaError("it failed", SimpleNamespace(_target_id="o1", _gateway_client=gateway, getClass=lambda: kind))


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


WITHOUT_A_LINE = ("WholeStageCodegen (1)", "InputAdapter")
SECOND, FIRST = "Filter (spark_partition_id() > -2)", "Filter ((price#1 > 5) AND (spark_partition_id() > -1))"


class Plan:
    """A plan that runs: a chain of nodes, each of which let a hundred rows through for every one before it."""

    def __init__(self, *nodes: str, text: str = "") -> None:
        self.nodes, self.text = nodes, text

    def treeString(self) -> str:
        return self.text or "\n".join(f"+- *(1) {node}" for node in self.nodes if node not in WITHOUT_A_LINE)

    def p(self, number: int) -> Any:
        if number >= len(self.nodes):
            return None
        metrics = {"numOutputRows": SimpleNamespace(value=lambda: 100 * number)}
        return SimpleNamespace(
            simpleString=lambda fields: self.nodes[number], metrics=lambda: SimpleNamespace(apply=metrics.__getitem__)
        )


PLAN = Plan("Project", WITHOUT_A_LINE[0], "Project", "Sort", WITHOUT_A_LINE[1], FIRST)
JVM = SimpleNamespace(scala=SimpleNamespace(Predef=SimpleNamespace(Map=lambda: SimpleNamespace(empty=lambda: None))))


class Frame:
    def where(self, condition: str) -> Frame:
        return self

    def observe(self, name: str, *values: Any) -> Frame:
        return self


def row_of(value: int | None) -> Any:
    return SimpleNamespace(isNullAt=lambda place: value is None, getLong=lambda place: value)


def running_one(plan: Any = PLAN, message: Mapping[str, int | None] | None = None) -> Any:
    """A query whose last batch observed what is `said`: name to sum."""
    known = message or {}

    def one(name: str) -> Any:
        return SimpleNamespace(isDefined=lambda: name in known, get=lambda: row_of(known[name]))

    last = SimpleNamespace(executedPlan=lambda: plan, observedMetrics=lambda: SimpleNamespace(get=one))
    return SimpleNamespace(_jsq=SimpleNamespace(streamingQuery=lambda: SimpleNamespace(lastExecution=lambda: last)))


def probed(store: Store, operators: Sequence[str] = ("purchases", "dear"), **more: Any) -> RowCounters:
    """Of one query with a source and a filter."""
    state = SimpleNamespace(sharedState=lambda: SimpleNamespace(statusStore=lambda: store))
    found = RowCounters(SimpleNamespace(_jsparkSession=state, _jvm=JVM), **more)
    for operator in operators:
        found.behind(operator, Frame())
    found.started("q0", reporting())
    return found


def reporting(reports: Sequence[Any] = (), run: str = RUN) -> Any:
    """A query that has told this progress."""
    return SimpleNamespace(runId=run, _jsq=SimpleNamespace(recentProgress=lambda: list(reports)))


def progress(batch: int, worked: bool = True, **message: int | None) -> Any:
    observed = {f"rows of {operator}": row_of(value) for operator, value in message.items()}
    return SimpleNamespace(
        batchId=lambda: batch,
        durationMs=lambda: {row_counts.WORKED: 1} if worked else {},
        observedMetrics=lambda: SimpleNamespace(get=observed.get),
    )


def read(found: RowCounters) -> list[OperatorRows]:
    found.read()
    return found.take()


def test_each_finished_batch_is_read_once() -> None:
    """Those that still run are looked at again; those of other queries and those that are no batch are passed over."""
    store = Store([execution(3, 0), execution(4, 9, run=OTHER), execution(5, 1), execution(6, 2, done=False)])
    found = probed(store)
    assert read(found) == [
        OperatorRows("q0", batch, operator, rows)
        for batch in (0, 1)
        for operator, rows in (("dear", 1234), ("purchases", 20_000))
    ]
    store.executions = [*store.executions[1:3], execution(6, 2), execution(7, 3)]
    assert {one.batch for one in read(found)} == {2, 3}
    assert store.read == [3, 5, 6, 7]


def test_a_batch_that_runs_keeps_none_of_another_query_from_being_read() -> None:
    """As where one query is in a long batch while another one has done several."""
    store = Store([execution(0, 0, run=OTHER, done=False), execution(1, 0), execution(2, 1)])
    found = probed(store)
    found.started("q1", reporting(run=OTHER))
    assert {(one.query, one.batch) for one in read(found)} == {("q0", 0), ("q0", 1)}
    assert read(found) == []
    store.executions[0] = execution(0, 0, run=OTHER)
    assert {(one.query, one.batch) for one in read(found)} == {("q1", 0)}
    assert store.read == [1, 2, 0]


def test_reported_batches_are_waited_for() -> None:
    """Spark tells of a batch before its execution can be read, but of the one to come when that is not there at all."""
    store = Store([execution(0, 0)], to_come=[execution(1, 9, run=OTHER), execution(2, 1)])
    found = probed(store)
    found.started("q0", reporting([progress(0), progress(1), progress(2, worked=False)]))
    assert {one.batch for one in read(found)} == {0, 1}
    assert store.to_come == []


def test_what_spark_never_keeps_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """It drops what its queue of events has no room for; what there is is read."""
    monkeypatch.setattr(row_counts, "RETENTION_S", 0.0)
    found = probed(Store([execution(0, 0)]))
    found.started("q0", reporting([progress(0), progress(1)]))
    assert {one.batch for one in read(found)} == {0}


def test_rows_that_stand_for_more_are_counted_by_what_they_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator of whom nothing was observed is left out; one that made no rows has made none."""
    monkeypatch.setattr(row_counts, "F", SimpleNamespace(sum=lambda column: column))
    found = probed(Store([]))
    for operator in ("long", "short", "elsewhere"):
        found.behind(operator, Frame(), rows="_rows")
    found.count_in("q0", running_one(message={"rows of long": 7, "rows of short": None}), 3)
    stated = {("long", 7), ("short", 0)}
    assert {(one.operator, one.rows) for one in found.take()} == {("purchases", 500), *stated}


def test_what_rows_state_stands_in_the_progress_of_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch once, with what gives as many rows; not again where batches count themselves. What Spark tells while
    it waits has the number of the batch to come, and nothing of it.
    """
    monkeypatch.setattr(row_counts, "F", SimpleNamespace(sum=lambda column: column))
    reports = [progress(0, words=3), progress(1, words=None), progress(2)]
    found = probed(Store([]), operators=())
    found.behind("words", Frame(), rows="_rows")
    found.alike("named", "words")
    found.started("q0", reporting(reports))
    expected = {(0, "words", 3), (0, "named", 3), (1, "words", 0), (1, "named", 0)}
    assert {(one.batch, one.operator, one.rows) for one in read(found)} == expected
    assert read(found) == []
    reports += [progress(2, words=5), progress(3)]
    assert {(one.batch, one.operator, one.rows) for one in read(found)} == {(2, "words", 5), (2, "named", 5)}
    found.count_in("q0", running_one(Plan("Project"), {"rows of words": 7}), 3)
    reports.append(progress(3, words=7))
    assert [(one.batch, one.operator, one.rows) for one in read(found)] == [(3, "words", 7), (3, "named", 7)]


def test_what_spark_has_forgotten_meanwhile_is_passed_over() -> None:
    """It may do so between the list and a look at what is in it; anything else that fails is told."""
    store = Store([execution(0, 0), execution(1, 1)])
    store.gone = {0: "java.util.NoSuchElementException"}
    found = probed(store)
    assert {one.batch for one in read(found)} == {1}
    store.executions.append(execution(2, 2))
    store.gone = {2: "java.lang.OutOfMemoryError"}
    with pytest.raises(Py4JJavaError):
        found.read()


def test_every_probe_is_found_by_its_mark() -> None:
    """Nodes around made code have numbers, and no lines."""
    found = probed(Store([]))
    nodes = (*WITHOUT_A_LINE, "Project", *WITHOUT_A_LINE, SECOND, "Project", *WITHOUT_A_LINE, FIRST)
    found.count_in("q0", running_one(Plan(*nodes)), 2)
    assert {(one.operator, one.rows) for one in found.take()} == {("dear", 500), ("purchases", 900)}


OPENED = "Generate posexplode(price#1), [_counted_7#2, false], false, [_counted_1#3, price#4]"
EXPLODED = "Generate explode(split(text#5, [_counted_1#6)), [_counted_1#3, price#4], true, [_counted_2#9]"


def test_a_node_that_makes_a_column_of_that_name_is_a_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what takes one along or computes with it. No filter is put behind the operator where it is done so; elsewhere
    there is one.
    """
    found = probed(Store([execution(0, 0)]), operators=())
    assert [found.column("purchases"), found.column("words")] == ["_counted_1", "_counted_2"]
    frame = Frame()
    assert found.behind("words", frame) is frame
    assert found._operators == ["purchases", "words"]
    other = "Generate explode(x#1), [_counted_2#9], false, [word#4]"
    found.count_in("q0", running_one(Plan("Project [_counted_2#9 AS word#10]", other, EXPLODED, OPENED)), 3)
    assert {(one.operator, one.rows) for one in found.take()} == {("words", 200), ("purchases", 300)}
    found.behind("words", frame)
    assert found._operators == ["purchases", "words", "words"]
    drawn = f'  4 [id="node4" label="Generate" tooltip="{OPENED}"];'
    monkeypatch.setitem(globals(), "DRAWING", "\n".join((*DRAWING.splitlines()[:-3], drawn, "}")))
    assert ("purchases", 20_000) in {(one.operator, one.rows) for one in read(found)}


def test_an_operator_that_computes_rows_anew_gives_as_many() -> None:
    """One after the other; what the rewrite adds is looked through and not told of, and nothing is said of one whose
    rows nobody counts.
    """
    found = probed(Store([]), without={"join.lineage"})
    for operator, before in (("join.lineage", "purchases"), ("named", "join.lineage"), ("other", "elsewhere")):
        found.alike(operator, before)
    found.count_in("q0", running_one(), 4)
    assert {(one.operator, one.rows) for one in found.take()} == {("purchases", 500), ("named", 500)}


def test_an_operator_that_spark_did_not_count_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where no task of its stage ran."""
    monkeypatch.setitem(globals(), "METRICS", "101 -> 3 ms\n104 -> 20,000")
    assert read(probed(Store([execution(0, 0)]))) == [OperatorRows("q0", 0, "purchases", 20_000)]


def test_without_probes_there_is_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a user job: neither store nor plan."""
    monkeypatch.setattr(row_counts, "WAITING_MAX", -1)
    found = probed(Store([execution(0, 0)]), operators=())
    found.read()
    found.keep_up()
    found.count_in("q0", None, 0)
    assert found.take() == []


def test_rows_are_handed_over_while_batches_count() -> None:
    """None is lost and none comes twice, whichever thread is first."""
    found, batches = probed(Store([])), range(2000)

    def count() -> None:
        for batch in batches:
            found.count_in("q0", running_one(), batch)

    counting = Thread(target=count)
    counting.start()
    taken = []
    while counting.is_alive():
        taken += found.take()
    taken += found.take()
    assert [one.batch for one in taken] == list(batches)
