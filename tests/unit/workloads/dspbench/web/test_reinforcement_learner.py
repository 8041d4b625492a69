"""Reinforcement Learner: worked by hand, against plain Python, by truth and by class, and wherever batches end."""

import itertools
from collections import Counter
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.errors import InputError
from streamgauge.dataflow import graph
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.dataflow.nodes import Flow, Process
from streamgauge.dataflow.operators.api import TIME
from streamgauge.workloads.dspbench.web import reinforcement_learner
from streamgauge.workloads.dspbench.web.reinforcement_learner import Histogram
from tests.unit.workloads import helpers_cuts
from tests.unit.workloads.helpers_cuts import BOTH, END, answered, in_batches, made, table, without_truth


class Event(NamedTuple):
    """An event; the n-th row of a test has event id n, and time n where nothing else is said."""

    learner: int | None
    session: int | None
    round: int | None


class Reward(NamedTuple):
    """A reward."""

    learner: int | None
    action: str | None
    reward: int | None


Row = Event | Reward
TYPES = {"learner": "int32", "session": "int32", "round": "int64", "action": "string", "reward": "int32"}
A_SESSION, B_SESSION = 0, 4
"""Of two actions, chance gives the first to session 0 (its hash is 0), and the second to session 4: 4 * 1103515245
mod 2**32 is 119093684, and that // 2**16 is 1817, which is odd.
"""
SMALL = {
    "actions": "a,b", "distribution": "30/12,60/30", "learners": 3, "min_reward_distr_sample": 2,
    "confidence_limit": 100, "min_confidence_limit": 50, "reduction_step": 25, "reduction_round_interval": 10,
}  # fmt: skip


flow_of = partial(helpers_cuts.flow_of, "reinforcement_learner")


def sides(rows: list[Row], times: list[int] | None = None) -> list[pa.Table]:
    """The events and the rewards among the rows."""
    both = []
    for kind in (Event, Reward):
        names = kind._fields
        values = [row if isinstance(row, kind) else [None] * len(names) for row in rows]
        places = [place for place, row in enumerate(rows) if isinstance(row, kind)]
        both.append(table(values, times, **{name: TYPES[name] for name in names}).take(pa.array(places, pa.int64())))
    return both


def answer(flow: Flow, rows: list[Row], times: list[int] | None = None) -> dict[int, str]:
    """Event id to action."""
    results = answered(flow, dict(zip(("events", "rewards"), sides(rows, times), strict=True)))
    return dict(zip(results["event_id"].to_pylist(), results["action"].to_pylist(), strict=True))


@BOTH
def test_worked_by_hand(variant: Any) -> None:
    """Chance, then the greatest bound, while the confidence limit falls from 100 over 75 to 50.

    Rounds begin at 101: a learner that took round 1 for the end of chance would be at 50 from the beginning (8).
    """
    rows: list[Row] = [
        Event(1, B_SESSION, 101),  # 0: b, by chance
        Reward(1, "a", 10),
        Reward(1, "a", 20),
        Reward(1, "b", 14),
        Event(1, A_SESSION, 102),  # 4: a by chance, since b has one reward only
        Reward(1, "b", 16),
        # 6: a has mean 15 and needs 2 of 2: both are 5 away, so 20. b has mean 15, both 1 away: 16.
        Event(1, B_SESSION, 103),
        Reward(1, "a", 0),
        # 8: round 9 since 103. a has mean 10 and needs 3 of 0, 10, 20: 10 away, 20. b 16. (At 50, a would have 11.)
        Event(1, B_SESSION, 112),
        # 9: round 10, so 75. a needs 225 // 100 = 2 of 3: 10 away, 20. b needs 1, which is 1 away: 16.
        Event(1, B_SESSION, 113),
        Event(1, B_SESSION, 122),  # 10: round 9 since 113, as before
        # 11: round 10, so 50. a needs 1, its centre itself, but takes one bin at least: 11. b 16.
        Event(1, A_SESSION, 123),
        Event(2, A_SESSION, 999),  # 12: a, another learner's chance
        Reward(1, "a", 16),
        # 14: a has 46 // 4 = 11 and needs 2 of 0, 10, 16, 20: 1 and 5 away, so 16 as b: the first of both.
        Event(1, B_SESSION, 124),
        Event(1, B_SESSION, 900),  # 15: it falls no further than 50
        Reward(1, "b", 16),
        # 17: b has 46 // 3 = 15 and needs 1: 1 away, 16. A tie still.
        Event(1, B_SESSION, 901),
        Reward(1, "b", 24),
        # 19: b has 70 // 4 = 17 and needs 2 of 14, 16, 16, 24: both 16 are 1 away, 18.
        Event(1, A_SESSION, 902),
    ]
    assert answer(variant(flow_of(**SMALL)), rows) == {
        0: "b", 4: "a", 6: "a", 8: "a", 9: "a", 10: "a", 11: "b", 12: "a", 14: "a", 15: "a", 17: "a", 19: "b",
    }  # fmt: skip


