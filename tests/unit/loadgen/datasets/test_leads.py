"""Leads: turns and rounds, rewards by their rule."""

from dataclasses import replace

import numpy as np
import pytest

from streamgauge.loadgen.datasets.leads import Action, Owner, Reward, Round
from streamgauge.loadgen.fields import InTurn
from streamgauge.loadgen.random import PhiloxBits, Uniform

BITS = PhiloxBits(seed=1, stream=1, partition=0, field=2)
ACTION = Action("action", ("page1", "page2", "page3"))
EARNED = ((30, 12), (60, 30), (80, 10))
REWARD = Reward("reward", ACTION, 1, EARNED)


def test_learners_take_turns_and_count_their_rounds() -> None:
    """Each learner once a round, and rounds of each are 1, 2, 3, ..."""
    learner, round_ = (field.column(BITS, 0, 9) for field in (InTurn("learner", 4), Round("round", 4)))
    assert learner.tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 0]
    assert round_.tolist() == [1, 1, 1, 1, 2, 2, 2, 2, 3]


def test_rewards_are_for_all_learners_alike_and_some_for_none() -> None:
    """A quarter without a learner, the others spread evenly."""
    owners = Owner("learner", 4, 0.25).column(BITS, 0, 20_000).to_pylist()
    assert owners.count(None) == pytest.approx(5000, abs=200)
    assert [owners.count(number) for number in range(4)] == pytest.approx([3750] * 4, abs=250)
    assert Owner("learner", 4, 0.25).nullable
    assert not Owner("learner", 4, 0.0).nullable


def test_rewards_have_the_mean_and_deviation_of_their_action() -> None:
    """Those of the rows whose action it is; nothing is below 0."""
    actions = np.array(ACTION.column(replace(BITS, field=1), 0, 60_000).to_pylist())
    rewards = REWARD.column(BITS, 0, 60_000)
    assert rewards.min() >= 0
    for name, (mean, deviation) in zip(ACTION.actions, EARNED, strict=True):
        own = rewards[actions == name]
        # What is cut to a whole number is half of one less on average; page2 loses some of its spread below 0.
        assert own.mean() == pytest.approx(mean - 0.5, abs=0.7)
        assert own.std() == pytest.approx(deviation, rel=0.04)


def test_a_reward_is_what_lead_gen_computes() -> None:
    """In Python's own numbers: the sum of twelve draws as a normal value, cut towards zero, at least 0."""
    sums = Uniform(99, 1).drawn(BITS.lanes(0, 12 * 500)).reshape(-1, 12).sum(axis=1).tolist()
    alone = Reward("reward", Action("action", ("page2",)), 1, ((60, 30),))
    expected = [max(0, int(((total - 600) * 30 + 60 * 100) / 100)) for total in sums]
    assert alone.column(BITS, 0, 500).tolist() == expected
    assert min(expected) < 20 < 100 < max(expected)
