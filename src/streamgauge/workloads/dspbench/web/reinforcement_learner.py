"""Reinforcement Learner (RL): the page to show in each session, learned from the rewards of pages so far.

Two streams meet in one operator: events, which ask a learner for an action, and rewards of actions. The learner is the
thesis's interval estimator:

- While any action has fewer than `min_reward_distr_sample` rewards, it chooses at random. Then it chooses the action
  with the greatest upper confidence bound.
- The bound of an action is the mean of its rewards plus a number of bins (at least one). `confidence_limit` percent of
  the rewards lie within that many bins on both sides of the mean.
- The limit falls by `reduction_step` for each `reduction_round_interval` rounds since its last fall, down to
  `min_confidence_limit`: exploration first, exploitation later. All of it is in whole numbers.

Decisions:

- The thesis shuffles events over all instances and broadcasts rewards to them. Each instance then learns from all
  rewards, but lowers its limit by its own rounds, so the answer depends on the parallelism.
- Here both streams are keyed by a learner with its own model and rounds. `learners=1` is the thesis's learner in one
  instance.
- An event sees the rewards before it in event time, but not those of its own time.
- The random action is a hash of the session, so that it can be verified.
- Ties between bounds are decided by the configured order of actions; the code takes the order of a hash table.

Not repeated from the thesis's code:

- It remembers the round in which random choice ended only while it writes a debug log. Otherwise that round is 1, and
  the limit falls to its floor at once.
- The loop is open here. In a closed loop (only the thesis's own engine has one) rewards follow the chosen actions. The
  input would then depend on the engine's answers and timing, could not be planned, and would spare a slow engine.
- The code's other learners crash, and are not implemented.

Malformed events have a learner, session or round that is null or negative, and get no action. Malformed rewards have no
learner, an unknown action, or a reward that is null or negative, and are ignored. There are `learners` learners; larger
numbers are malformed.

Exercises: a process of two inputs, the keyed form of a broadcast edge, and state that is read more than written. The
truth is DuckDB SQL, which finds bounds by window functions over bins and limits by recursion. So verification is
independent; its work grows with rewards times bins.

Source: Bordin 2017, section 3.3.12.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from streamgauge.core import errors
from streamgauge.core.arrays import Int64s
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import source
from streamgauge.dataflow.operators.api import INPUT, ROW, StateInAttributes
from streamgauge.dataflow.operators.grouped_arrays import group_by_key, group_starts
from streamgauge.loadgen.datasets.leads import DEVIATION_MAX, MEAN_MAX, Action, Owner, Reward, Round
from streamgauge.loadgen.fields import INT_MAX, Integer, InTurn, StreamSpec
from streamgauge.workloads.registry import Feature, Job, Parameters, Workload, unless

ACTIONS_MAX = 100
PIECE_CELLS = 2**19
"""Bounds are searched in tables of about this many counts (4 MiB), with a row for each new reward."""
NEVER = -1
"""Marks a learner that still chooses at random."""
MULTIPLIER, HASHED = 1_103_515_245, 2**32
"""Multiplier and modulus of the hash of a session, which uses the upper 16 bits. Products fit 63 bits."""


class ReinforcementLearnerParameters(Parameters):
    """The thesis's parameters, the learners and the rewards."""

    actions: str = Field("page1,page2,page3", description="the actions, in the order that decides ties")
    learners: int = Field(8, ge=1, le=1000, description="number of learners")
    bin_width: int = Field(1, ge=1, le=10_000, description="width of the bins of rewards")
    confidence_limit: int = Field(95, ge=1, le=100, description="initial percentage of the rewards within the bounds")
    min_confidence_limit: int = Field(50, ge=1, le=100, description="the same, at last")
    reduction_step: int = Field(5, ge=1, le=100, description="size of each fall of the confidence limit")
    reduction_round_interval: int = Field(
        50, ge=1, le=2**31 - 1, description="number of a learner's rounds between falls"
    )
    min_reward_distr_sample: int = Field(
        30, ge=1, le=1_000_000, description="number of rewards of each action that ends random choice"
    )
    random_seed: int = Field(0, ge=0, le=2**31 - 1, description="seed of the random choices")
    distribution: str = Field(
        "30/12,60/30,80/10", description="mean/standard deviation of each action's rewards, in the same order"
    )
    rewards: float = Field(0.02, gt=0, lt=1, description="share of the events of both streams that are rewards")
    malformed: float = Field(0.001, ge=0, le=1, description="share of the rewards without a learner")