BEGUN: list[Row] = [Reward(0, "a", 10), Reward(0, "a", 20), Reward(0, "a", 0), Reward(0, "b", 14), Reward(0, "b", 16)]
"""As of the hand-worked example: a is best at 100 and 75, b at 50."""


@BOTH
@pytest.mark.parametrize(("events", "actions"), [
    ([(0, 4, 7), (0, 0, 27)], "ab"),
    ([(0, 4, 0), (0, 4, 15), (0, 4, 24), (0, 4, 3), (0, 0, 25)], "aaaab"),
    ([(0, 4, 0), (0, 4, 20), *[(0, 4, 3)] * 6], "abbbbbbb"),
])  # fmt: skip
def test_a_limit_falls_by_all_intervals_that_passed_and_counts_on_from_there(
    variant: Any, events: list[tuple[int, int, int]], actions: str
) -> None:
    """Twenty rounds at once are two intervals; after 15 rounds the next interval begins anew; rounds may go back, which
    does not raise a limit again.
    """
    rows: list[Row] = [*BEGUN, *(Event(*event) for event in events)]
    assert answer(variant(flow_of(**SMALL)), rows) == dict(enumerate(actions, len(BEGUN)))


@BOTH
def test_bins_of_several_values(variant: Any) -> None:
    """Needs all: by 1, a has 20 + 1 and b 22 + 1. By 10, a has bins 1 and 2 around 2, and b bin 2: 35 both, so a."""
    rows: list[Row] = [Reward(0, "a", 19), Reward(0, "a", 21), Reward(0, "b", 22), Reward(0, "b", 22)]
    assert answer(variant(flow_of(**SMALL)), [*rows, Event(0, A_SESSION, 1)]) == {4: "b"}
    assert answer(variant(flow_of(**SMALL | {"bin_width": 10})), [*rows, Event(0, B_SESSION, 1)]) == {4: "a"}


@BOTH
def test_bounds_reach_one_bin_to_both_sides_at_least(variant: Any) -> None:
    """Also where the centre alone holds enough, and where nothing is needed."""
    even: list[Row] = [
        Reward(0, "a", 5),
        Reward(0, "a", 5),
        Reward(0, "b", 4),
        Reward(0, "b", 6),
        Event(0, B_SESSION, 1),
    ]
    assert answer(variant(flow_of(**SMALL)), even) == {4: "a"}  # 5 + 1 both
    low = SMALL | {"min_reward_distr_sample": 1, "confidence_limit": 40, "min_confidence_limit": 40}
    # Of a, 40 // 100 = 0 of 1 are needed: 5 + 1. Of b 120 // 100 = 1 of 3, around 5: 5 + 1.
    single: list[Row] = [Reward(0, "a", 5), *(Reward(0, "b", reward) for reward in (4, 6, 6)), Event(0, B_SESSION, 1)]
    assert answer(variant(flow_of(**low)), single) == {4: "a"}
    # Of a, 80 // 100 = 0 of 2 are needed: 10 + 1, though neither is near. Of b none: 15 + 1.
    apart: list[Row] = [Reward(0, "a", 0), Reward(0, "a", 20), Reward(0, "b", 15), Event(0, A_SESSION, 1)]
    assert answer(variant(flow_of(**low)), apart) == {3: "b"}


