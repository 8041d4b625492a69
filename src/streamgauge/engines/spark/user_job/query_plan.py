"""What a user job's analysed plan shows before the start: values that vary, and groups that see one micro-batch.

A separate module because only it reads Spark's JSON form of a plan.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

_PER_BATCH = {
    "FlatMapGroupsInPandas": "groupBy(...).applyInPandas(...)",
    "FlatMapGroupsInArrow": "groupBy(...).applyInArrow(...)",
}
_VARYING = {
    "CurrentTimestamp": "current_timestamp()", "CurrentTimestampLike": "current_timestamp()", "Now": "now()",
    "CurrentDate": "current_date()", "CurDateExpressionBuilder": "curdate()", "CurrentTime": "current_time()",
    "LocalTimestamp": "localtimestamp()", "Uuid": "uuid()", "Rand": "rand()", "Randn": "randn()",
    "RandStr": "randstr()", "Uniform": "uniform()", "Shuffle": "shuffle()",
    "MonotonicallyIncreasingID": "monotonically_increasing_id()", "SparkPartitionID": "spark_partition_id()",
}  # fmt: skip
"""Expressions whose values differ from run to run, even with a seed, by their class in Spark."""
_CONDITION = "a condition"


@dataclass(frozen=True)
class PlanTraits:
    """`per_batch`: the call that groups rows of one micro-batch alone, or empty. `varying`: (column, call) pairs."""

    per_batch: str
    varying: tuple[tuple[str, str], ...]


def traits_of(frame: DataFrame) -> PlanTraits:
    """What the plan of a streaming frame shows."""
    nodes: list[dict[str, Any]] = json.loads(frame._jdf.queryExecution().analyzed().toJSON())
    per_batch = next((call for node in nodes if (call := _PER_BATCH.get(_class(node)))), "")
    return PlanTraits(per_batch, tuple(pair for node in nodes for field in node.values() for pair in _varying(field)))


def _varying(field: Any, column: str = _CONDITION) -> Iterator[tuple[str, str]]:
    """The varying calls in a field of a node, each with the column that holds it. Expressions are in pre-order."""
    for part in field if isinstance(field, list) else ():
        if isinstance(part, list):
            yield from _varying(part, column)
        elif isinstance(part, dict):
            name = _class(part)
            column = str(part["name"]) if name == "Alias" else column
            if name in _VARYING:
                yield column, _VARYING[name]
            elif part.get("udfDeterministic") is False:
                yield column, f"{part.get('name') or 'a function'}(), which is marked as non-deterministic"


def _class(part: dict[str, Any]) -> str:
    return str(part.get("class", "")).rpartition(".")[2]
