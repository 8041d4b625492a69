"""Fraud Detection: worked by hand, against plain Python, by truth and by class, and wherever batches end."""

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.dataflow.nodes import Flow
from streamgauge.loadgen.datasets.finance import STATES
from streamgauge.workloads.dspbench.finance.fraud_detection import likelihoods, steps
from tests.unit.workloads import helpers_cuts
from tests.unit.workloads.helpers_cuts import BOTH, answered, made, results_in_batches, table, without_truth

Event = tuple[int, str | None]
"""(customer, state); the n-th has event time and event id n."""


flow_of = partial(helpers_cuts.flow_of, "fraud_detection")
TYPES = {"customer": "int32", "state": "string"}


def missed(before: str, after: str) -> float:
    """How likely something else had followed."""
    return float(1 - likelihoods()[STATES.index(before), STATES.index(after)])


def answer(flow: Flow, events: list[Event]) -> dict[int, tuple[int, float, str]]:
    """Event id to (customer, score, states) of each outlier."""
    results = answered(flow, {"transactions": table(events, **TYPES)})
    return {row["event_id"]: (row["customer"], row["score"], row["states"]) for row in results.to_pylist()}


def test_the_model_says_that_something_follows() -> None:
    """Each state's row is whole, and a state after one of the same amount is the likelier."""
    likely = likelihoods()
    assert np.allclose(likely.sum(axis=1), 1, atol=1e-4)
    assert likely[STATES.index("HNL"), STATES.index("HHS")] > likely[STATES.index("LNL"), STATES.index("HHS")]


@BOTH
def test_worked_by_hand(variant: Any) -> None:
    """Three states are scored by their two steps; a customer's own alone; what the model does not know is left out."""
    events: list[Event] = [
        (1, "LNN"), (2, "HHS"), (1, "HHS"), (1, None), (1, "LHS"),  # 4: the first with three
        (1, "xyz"), (2, "HHS"), (1, "lnn"), (1, "LNN"),  # 8
        (2, "LNN"),  # 9
    ]  # fmt: skip
    results = answer(variant(flow_of(state_seq_window_size=3, metric_threshold=0.0)), events)

    def score(*states: str) -> float:
        return sum(missed(*step) for step in itertools.pairwise(states)) / 2

    assert {number: row[::2] for number, row in results.items()} == {
        4: (1, "LNN,HHS,LHS"), 8: (1, "HHS,LHS,LNN"), 9: (2, "HHS,HHS,LNN"),
    }  # fmt: skip
    assert results[4][1] == pytest.approx(score("LNN", "HHS", "LHS"))
    assert results[9][1] == pytest.approx(score("HHS", "HHS", "LNN"))


@BOTH
@pytest.mark.parametrize(("algorithm", "scores"), [
    ("missProbability", [0.845741, 0.997333]), ("entropyReduction", [0.879568, 0.993398]),
])  # fmt: skip
def test_a_score_is_of_the_shares_of_the_thesis_by_hand(variant: Any, algorithm: str, scores: list[float]) -> None:
    """LNL after LNN, of the same amount: 2 * 0.35 * 0.85 * 0.35 of 1 + 0.35 is 0.154259; HHS after LNN:
    0.12 * 0.15 * 0.2 of it is 0.002667. So something else follows with 0.845741 and 0.997333.

    -p ln p of both is 0.288329 and 0.015807, and of the whole row 2.394126 (all eighteen added up): something else has
    0.879568 and 0.993398 of it.
    """
    events: list[Event] = [(1, "LNN"), (1, "LNL"), (1, "LNN"), (1, "HHS")]
    flow = flow_of(state_seq_window_size=2, metric_threshold=0.0, **{"fd.detection.algorithm": algorithm})
    outliers = answer(variant(flow), events)
    assert [outliers[number][1] for number in (1, 3)] == pytest.approx(scores, abs=1e-5)


@BOTH
def test_a_score_must_be_above_the_threshold(variant: Any) -> None:
    """One just of the threshold is no outlier."""
    events: list[Event] = [(1, "LNN"), (1, "HHS")]
    score = missed("LNN", "HHS")
    assert answer(variant(flow_of(state_seq_window_size=2, metric_threshold=score)), events) == {}
    assert len(answer(variant(flow_of(state_seq_window_size=2, metric_threshold=score - 2**-20)), events)) == 1


@BOTH
def test_misses_by_hand(variant: Any) -> None:
    """After a state of amount M the likeliest is MNN, 2 * 0.53 * 0.85 * 0.45; after one of L it is LNN, as
    2 * 0.35 * 0.85 * 0.45 is 0.268, and MNN's 0.53 * 0.85 * 0.45 is 0.203. Of two steps here one is missed.
    """
    events: list[Event] = [(1, "MHL"), (1, "MNN"), (1, "MNN"), (1, "LNN"), (1, "LNN"), (1, "MNN")]
    flow = flow_of(state_seq_window_size=3, metric_threshold=0.0, **{"fd.detection.algorithm": "missRate"})
    results = answer(variant(flow), events)
    assert {number: (score, states) for number, (_, score, states) in results.items()} == {
        3: (0.5, "MNN,MNN,LNN"), 4: (0.5, "MNN,LNN,LNN"), 5: (0.5, "LNN,LNN,MNN"),
    }  # fmt: skip


@BOTH
def test_entropies_of_steps_are_added_before_they_are_divided(variant: Any) -> None:
    """Two steps from rows of different entropy: A / B, and not the mean of two quotients."""
    events: list[Event] = [(1, "LNN"), (1, "HHS"), (1, "HNN")]
    flow = flow_of(state_seq_window_size=3, metric_threshold=0.0, detection_algorithm="entropyReduction")
    parts, whole = steps("entropyReduction")
    first, second, third = (STATES.index(state) for _, state in events)
    assert whole[first] != whole[second]
    expected = (parts[first, second] + parts[second, third]) / (whole[first] + whole[second])
    assert answer(variant(flow), events)[2][1] == expected


EVENTS = st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["LNN", "HHS", "MHL", "", None])), max_size=40)


@given(EVENTS, st.integers(2, 5), st.sampled_from(["missProbability", "missRate", "entropyReduction"]))
def test_class_and_truth_agree(events: list[Event], window: int, algorithm: str) -> None:
    """Whatever comes, by each algorithm."""
    flow = flow_of(state_seq_window_size=window, metric_threshold=0.9, detection_algorithm=algorithm)
    assert answer(without_truth(flow), events) == answer(flow, events)


@given(EVENTS, st.lists(st.integers(0, 3), min_size=40, max_size=40), st.lists(st.integers(0, 130), max_size=5))
def test_the_answer_does_not_depend_on_where_batches_end(
    events: list[Event], steps: list[int], cuts: list[int]
) -> None:
    """Cut between any two times, with a snapshot into a fresh instance at every cut, as engines do."""
    times = list(itertools.accumulate(steps[: len(events)]))
    results_in_batches(flow_of(state_seq_window_size=3, metric_threshold=0.9), table(events, **TYPES), times, cuts)


def test_planted_customers_are_found_far_more_often_than_others() -> None:
    """About one window in a hundred of a usual customer is an outlier, about a third of a planted one's."""
    flow, inputs = made("fraud_detection", 20_000.0, 2.0, customers=200, frauds=0.1)
    shares = np.divide(*(
        np.bincount(rows["customer"], minlength=200) for rows in (answered(flow, inputs), inputs["transactions"])
    ))  # fmt: skip
    assert shares[:20].mean() > 10 * shares[20:].mean()
    assert shares[:20].min() > 3 * shares[20:].max()  # each of those that were planted, and no other