@BOTH
def test_what_is_malformed_changes_no_learner_and_has_no_action(variant: Any) -> None:
    """Each of these rewards would end the time of chance, in which session 0 gets a; after it, b is the better one."""
    flow = variant(flow_of(**SMALL))
    begun: list[Row] = [Reward(0, "a", 5), Reward(0, "a", 5), Reward(0, "b", 50)]
    malformed: list[Row] = [
        Reward(None, "b", 50), Reward(0, None, 50), Reward(0, "c", 50), Reward(0, "", 50), Reward(0, "b", None),
        Reward(0, "b", -1), Reward(3, "b", 50), Reward(-1, "b", 50),
        Event(None, 0, 1), Event(0, None, 1), Event(0, 0, None), Event(3, 0, 1), Event(-1, 0, 1), Event(0, -1, 1),
        Event(0, 0, -1),
    ]  # fmt: skip
    end = len(begun) + len(malformed)
    assert answer(flow, [*begun, *malformed, Event(0, 0, 1)]) == {end: "a"}
    assert answer(flow, [*begun, *malformed, Reward(0, "b", 50), Event(0, 0, 1)]) == {end + 1: "b"}


@BOTH
def test_an_event_does_not_know_the_rewards_of_its_own_time(variant: Any) -> None:
    """Whatever their order; one microsecond later it does."""
    flow = variant(flow_of(**SMALL))
    rows: list[Row] = [
        Reward(0, "a", 5),
        Reward(0, "a", 5),
        Reward(0, "b", 50),
        Reward(0, "b", 50),
        Event(0, 0, 1),
        Event(0, 0, 2),
    ]
    assert answer(flow, rows, [1, 1, 1, 2, 2, 3]) == {4: "a", 5: "b"}


