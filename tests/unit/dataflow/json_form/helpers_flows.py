"""Flows for tests of the JSON form: one with every kind of node, and one with a process of any parameter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from streamgauge.conformance.cases import with_totals
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import count, flow, hop, session, source, table, tumble, union
from streamgauge.dataflow.nodes import Flow
from streamgauge.dataflow.operators.api import ROW, Processor

A = source("a", Schema.from_types(k="int", v="int", text="string"))
B = source("b", Schema.from_types(k="int", w="int"))
NAMES = table("names", {"k": [1, 2], "title": ["x", None]}, Schema.from_types(k="int", title="string"))


def every_node() -> Flow:
    """A flow with each kind of node that the builder makes."""
    words = A.explode(word="split(text, ' ')").where("word <> ''").lookup(NAMES, on="k", how="left")
    counts = words.window(hop("8s", "4s"), keys="word").aggregate(n="count(*)").top(3, by="n * 2", ties="word")
    pauses = A.window(session("30s"), keys="k").aggregate(n="count(*)")
    both = A.select(k="k", x="v").join(B, window=tumble("5s"), on="k")
    near = A.select(k="k", y="v").interval_join(B, on="k", earliest="-2s", latest="3s")
    moving = A.window(count(3, 1), keys="k").aggregate(mean="avg(v)")
    either = union(A.select(k="k"), B.select(k="k")).distinct(keys="k").running(keys="k", n="count(*)")
    streams = {"counts": counts, "pauses": pauses, "both": both, "near": near, "moving": moving, "either": either,
               "totals": with_totals(A.select(k="k", v="v"), B),
               "firsts": A.distinct(keys="k", window=tumble("1s"))}  # fmt: skip
    return flow(*(stream.sink(name) for name, stream in streams.items()))


@dataclass(frozen=True)
class Rule:
    """A parameter that is an object."""

    limits: tuple[float, ...]
    inner: Rule | None = None


class Picky(Processor):
    """Takes any parameter."""

    def __init__(self, rule: Any) -> None:
        self._rule = rule

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([batch.column("k"), pa.array(range(batch.num_rows))], ["k", ROW])


def picky(rule: Any) -> Flow:
    return A.process(Picky, reads="k", gives=Schema.from_types(k="int"), parameters={"rule": rule}).sink("out")
