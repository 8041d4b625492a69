"""Fraud Detection: worked by hand, against plain Python, by truth and by class, and wherever batches end."""

from __future__ import annotations

import itertools
import math
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workloads.cuts import whole_and_in_parts, without_truth

from streamgauge.engines.oracle import Oracle
from streamgauge.engines.oracle.process import is_independent
from streamgauge.errors import InputError
from streamgauge.flow.lineage import with_lineage
from streamgauge.flow.nodes import Flow
from streamgauge.load.plan import Plan
from streamgauge.load.rates import parse_profile
from streamgauge.load.transactions import STATES
from streamgauge.workloads import base
from streamgauge.workloads.fraud_detection import likelihoods, steps

WORKLOAD = base.get("fraud_detection")
Event = tuple[int, str | None]
"""(customer, state); the n-th has event time and event id n."""


def flow_of(**parameters: Any) -> Flow:
    return WORKLOAD.build(WORKLOAD.read(parameters), 1000.0).flow


def missed(before: str, after: str) -> float:
    """How likely something else had followed."""
    return float(1 - likelihoods()[STATES.index(before), STATES.index(after)])


def table(events: list[Event]) -> pa.Table:
    return pa.table({
        "customer": pa.array([customer for customer, _ in events], pa.int32()),
        "state": pa.array([state for _, state in events], pa.string()),
    })  # fmt: skip


def answer(flow: Flow, events: list[Event]) -> dict[int, tuple[int, float, str]]:
    """Event id to (customer, score, states) of each outlier."""
    numbers = pa.array(range(len(events)), pa.int64())
    rows = table(events).append_column("event_time", numbers).append_column("event_id", numbers)
    lineage = with_lineage(flow, ingest_time=False)
    found = Oracle().answer(lineage, {"transactions": rows}, duckdb.connect()).to_arrow_table()
    return {row["event_id"]: (row["customer"], row["score"], row["states"]) for row in found.to_pylist()}


BOTH = pytest.mark.parametrize("way", [lambda flow: flow, without_truth], ids=["truth", "class"])


def test_the_model_says_that_something_follows() -> None:
    """Each state's row is whole, and a state after one of the same amount is the likelier."""
    likely = likelihoods()
    assert np.allclose(likely.sum(axis=1), 1, atol=1e-4)
    assert likely[STATES.index("HNL"), STATES.index("HHS")] > likely[STATES.index("LNL"), STATES.index("HHS")]


@BOTH
def test_worked_by_hand(way: Any) -> None:
    """Three states are scored by their two steps; a customer's own alone; what the model does not know is left out."""
    events: list[Event] = [
        (1, "LNN"), (2, "HHS"), (1, "HHS"), (1, None), (1, "LHS"),  # 4: the first with three
        (1, "xyz"), (2, "HHS"), (1, "lnn"), (1, "LNN"),  # 8
        (2, "LNN"),  # 9
    ]  # fmt: skip
    found = answer(way(flow_of(state_seq_window_size=3, metric_threshold=0.0)), events)

    def score(*states: str) -> float:
        return sum(missed(*step) for step in itertools.pairwise(states)) / 2

    assert {number: row[::2] for number, row in found.items()} == {
        4: (1, "LNN,HHS,LHS"), 8: (1, "HHS,LHS,LNN"), 9: (2, "HHS,HHS,LNN"),
    }  # fmt: skip
    assert found[4][1] == pytest.approx(score("LNN", "HHS", "LHS"))
    assert found[9][1] == pytest.approx(score("HHS", "HHS", "LNN"))


@BOTH
def test_a_score_is_of_the_shares_of_the_thesis_by_hand(way: Any) -> None:
    """LNL after LNN, of the same amount: 2 * 0.35 * 0.85 * 0.35 of 1 + 0.35 is 0.154259; HHS after LNN:
    0.12 * 0.15 * 0.2 of it is 0.002667. So something else follows with 0.845741 and 0.997333.
    """
    events: list[Event] = [(1, "LNN"), (1, "LNL"), (1, "LNN"), (1, "HHS")]
    found = answer(way(flow_of(state_seq_window_size=2, metric_threshold=0.0)), events)
    assert [found[number][1] for number in (1, 3)] == pytest.approx([0.845741, 0.997333], abs=2e-6)


