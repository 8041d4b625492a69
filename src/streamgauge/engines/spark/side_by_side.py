"""One query for several sinks: each row once, as what it is for every sink, in one nullable struct column for each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamgauge.engines.spark.queries import aggregated, process_of, steps_to
from streamgauge.flow import expressions, schema
from streamgauge.flow.nodes import Node, Process, RunningAggregate, Select, Where
from streamgauge.flow.process import TIME

INPUT, KEPT, TAG, ROW = "_input", "_kept", "_tag", "_row"
OWN, TAKEN, RESULTS = "_own", "_taken", "_results"
WithResults = Callable[[Process, DataFrame], DataFrame]
"""Of a process and rows with the structs OWN and TAKEN: rows with OWN, and others with the process's RESULTS."""
Branch = tuple[Sequence[Select | Where], Iterable[str], str]
"""Row-wise steps, the columns after them, and the nullable struct column that they begin with; empty: all columns."""


def outputs(rows: DataFrame, branches: Sequence[Branch]) -> DataFrame:
    """A struct column for each branch, null where its conditions keep a row out; rows of no branch are left out.

    So one scan serves all sinks. What lies behind a condition is computed only where it holds, as it would be alone.
    """
    frame = rows.select(F.struct("*").alias(INPUT))
    made: list[str] = []
    for number, (steps, own, origin) in enumerate(branches):
        aside, begin = [INPUT, *made], f"{INPUT}.{origin}" if origin else INPUT
        frame = frame.select(*aside, F.col(begin).isNotNull().alias(KEPT), f"{begin}.*")
        for step in steps:
            if isinstance(step, Where):
                holds = F.when(F.col(KEPT), F.expr(step.predicate))
                frame = frame.withColumn(KEPT, F.coalesce(holds, F.lit(False)))
            else:
                chosen = [F.when(F.col(KEPT), F.expr(text)).alias(name) for name, text in step.columns]
                frame = frame.select(*aside, KEPT, *chosen)
        made.append(f"_sink_{number}")
        # A row's time goes along with it, whatever its columns are.
        struct = F.struct(*[F.col(f"{INPUT}.{TIME}" if name == TIME else f"`{name}`") for name in own])
        frame = frame.select(*aside, F.when(F.col(KEPT), struct).alias(made[-1]))
    return frame.select(*made).where(" OR ".join(f"{name} IS NOT NULL" for name in made))


def tagged(
    rows: DataFrame, shared: Node, aggregates: Sequence[RunningAggregate], with_results: WithResults
) -> DataFrame:
    """Running aggregates over one operator as a single one, by the number of each and its keys.

    `rows` are those of the node `shared`; `with_results` gives them the results of a process that some aggregates have
    behind it. What differs from one to the next are keys and aggregates: keys of one type share a column, and an
    aggregate that several have is computed once.
    """
    process = process_of(aggregates, shared)
    if process is None:
        branches = [(steps_to(node.input, shared), _taken(node), "") for node in aggregates]
    else:
        rows = with_results(process, _beside(rows, shared, aggregates, process))
        found = [process_of([node], shared) is not None for node in aggregates]
        branches = [
            (steps_to(node.input, process if mine else shared), _taken(node), RESULTS if mine else OWN)
            for node, mine in zip(aggregates, found, strict=True)
        ]
    return _aggregated(outputs(rows, branches), aggregates)


def _taken(node: RunningAggregate) -> list[str]:
    return list(dict.fromkeys((*node.keys, *aggregated(node))))


def _beside(rows: DataFrame, shared: Node, aggregates: Sequence[RunningAggregate], process: Process) -> DataFrame:
    """What aggregates without the process need of each row as one struct, what it takes as another one."""
    without = [node for node in aggregates if process_of([node], shared) is None]
    steps = [steps_to(node.input, shared) for node in without]
    read = {name for each in steps for step in each for text in _texts(step) for name in expressions.columns_of(text)}
    read |= {name for node in without for name in _taken(node)}
    own = [name for name in schema.columns(shared) if name in read]
    before = steps_to(process.inputs[0], shared)
    both = outputs(rows, [([], own, ""), (before, (*schema.columns(process.inputs[0]), TIME), "")])
    return both.toDF(OWN, TAKEN)


def _texts(step: Select | Where) -> list[str]:
    return [step.predicate] if isinstance(step, Where) else [text for _, text in step.columns]


def _aggregated(rows: DataFrame, aggregates: Sequence[RunningAggregate]) -> DataFrame:
    """The aggregates of rows with a nullable struct column for each, given in the same way."""
    places = [_places(node) for node in aggregates]
    kinds = {place: kind for of_node in places for place, kind in of_node.values()}
    inputs = {name: kind for node in aggregates for name, kind in aggregated(node).items()}
    each = []
    for number, (node, of_node) in enumerate(zip(aggregates, places, strict=True)):
        sink, mine = f"_sink_{number}", aggregated(node)
        key_of = {place: f"{sink}.`{name}`" for name, (place, _) in of_node.items()}
        columns = [_or_null(key_of.get(place), kind).alias(place) for place, kind in kinds.items()]
        columns += [
            _or_null(f"{sink}.`{name}`" if name in mine else None, kind).alias(name) for name, kind in inputs.items()
        ]
        each.append(F.when(F.col(sink).isNotNull(), F.struct(F.lit(number).alias(TAG), *columns)))
    exploded = rows.select(F.explode(F.array(*each)).alias(ROW)).where(f"{ROW} IS NOT NULL")
    texts = list(dict.fromkeys(text for node in aggregates for _, text in node.aggregates))
    computed = [F.expr(text).alias(f"_value_{number}") for number, text in enumerate(texts)]
    found = exploded.select(f"{ROW}.*").groupBy(TAG, *kinds).agg(*computed)
    sinks = []
    for number, (node, of_node) in enumerate(zip(aggregates, places, strict=True)):
        keys = [F.col(of_node[key][0]).alias(key) for key in node.keys]
        values = [F.col(f"_value_{texts.index(text)}").alias(name) for name, text in node.aggregates]
        sinks.append(F.when(F.col(TAG) == number, F.struct(*keys, *values)).alias(f"_sink_{number}"))
    return found.select(*sinks)


def _places(node: RunningAggregate) -> dict[str, tuple[str, str]]:
    """Key to (the column that it shares with keys of its type in other aggregates, its type)."""
    there, found = schema.columns(node.input), {}
    taken: dict[str, int] = defaultdict(int)
    for key in node.keys:
        kind = there[key]
        found[key] = (f"_key_{kind}_{taken[kind]}", kind)
        taken[kind] += 1
    return found


def _or_null(column: str | None, kind: str) -> Column:
    return F.col(column) if column is not None else F.lit(None).cast(kind)
