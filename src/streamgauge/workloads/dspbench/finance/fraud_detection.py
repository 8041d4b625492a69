"""Fraud Detection (FD): customers whose last transactions form an unlikely sequence.

A Markov model gives the probability that one transaction state follows another. The score of a customer's last
`state_seq_window_size` transactions is A / B, both summed over the steps between them. A score above the threshold is
an outlier. `detection_algorithm` decides what each step adds:

- `missProbability`: to A the probability that another state had followed, to B 1
- `missRate`: to A 1 if another state was likelier, to B 1. Equally likely states all count as the likeliest; the
  thesis takes the first of them
- `entropyReduction`: to A the entropy of all other states that could have followed (the sum of -p ln p), to B that of
  all states. The thesis's code also counts misses here, from a table that it never creates, and crashes

A state unknown to the model is malformed and ignored.

Not implemented: model files (`fd.predictor.model`; the model comes from the shares of the data), and the thesis's
global mode (`fd.local.predictor=false`, sums over a customer's whole life).

The truth shares the model with the class: both take it from `likelihoods` and `steps`. So verification is independent
for the sequences of states and their sums, but not for what a step adds. Tests with hand-computed scores check that
part.

Source: Bordin 2017, section 3.3.9.
"""

from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from streamgauge.core.arrays import Floats
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import source
from streamgauge.dataflow.operators.api import ROW
from streamgauge.dataflow.operators.grouped_arrays import valid_mask
from streamgauge.loadgen.datasets.finance import STATES, State, shares
from streamgauge.loadgen.fields import Key, StreamSpec, joined, with_malformed
from streamgauge.workloads.helpers.last_values import OverLastValues
from streamgauge.workloads.registry import Feature, Job, Parameters, Workload, unless

GRID = 2**20
"""Probabilities and entropies are multiples of 1/2**20, so that their sums are exact in any order."""
SAME_AMOUNT = 2.0
"""Weight of a state after one of the same amount."""
IS_KNOWN = f"state IN ({', '.join(map(repr, STATES))})"
UNKNOWN_STATE = "???"
"""The state of a malformed transaction that is not null."""

Algorithm = Literal["missProbability", "missRate", "entropyReduction"]


class FraudDetectionParameters(Parameters):
    """The thesis's parameters and the customers'."""

    state_seq_window_size: int = Field(
        5, ge=2, le=1000, description="number of a customer's last transactions that are scored together"
    )
    detection_algorithm: Algorithm = Field(
        "missProbability", description=f"scoring rule: {', '.join(get_args(Algorithm))}"
    )
    metric_threshold: float = Field(0.96, ge=0, le=1, description="a score above it is an outlier")
    customers: int = Field(10_000, ge=1, le=1_000_000, description="number of customers")
    frauds: float = Field(0.001, ge=0, le=1, description="share of the customers whose transactions are all planted")
    malformed: float = Field(0.001, ge=0, le=1, description="share of the transactions without a known state")


@lru_cache(maxsize=1)
def likelihoods() -> Floats:
    """The probability of each state after each other one. Shape (18, 18), [before, state]."""
    same = np.array([[before[0] == state[0] for state in STATES] for before in STATES])
    likely = shares() * np.where(same, SAME_AMOUNT, 1.0)
    return _on_grid(likely / likely.sum(axis=1, keepdims=True))


@lru_cache(maxsize=3)
def steps(algorithm: Algorithm) -> tuple[Floats, Floats]:
    """What a step adds: to A, shape (18, 18), [before, state]; to B, shape (18,)."""
    likely = likelihoods()
    if algorithm == "missProbability":
        return 1 - likely, np.ones(len(STATES))
    if algorithm == "missRate":
        return (likely < likely.max(axis=1, keepdims=True)).astype(np.float64), np.ones(len(STATES))
    parts = _on_grid(-likely * np.log(likely))
    whole = parts.sum(axis=1)
    return whole[:, None] - parts, whole


def _on_grid(numbers: Floats) -> Floats:
    return np.asarray(np.rint(numbers * GRID) / GRID)