@BOTH
def test_a_score_must_be_above_the_threshold(way: Any) -> None:
    """One just of the threshold is no outlier."""
    events: list[Event] = [(1, "LNN"), (1, "HHS")]
    score = missed("LNN", "HHS")
    assert answer(way(flow_of(state_seq_window_size=2, metric_threshold=score)), events) == {}
    assert len(answer(way(flow_of(state_seq_window_size=2, metric_threshold=score - 2**-20)), events)) == 1


@BOTH
def test_misses_by_hand(way: Any) -> None:
    """After a state of amount M the likeliest is MNN, 2 * 0.53 * 0.85 * 0.45; after one of L it is LNN, as
    2 * 0.35 * 0.85 * 0.45 is 0.268, and MNN's 0.53 * 0.85 * 0.45 is 0.203. Of two steps here one is missed.
    """
    events: list[Event] = [(1, "MHL"), (1, "MNN"), (1, "MNN"), (1, "LNN"), (1, "LNN"), (1, "MNN")]
    flow = flow_of(state_seq_window_size=3, metric_threshold=0.0, **{"fd.detection.algorithm": "missRate"})
    found = answer(way(flow), events)
    assert {number: (score, states) for number, (_, score, states) in found.items()} == {
        3: (0.5, "MNN,MNN,LNN"), 4: (0.5, "MNN,LNN,LNN"), 5: (0.5, "LNN,LNN,MNN"),
    }  # fmt: skip


@BOTH
def test_entropy_by_hand(way: Any) -> None:
    """After LNN the probability of LNL is 0.154259, whose -p ln p is 0.288329, and of HHS 0.002667 with 0.015807. Of
    the whole row it is 2.394126 (all eighteen added up), so something else has 0.879568 and 0.993398 of it.
    """
    events: list[Event] = [(1, "LNN"), (1, "LNL"), (1, "LNN"), (1, "HHS")]
    flow = flow_of(state_seq_window_size=2, metric_threshold=0.0, **{"fd.detection.algorithm": "entropyReduction"})
    found = answer(way(flow), events)
    assert [found[number][1] for number in (1, 3)] == pytest.approx([0.879568, 0.993398], abs=1e-5)


@BOTH
def test_entropies_of_steps_are_added_before_they_are_divided(way: Any) -> None:
    """Two steps from rows of different entropy: A / B, and not the mean of two quotients."""
    events: list[Event] = [(1, "LNN"), (1, "HHS"), (1, "HNN")]
    flow = flow_of(state_seq_window_size=3, metric_threshold=0.0, detection_algorithm="entropyReduction")
    parts, whole = steps("entropyReduction")
    first, second, third = (STATES.index(state) for _, state in events)
    assert whole[first] != whole[second]
    expected = (parts[first, second] + parts[second, third]) / (whole[first] + whole[second])
    assert answer(way(flow), events)[2][1] == expected


def test_an_algorithm_that_there_is_not_is_refused() -> None:
    """With those that there are."""
    with pytest.raises(InputError, match="missProbability") as refused:
        WORKLOAD.read({"fd.detection.algorithm": "guess"})
    assert refused.value.problems[0].setting == "set detection_algorithm"


def mean_missed(states: list[str]) -> float:
    return sum(missed(*step) for step in itertools.pairwise(states)) / (len(states) - 1)


def miss_rate(states: list[str]) -> float:
    rows = [(likelihoods()[STATES.index(a)], STATES.index(b)) for a, b in itertools.pairwise(states)]
    return sum(row[state] < max(row) for row, state in rows) / len(rows)