@BOTH
def test_chance_is_decided_by_the_session_and_the_seed(variant: Any) -> None:
    """The same session gets the same, all actions come alike, and another seed gives others."""
    rows: list[Row] = [Event(number % 3, number // 2 * 7919, number) for number in range(600)]
    results = list(answer(variant(flow_of()), rows).values())
    assert results[::2] == results[1::2]
    assert all(150 < count < 250 for count in Counter(results).values())
    other = list(answer(variant(flow_of(random_seed=77)), rows).values())
    assert 200 < sum(one != another for one, another in zip(results, other, strict=True)) < 600


def upper_in_python(rewards: list[int], width: int, limit: int) -> int:
    """The thesis's loop: away from the centre, bin by bin to both sides, until there are enough."""
    bins = Counter(reward // width for reward in rewards)
    centre = sum(rewards) // len(rewards) // width
    needed, inside, met, offset = len(rewards) * limit // 100, bins[centre], int(centre in bins), 1
    while met < len(bins):
        for near in (centre + offset, centre - offset):
            inside, met = inside + bins[near], met + (near in bins)
        if inside >= needed:
            break
        offset += 1
    return int((centre + offset + (0.5 if width > 1 else 0)) * width)


LEARNER = st.sampled_from([0, 0, 0, 0, 1, 1, None, 2])
EVENTS = st.builds(Event, LEARNER, st.sampled_from([0, 4, 5, 9, None]), st.integers(0, 40))
REWARDS = st.builds(Reward, LEARNER, st.sampled_from(["a", "b", "a", "b", "c", None]), st.integers(-1, 12))
ROWS = st.lists(EVENTS | REWARDS, max_size=60)
RULES = st.fixed_dictionaries({
    "actions": st.just("a,b"), "distribution": st.just("30/12,60/30"), "learners": st.just(2),
    "min_reward_distr_sample": st.integers(1, 3), "bin_width": st.integers(1, 3),
    "confidence_limit": st.integers(60, 100), "min_confidence_limit": st.integers(1, 60),
    "reduction_step": st.integers(1, 20), "reduction_round_interval": st.integers(1, 15),
    "random_seed": st.integers(0, 3),
})  # fmt: skip


@given(ROWS, RULES)
def test_class_and_truth_agree(rows: list[Row], rule: dict[str, Any]) -> None:
    """Whatever comes."""
    flow = flow_of(**rule)
    assert answer(without_truth(flow), rows) == answer(flow, rows)


def in_parts(flow: Flow, rows: list[Row], times: list[int], cuts: list[int]) -> list[dict[str, Any]]:
    """The results in batches up to each cut, with a snapshot into a fresh instance at each."""
    node = next(each for each in graph.walk(with_lineage(flow).sink.input) if isinstance(each, Process))
    inputs = [
        side.append_column("ingest_time", side["event_id"]).append_column(TIME, side["event_time"])
        for side in sides(rows, times)
    ]
    return in_batches(node, inputs, [*cuts, END]).to_pylist()


@given(ROWS, RULES, st.lists(st.integers(0, 3), min_size=60, max_size=60), st.lists(st.integers(0, 120), max_size=6))
def test_the_answer_does_not_depend_on_where_batches_end(
    rows: list[Row], rule: dict[str, Any], steps: list[int], cuts: list[int]
) -> None:
    """Cut between any two times, with a snapshot into a fresh instance at every cut, as engines do."""
    times = list(itertools.accumulate(steps[: len(rows)]))
    flow = flow_of(**rule)
    assert in_parts(flow, rows, times, cuts) == in_parts(flow, rows, times, [])


@pytest.mark.parametrize("cells", [1, 7, 64, 2**19])
def test_bounds_do_not_depend_on_how_they_are_cut_into_pieces(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each of many moments, as the thesis's loop has it; with some rewards known before."""
    monkeypatch.setattr(reinforcement_learner, "PIECE_CELLS", cells)
    random = np.random.default_rng(1)
    for width in (1, 4):
        old, new = random.integers(0, 90, 25), random.integers(30, 120, 60)
        taken = np.sort(random.integers(0, 61, 80))
        limits = random.integers(1, 101, 80)
        histogram = Histogram(width)
        histogram.add(old)
        expected = [
            upper_in_python([*old.tolist(), *new[:count].tolist()], width, limit)
            for count, limit in zip(taken.tolist(), limits.tolist(), strict=True)
        ]
        assert histogram.uppers(new, taken, limits).tolist() == expected


TIME_AND_ID = [("event_time", "ascending"), ("event_id", "ascending")]


@pytest.mark.parametrize(
    "variant", [pytest.param(lambda flow: flow, marks=pytest.mark.long), without_truth], ids=["truth", "class"]
)
def test_in_the_long_run_it_is_the_third_page(variant: Any) -> None:
    """A third by chance; then page2, whose rewards spread widest, while the limit is high; page3, the best, at last.

    At 95 % its bound is about 60 + 2 * 30 against 80 + 2 * 10 of page3, at 50 % about 60 + 20 against 80 + 7.
    """
    flow, inputs = made("reinforcement_learner", 10_000.0, 6.0, learners=2, rewards=0.1, reduction_round_interval=400)
    chosen = answered(variant(flow), inputs).sort_by(TIME_AND_ID)["action"].to_numpy()
    by_chance, curious, later = chosen[:500], chosen[2500:3200], chosen[len(chosen) // 2 :]
    assert 0.25 < np.mean(by_chance == "page3") < 0.42
    assert np.mean(curious == "page2") > 0.9
    assert np.mean(later == "page3") > 0.95


def test_all_problems_come_at_once() -> None:
    """Three parameters, three problems."""
    with pytest.raises(InputError) as refused:
        flow_of(actions="", distribution="", confidence_limit=10)
    assert len(refused.value.problems) == 3