class SequenceScore(OverLastValues):
    """The score of each customer's last transactions, once there are enough."""

    key = "customer"

    def __init__(self, window: int, threshold: float, algorithm: Algorithm) -> None:
        super().__init__(window)
        self._threshold, self._window = threshold, window
        self._missed, self._whole = steps(algorithm)

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        states = pc.index_in(batch.column("state"), pa.array(STATES)).to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(np.isfinite(states) & valid_mask(batch.column("customer")))
        customers = batch.column("customer").take(pa.array(rows))
        windows = self._recent.add(self._keys.encode(customers), states[rows].astype(np.float64))
        whole = np.flatnonzero(windows.counts == self._window)
        sequences = windows.values.astype(np.int64)[windows.end[whole, None] - self._window + np.arange(self._window)]
        before, after = sequences[:, :-1], sequences[:, 1:]
        scores = self._missed[before, after].sum(axis=1) / self._whole[before].sum(axis=1)
        outliers = np.flatnonzero(scores > self._threshold)
        at = whole[outliers]
        return pa.RecordBatch.from_pydict(
            {
                "customer": customers.take(pa.array(at)),
                "score": scores[outliers],
                "states": joined(pa.array(STATES), sequences[outliers].ravel(), self._window, ","),
                ROW: rows[at],
            }
        )


def truth(window: int, threshold: float, algorithm: Algorithm) -> str:
    """The score as DuckDB SQL, with the class's model as a table of values."""
    missed, whole = steps(algorithm)
    model = ", ".join(
        f"('{before}', '{state}', {float(missed[row, column])!r}::DOUBLE, {float(whole[row])!r}::DOUBLE)"
        for row, before in enumerate(STATES)
        for column, state in enumerate(STATES)
    )
    last = f"OVER (PARTITION BY customer ORDER BY _row ROWS BETWEEN {window - 1} PRECEDING AND CURRENT ROW)"
    pairs = f"OVER (PARTITION BY customer ORDER BY _row ROWS BETWEEN {window - 2} PRECEDING AND CURRENT ROW)"
    return (
        f"WITH model(before, after, missed, whole) AS (VALUES {model}),"
        " pairs AS (SELECT *, lag(state) OVER (PARTITION BY customer ORDER BY _row) AS before"
        f" FROM input WHERE {IS_KNOWN} AND customer IS NOT NULL),"
        f" scored AS (SELECT customer, _row, sum(missed) {pairs} / sum(whole) {pairs} AS score,"
        f" list(state) {last} AS sequence"
        " FROM pairs LEFT JOIN model ON pairs.before = model.before AND pairs.state = model.after)"
        " SELECT customer, score, array_to_string(sequence, ',') AS states, _row"
        f" FROM scored WHERE len(sequence) = {window} AND score > {threshold!r}::DOUBLE"
    )


def build(parameters: FraudDetectionParameters, rate_per_s: float) -> Job:
    customer = Key("customer", parameters.customers)
    state = with_malformed(State("state", customer, 0, parameters.frauds), parameters.malformed, None, UNKNOWN_STATE)
    transactions = StreamSpec("transactions", (customer, state), key="customer")
    rule: dict[str, Any] = {
        "window": parameters.state_seq_window_size,
        "threshold": parameters.metric_threshold,
        "algorithm": parameters.detection_algorithm,
    }
    outliers = source("transactions", transactions.schema).process(
        SequenceScore,
        keys="customer",
        gives=Schema.from_types(customer="int", score="double", states="string"),
        parameters=rule,
        truth=truth(**rule),
        name="predictor",
    )
    malformed = {"transactions": unless(f"customer IS NOT NULL AND {IS_KNOWN}")}
    return Job(outliers.sink("outliers"), (transactions,), malformed)


WORKLOAD = Workload(
    name="fraud_detection",
    title="fraud detection",
    summary="customers whose last transactions form an unlikely sequence",
    source="Bordin 2017, section 3.3.9",
    parameters=FraudDetectionParameters,
    build=build,
    features=(Feature.FILTER, Feature.COUNT_WINDOW, Feature.LOOKUP, Feature.PYTHON),
    prefix="fd",
)