@dataclass(frozen=True)
class Rule:
    """The learning rule: parameters of the workload by their names."""

    actions: tuple[str, ...]
    learners: int
    bin_width: int
    confidence_limit: int
    min_confidence_limit: int
    reduction_step: int
    reduction_round_interval: int
    min_reward_distr_sample: int
    random_seed: int


class Histogram:
    """The rewards of one action: the `counts` of the non-empty `bins` in ascending order, and the sum."""

    def __init__(self, width: int) -> None:
        self._width = width
        self.bins, self.counts = np.empty(0, np.int64), np.empty(0, np.int64)
        self.count, self.total = 0, 0

    def add(self, rewards: Int64s) -> None:
        new, counts = np.unique(rewards // self._width, return_counts=True)
        bins = np.union1d(self.bins, new)
        merged = np.zeros(len(bins), np.int64)
        merged[np.searchsorted(bins, self.bins)] += self.counts
        merged[np.searchsorted(bins, new)] += counts
        self.bins, self.counts = bins, merged
        self.count, self.total = self.count + len(rewards), self.total + int(rewards.sum())

    def uppers(self, new: Int64s, taken: Int64s, limits: Int64s) -> Int64s:
        """The upper bound at each of some moments, shape (len(taken),).

        At each, the first `taken` of the `new` rewards (ascending) had come, and the confidence limit was `limits`.
        """
        count = self.count + taken
        total = self.total + np.concatenate(([0], np.cumsum(new)))[taken]
        centre, needed = total // count // self._width, count * limits // 100
        edge = centre + self._offsets(new // self._width, taken, centre, needed)
        # With wide bins, a bound is the middle of its bin, truncated to a whole number.
        return edge if self._width == 1 else (2 * edge + 1) * self._width // 2

    def _offsets(self, new: Int64s, taken: Int64s, centre: Int64s, needed: Int64s) -> Int64s:
        """The number of bins on both sides of each centre that hold the needed rewards; at least one."""
        bins = np.union1d(self.bins, new)
        up_to = np.zeros(len(bins) + 1, np.int64)
        up_to[1 + np.searchsorted(bins, self.bins)] = self.counts
        up_to = np.cumsum(up_to)
        offsets = np.empty(len(taken), np.int64)
        step = max(PIECE_CELLS // len(up_to), 1)
        for start in range(0, len(new) + 1, step):
            table = _table(up_to, bins, new[start : start + step])
            low, high = np.searchsorted(taken, (start, start + step))
            offsets[low:high] = _reaching(table, taken[low:high] - start, bins, centre[low:high], needed[low:high])
            up_to = table[-1]
        return offsets


def _table(up_to: Int64s, bins: Int64s, new: Int64s) -> Int64s:
    """Cumulative rewards before each bin, and the total: a row before each of the `new` rewards, and one after them."""
    table = np.zeros((len(new) + 1, len(bins) + 1), np.int64)
    np.cumsum(new[:, None] <= bins, axis=0, out=table[1:, 1:])
    table += up_to
    return table


def _reaching(table: Int64s, rows: Int64s, bins: Int64s, centre: Int64s, needed: Int64s) -> Int64s:
    """`Histogram._offsets` for some rows of a table, by bisection between 1 and the farthest bin."""
    low = np.ones(len(rows), np.int64)
    high = np.maximum(np.maximum(bins[-1] - centre, centre - bins[0]), 1)
    while (low < high).any():
        middle = (low + high) // 2
        first = np.searchsorted(bins, centre - middle)
        last = np.searchsorted(bins, centre + middle, side="right")
        reached = table[rows, last] - table[rows, first] >= needed
        low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
    return low


class Learner:
    """A learner's state: a histogram of each action, its confidence limit, and the round of the limit's last fall."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self.histograms = [Histogram(rule.bin_width) for _ in rule.actions]
        self.limit, self.last_round = rule.confidence_limit, NEVER

    def learn(self, places: Int64s, rewards: Int64s, before: Int64s, rounds: Int64s) -> Int64s:
        """Takes new rewards (of the actions at `places`), and returns the indices of the chosen actions.

        For each event: `before` is the number of new rewards before it, then comes its round. The first events get
        none while there are too few rewards.
        """
        own = [np.flatnonzero(places == place) for place in range(len(self.histograms))]
        random = int(np.searchsorted(before, self._sample_complete(own, len(places))))
        chosen = self._best(rewards, own, before[random:], rounds[random:])
        for histogram, at in zip(self.histograms, own, strict=True):
            histogram.add(rewards[at])
        return chosen

    def _sample_complete(self, own: list[Int64s], new: int) -> int:
        """The number of new rewards until every action has its sample; one more than all if too few."""
        taken = 0
        for histogram, at in zip(self.histograms, own, strict=True):
            missing = self._rule.min_reward_distr_sample - histogram.count
            if missing > len(at):
                return new + 1
            if missing > 0:
                taken = max(taken, int(at[missing - 1]) + 1)
        return taken

    def _best(self, rewards: Int64s, own: list[Int64s], before: Int64s, rounds: Int64s) -> Int64s:
        """The index of the action with the greatest bound at each event; bounds change only with rewards and limits."""
        if not len(before):
            return before
        limits = self._limits(rounds)
        moments = np.flatnonzero((np.diff(before, prepend=-1) != 0) | (np.diff(limits, prepend=-1) != 0))
        uppers = [
            histogram.uppers(rewards[at], np.searchsorted(at, before[moments]), limits[moments])
            for histogram, at in zip(self.histograms, own, strict=True)
        ]
        best = np.argmax(np.stack(uppers), axis=0)  # ties: the first action
        return np.repeat(best, np.diff(moments, append=len(before)))

    def _limits(self, rounds: Int64s) -> Int64s:
        """The confidence limit at each event after random choice.

        The loop has one step for each fall, fewer than a hundred in a learner's life.
        """
        rule, limits = self._rule, np.full(len(rounds), self.limit, np.int64)
        if self.last_round == NEVER:
            self.last_round = int(rounds[0])
        # No earlier event has as high a round as the one where the limit falls, so the running maximum finds it.
        highest = np.maximum.accumulate(rounds)
        while self.limit > rule.min_confidence_limit:
            at = int(np.searchsorted(highest - self.last_round, rule.reduction_round_interval))
            if at == len(rounds):
                break
            intervals = (int(rounds[at]) - self.last_round) // rule.reduction_round_interval
            self.limit = max(self.limit - intervals * rule.reduction_step, rule.min_confidence_limit)
            self.last_round = int(rounds[at])
            limits[at:] = self.limit
        return limits


class IntervalEstimator(StateInAttributes):
    """The action that each event's learner chooses, by the learner's rewards before it."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._actions = pa.array(rule.actions)
        self._learners: defaultdict[int, Learner] = defaultdict(partial(Learner, rule))

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        learner, session, round_, reward = (_whole(batch, name) for name in ("learner", "session", "round", "reward"))
        place = pc.fill_null(pc.index_in(batch.column("action"), self._actions), -1).to_numpy().astype(np.int64)
        rewarded = batch.column(INPUT).to_numpy() == 1
        sound = np.where(rewarded, (place >= 0) & (reward >= 0), (session >= 0) & (round_ >= 0))
        rows = np.flatnonzero(sound & (learner >= 0) & (learner < self._rule.learners))
        mixed = (session + self._rule.random_seed) % HASHED * MULTIPLIER % HASHED
        chosen = (mixed >> 16) % len(self._actions)  # at random, unless a model has learned enough
        for own in _by_learner(learner, rows):
            is_reward = rewarded[own]
            rewards, events = own[is_reward], own[~is_reward]
            model = self._learners[int(learner[own[0]])]
            before = np.cumsum(is_reward)[~is_reward]
            best = model.learn(place[rewards], reward[rewards], before, round_[events])
            chosen[events[len(events) - len(best) :]] = best
        event_rows = pa.array(rows[~rewarded[rows]])
        columns = {name: batch.column(name).take(event_rows) for name in ("learner", "session", "round")}
        actions = self._actions.take(pa.array(chosen).take(event_rows))
        return pa.RecordBatch.from_pydict({**columns, "action": actions, ROW: event_rows})


def _whole(batch: pa.RecordBatch, name: str) -> Int64s:
    """A column of whole numbers, with -1 for null, because negative numbers are malformed here."""
    return np.asarray(pc.fill_null(batch.column(name), -1).to_numpy(), np.int64)


def _by_learner(learner: Int64s, rows: Int64s) -> Iterator[Int64s]:
    """The rows of each learner, in order."""
    if not len(rows):
        return
    order = rows[group_by_key(learner[rows])]
    yield from np.split(order, np.flatnonzero(group_starts(learner[order]))[1:])


def truth(rule: Rule) -> str:
    """The same, as DuckDB SQL.

    A bound is computed once for each action, number of rewards and limit: rewards are counted by bin (`held`), and by
    distance from the centre (`inside`). `limits` has the falls of a learner's limit, by recursion; `met` the distinct
    states in which events found their learner.
    """
    width, actions = rule.bin_width, len(rule.actions)
    place = " ".join(f"WHEN '{action}' THEN {number}" for number, action in enumerate(rule.actions))
    names = ", ".join(map(repr, rule.actions))
    mixed = f"((((session::BIGINT + {rule.random_seed}) % {HASHED}) * {MULTIPLIER}) % {HASHED})"
    bound = "edge" if width == 1 else f"((2 * edge + 1) * {width}) // 2"
    return f"""
    WITH RECURSIVE sound AS MATERIALIZED (
        SELECT row_number() OVER (ORDER BY _row) AS n, * FROM (
            SELECT _row, _input, learner, session, round, reward, CASE action {place} END AS place
            FROM input WHERE learner BETWEEN 0 AND {rule.learners - 1}
        ) WHERE CASE WHEN _input = 0 THEN session >= 0 AND round >= 0 ELSE place >= 0 AND reward >= 0 END
    ), rewards AS MATERIALIZED (
        SELECT n, learner, place, reward // {width} AS bin, row_number() OVER own AS k,
            (sum(reward) OVER own)::BIGINT AS total
        FROM sound WHERE _input = 1 WINDOW own AS (PARTITION BY learner, place ORDER BY n)
    ), ready AS (
        SELECT learner, max(n) AS since FROM rewards WHERE k = {rule.min_reward_distr_sample}
        GROUP BY learner HAVING count(*) = {actions}
    ), asked AS MATERIALIZED (
        SELECT n, sound.learner, round FROM sound JOIN ready ON sound.learner = ready.learner AND n > since
        WHERE _input = 0
    ), limits(learner, since, last_round, lim) AS (
        SELECT learner, min(n), arg_min(round, n), {rule.confidence_limit}::BIGINT FROM asked GROUP BY learner
        UNION ALL
        SELECT limits.learner, min(n), arg_min(round, n), greatest({rule.min_confidence_limit}, lim
            - {rule.reduction_step} * least((arg_min(round, n) - last_round) // {rule.reduction_round_interval}, 100))
        FROM limits JOIN asked ON asked.learner = limits.learner AND n > since
            AND round - last_round >= {rule.reduction_round_interval}
        WHERE lim > {rule.min_confidence_limit} GROUP BY limits.learner, last_round, lim
    ), limited AS (
        SELECT n, asked.learner, lim FROM asked ASOF JOIN limits ON asked.learner = limits.learner AND n >= since
    ), states AS MATERIALIZED (
        SELECT limited.n, limited.learner, lim, rewards.n AS latest
        FROM limited ASOF JOIN rewards ON limited.learner = rewards.learner AND limited.n >= rewards.n
    ), met AS (
        SELECT *, unnest(range({actions})) AS place FROM (SELECT DISTINCT learner, latest, lim FROM states)
    ), known AS MATERIALIZED (
        SELECT met.learner, latest, lim, met.place, k, total // k // {width} AS centre, k * lim // 100 AS needed
        FROM met ASOF JOIN rewards
        ON met.learner = rewards.learner AND met.place = rewards.place AND latest >= rewards.n
    ), counted AS (
        SELECT earned.learner, earned.place, k, hit.bin, count(*) FILTER (WHERE earned.bin = hit.bin) OVER (
            PARTITION BY earned.learner, earned.place, hit.bin ORDER BY k) AS held
        FROM rewards AS earned JOIN (SELECT DISTINCT learner, place, bin FROM rewards) AS hit
        ON earned.learner = hit.learner AND earned.place = hit.place
    ), around AS (
        SELECT learner, place, k, lim, centre, needed, abs(bin - centre) AS away,
            sum(held) OVER (PARTITION BY learner, place, k, lim ORDER BY abs(bin - centre)) AS inside
        FROM (SELECT DISTINCT learner, place, k, lim, centre, needed FROM known)
        JOIN counted USING (learner, place, k)
    ), edges AS (
        SELECT learner, place, k, lim, centre
            + CASE WHEN needed = 0 THEN 1 ELSE greatest(1, min(away) FILTER (WHERE inside >= needed)) END AS edge
        FROM around GROUP BY learner, place, k, lim, centre, needed
    ), chosen AS (
        SELECT learner, latest, lim, arg_max(place, {bound} * {actions} - place) AS place
        FROM known JOIN edges USING (learner, place, k, lim) GROUP BY learner, latest, lim
    )
    SELECT sound.learner, session, round, _row,
        [{names}][coalesce(chosen.place, ({mixed} // 65536) % {actions}) + 1] AS action
    FROM sound LEFT JOIN states ON sound.n = states.n
    LEFT JOIN chosen ON states.learner = chosen.learner AND states.latest = chosen.latest AND states.lim = chosen.lim
    WHERE _input = 0
    """


def build(parameters: ReinforcementLearnerParameters, rate_per_s: float) -> Job:
    names, earned = _checked(parameters)
    rule = Rule(actions=names, **parameters.model_dump(include=set(Rule.__dataclass_fields__) - {"actions"}))
    action = Action("action", names)
    event_fields = (InTurn("learner", rule.learners), Integer("session", 0, INT_MAX), Round("round", rule.learners))
    reward_fields = (Owner("learner", rule.learners, parameters.malformed), action, Reward("reward", action, 1, earned))
    events = StreamSpec("events", event_fields, 1 - parameters.rewards, "learner")
    rewards = StreamSpec("rewards", reward_fields, parameters.rewards, "learner")
    actions = source("events", events.schema).process(
        IntervalEstimator,
        source("rewards", rewards.schema),
        keys="learner",
        gives=Schema.from_types(learner="int", session="int", round="bigint", action="string"),
        parameters={"rule": rule},
        truth=truth(rule),
        name="learner",
    )
    is_valid_learner = f"learner BETWEEN 0 AND {rule.learners - 1}"
    malformed = {
        "events": unless(f"{is_valid_learner} AND session >= 0 AND round >= 0"),
        "rewards": unless(f"{is_valid_learner} AND action IN ({', '.join(map(repr, names))}) AND reward >= 0"),
    }
    return Job(actions.sink("actions"), (events, rewards), malformed)


def _checked(parameters: ReinforcementLearnerParameters) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...]]:
    """The actions with their means and deviations; InputError with every problem of actions and limits."""
    names = tuple(name.strip() for name in re.split("[,;]", parameters.actions))
    pairs = [pair.strip() for pair in re.split("[,;]", parameters.distribution)]
    plain = all(re.fullmatch(r"[A-Za-z0-9_.-]+", name) for name in names)
    read = [re.fullmatch("([0-9]{1,9})/([0-9]{1,9})", pair) for pair in pairs]
    earned = tuple((int(pair[1]), int(pair[2])) for pair in read if pair)
    in_range = all(mean <= MEAN_MAX and spread <= DEVIATION_MAX for mean, spread in earned)
    most = parameters.confidence_limit
    errors.refuse(errors.broken(
        errors.Rule(plain and 2 <= len(names) <= ACTIONS_MAX and len(set(names)) == len(names), "set actions",
         f"must be 2 to {ACTIONS_MAX} different names of letters, digits and _.-, separated by commas",
         parameters.actions, "--set actions=page1,page2,page3"),
        errors.Rule(len(earned) == len(names) and in_range, "set distribution",
         f"must be mean/deviation of each action, whole numbers up to {MEAN_MAX}/{DEVIATION_MAX}",
         parameters.distribution, "--set distribution=30/12,60/30,80/10"),
        errors.Rule(parameters.min_confidence_limit <= most, "set min_confidence_limit",
         f"must be at most confidence_limit ({most})", parameters.min_confidence_limit,
         f"--set min_confidence_limit={most}"),
    ))  # fmt: skip
    return names, earned


WORKLOAD = Workload(
    name="reinforcement_learner",
    title="reinforcement learner",
    summary="the page to show in each session, learned from the rewards of pages so far",
    source="Bordin 2017, section 3.3.12",
    parameters=ReinforcementLearnerParameters,
    build=build,
    features=(Feature.TWO_STREAMS, Feature.PYTHON),
    prefix="rl",
)
