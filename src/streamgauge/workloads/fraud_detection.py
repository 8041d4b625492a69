"""Fraud Detection (FD) [thesis §3.3.9]: customers whose last transactions follow each other as they seldom do.

A Markov model says how likely each state of a transaction follows another. The score of a customer's last
`state_seq_window_size` transactions is the mean probability that something else had followed (the thesis's
`missProbability`); above the threshold they are an outlier. The code's other two metrics are not here: one counts
misses only, the other never worked. A state that the model does not know is malformed: it is left out, as if it had not
come.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field

from streamgauge.events import Schema
from streamgauge.flow.keyed import Codes, Recent, load, save
from streamgauge.flow.process import ROW, Processor
from streamgauge.flow.stream import source
from streamgauge.load.fields import Key, StreamSpec
from streamgauge.load.malformed import with_malformed
from streamgauge.load.transactions import STATES, State, shares
from streamgauge.workloads.base import Job, Parameters, Workload, unless

GRID = 2**20
"""Probabilities are whole multiples of 1/2**20, so that sums of them are exact in any order."""
SAME_AMOUNT = 2.0
"""So much likelier is a state after one of the same amount."""
UNKNOWN_STATE = "???"
"""What a malformed transaction has, where it has a state at all."""


class FraudDetectionParameters(Parameters):
    """The thesis's parameters, and the customers."""

    state_seq_window_size: int = Field(
        5, ge=2, le=1000, description="how many of a customer's last transactions are scored together"
    )
    metric_threshold: float = Field(0.96, ge=0, le=1, description="a score above it is an outlier")
    customers: int = Field(10_000, ge=1, le=1_000_000, description="how many customers there are")
    frauds: float = Field(0.001, ge=0, le=1, description="share of the customers whose transactions are all planted")
    malformed: float = Field(0.001, ge=0, le=1, description="share of the transactions without a state that is known")


@lru_cache(maxsize=1)
def surprises() -> NDArray[np.float64]:
    """Of each state after each other one: how likely another had followed. Shape (18, 18), [before, state]."""
    same = np.array([[before[0] == state[0] for state in STATES] for before in STATES])
    likely = shares() * np.where(same, SAME_AMOUNT, 1.0)
    return 1 - np.rint(likely / likely.sum(axis=1, keepdims=True) * GRID) / GRID


class SequenceScore(Processor):
    """The score of each customer's last transactions, at every one that has enough before it."""

    def __init__(self, window: int, threshold: float) -> None:
        self._threshold, self._window = threshold, window
        self._states = Recent(window)

    def open(self, schema: pa.Schema) -> None:
        self._customers = Codes(schema.field("customer").type)

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        states = pc.index_in(batch.column("state"), pa.array(STATES)).to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(np.isfinite(states))
        customers = batch.column("customer").take(pa.array(rows))
        windows = self._states.add(self._customers.of(customers), states[rows].astype(np.float64))
        whole = np.flatnonzero(windows.counts == self._window)
        sequences = windows.values.astype(np.int64)[windows.end[whole, None] - self._window + np.arange(self._window)]
        scores = surprises()[sequences[:, :-1], sequences[:, 1:]].sum(axis=1) / (self._window - 1)
        found = np.flatnonzero(scores > self._threshold)
        at = whole[found]
        columns = [customers.take(pa.array(at)), pa.array(scores[found]), _joined(sequences[found]), pa.array(rows[at])]
        return pa.RecordBatch.from_arrays(columns, names=["customer", "score", "states", ROW])

    def snapshot(self) -> bytes:
        return save(customers=self._customers.keys, **self._states.state)

    def restore(self, state: bytes) -> None:
        saved = load(state)
        self._customers.restore(saved.pop("customers"))
        self._states.restore(**saved)


def _joined(sequences: NDArray[np.int64]) -> pa.Array:
    """Sequences of states, shape (n, window), as texts with commas between."""
    ends = np.arange(0, sequences.size + 1, sequences.shape[1], dtype=np.int32)
    return pc.binary_join(
        pa.ListArray.from_arrays(pa.array(ends), pa.array(STATES).take(pa.array(sequences.ravel()))), ","
    )


def truth(window: int, threshold: float) -> str:
    """The score as DuckDB SQL, with the model as a table of values."""
    model = ", ".join(
        f"('{before}', '{state}', {float(surprises()[row, column])!r}::DOUBLE)"
        for row, before in enumerate(STATES)
        for column, state in enumerate(STATES)
    )
    states = ", ".join(f"'{state}'" for state in STATES)
    last = f"OVER (PARTITION BY customer ORDER BY _row ROWS BETWEEN {window - 1} PRECEDING AND CURRENT ROW)"
    pairs = f"OVER (PARTITION BY customer ORDER BY _row ROWS BETWEEN {window - 2} PRECEDING AND CURRENT ROW)"
    return (
        f"WITH model(before, after, surprise) AS (VALUES {model}),"
        " steps AS (SELECT *, lag(state) OVER (PARTITION BY customer ORDER BY _row) AS before"
        f" FROM input WHERE state IN ({states})),"
        f" scored AS (SELECT customer, _row, sum(surprise) {pairs} / {window - 1} AS score,"
        f" list(state) {last} AS sequence"
        " FROM steps LEFT JOIN model ON steps.before = model.before AND steps.state = model.after)"
        " SELECT customer, score, array_to_string(sequence, ',') AS states, _row"
        f" FROM scored WHERE len(sequence) = {window} AND score > {threshold!r}::DOUBLE"
    )


def build(parameters: FraudDetectionParameters, rate_per_s: float) -> Job:
    customer = Key("customer", parameters.customers)
    state = State("state", customer, 0, parameters.frauds)
    transactions = StreamSpec(
        "transactions", (customer, with_malformed(state, parameters.malformed, None, UNKNOWN_STATE))
    )
    window, threshold = parameters.state_seq_window_size, parameters.metric_threshold
    outliers = source("transactions", transactions.schema).process(
        SequenceScore,
        keys="customer",
        gives=Schema.of(customer="int", score="double", states="string"),
        parameters={"window": window, "threshold": threshold},
        truth=truth(window, threshold),
        name="predictor",
    )
    known = ", ".join(f"'{state}'" for state in STATES)
    return Job(outliers.sink("outliers"), (transactions,), {"transactions": unless(f"state IN ({known})")})


WORKLOAD = Workload(
    name="fraud_detection",
    title="fraud detection",
    summary="customers whose last transactions follow each other as they seldom do",
    source="thesis §3.3.9",
    parameters=FraudDetectionParameters,
    build=build,
    prefix="fd",
)