def entropy_left(states: list[str]) -> float:
    rows = [(likelihoods()[STATES.index(a)].tolist(), STATES.index(b)) for a, b in itertools.pairwise(states)]
    left = sum(-p * math.log(p) for row, state in rows for place, p in enumerate(row) if place != state)
    return left / sum(-p * math.log(p) for row, _ in rows for p in row)


SCORES = {"missProbability": mean_missed, "missRate": miss_rate, "entropyReduction": entropy_left}
EVENTS = st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["LNN", "HHS", "MHL", "", None])), max_size=40)


@settings(deadline=None, max_examples=25)
@given(EVENTS, st.integers(2, 5), st.sampled_from(sorted(SCORES)))
def test_against_plain_python(events: list[Event], window: int, algorithm: str) -> None:
    """Truth and class both say what the definition says."""
    seen: dict[int, list[str]] = {}
    expected = {}
    for number, (customer, state) in enumerate(events):
        if state not in STATES:
            continue
        last = seen.setdefault(customer, [])
        last.append(state)
        score = SCORES[algorithm](last[-window:]) if len(last) >= window else 0
        if score > 0.9:
            expected[number] = (customer, pytest.approx(score, abs=1e-4), ",".join(last[-window:]))
    flow = flow_of(state_seq_window_size=window, metric_threshold=0.9, detection_algorithm=algorithm)
    for each in (flow, without_truth(flow)):
        assert answer(each, events) == expected


@settings(deadline=None, max_examples=50)
@given(EVENTS, st.lists(st.integers(0, 3), min_size=40, max_size=40), st.lists(st.integers(0, 130), max_size=5))
def test_the_answer_does_not_depend_on_where_batches_end(
    events: list[Event], steps: list[int], cuts: list[int]
) -> None:
    """Cut between any two times, with a snapshot into a fresh instance at every cut, as engines do."""
    times = list(itertools.accumulate(steps[: len(events)]))
    whole, parts = whole_and_in_parts(
        flow_of(state_seq_window_size=3, metric_threshold=0.9), table(events), times, cuts
    )
    assert parts == whole


def test_a_sequence_goes_on_beyond_the_end_of_its_batch() -> None:
    """Three states in three batches, with another customer's between: each scored as in one batch."""
    events: list[Event] = [(1, "LNN"), (2, "HHS"), (1, "HHS"), (2, "LNN"), (1, "LHS"), (1, "LNN")]
    flow = flow_of(state_seq_window_size=3, metric_threshold=0.0)
    whole, parts = whole_and_in_parts(flow, table(events), [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4])
    assert parts == whole
    assert [(row["customer"], row["states"]) for row in whole] == [(1, "LNN,HHS,LHS"), (1, "HHS,LHS,LNN")]


def test_verification_shares_nothing_with_the_class() -> None:
    """Truth is SQL."""
    assert is_independent(flow_of())


def test_planted_customers_are_found_far_more_often_than_others() -> None:
    """About one window in a hundred of a usual customer is an outlier, about a third of a planted one's."""
    flow, streams, _ = WORKLOAD.build(WORKLOAD.read({"customers": 200, "frauds": 0.1}), 20_000.0)
    plan = Plan(streams, parse_profile("constant", 20_000.0, 2.0), 0, 2.0, 2, 1)
    columns = ["customer", "state", "event_time", "event_id"]
    rows = pa.Table.from_batches([plan.batch(0, p, 0, plan.count_before(0, p, plan.end_us), columns) for p in range(2)])
    lineage = with_lineage(flow, ingest_time=False)
    found = Oracle().answer(lineage, {"transactions": rows}, duckdb.connect()).to_arrow_table()
    outliers, all_of = (np.bincount(each["customer"], minlength=200) for each in (found, rows))
    shares = outliers / all_of
    assert shares[:20].mean() > 10 * shares[20:].mean()
    assert shares[:20].min() > 3 * shares[20:].max()  # each of those that were asked for, and nobody else
