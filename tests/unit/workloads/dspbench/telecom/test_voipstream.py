"""VoIPSTREAM: worked by hand, against plain Python, by truth and class, exact and in filters, wherever batches end."""

import itertools
import math
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import source
from streamgauge.dataflow.nodes import Flow, Process
from streamgauge.engines.duckdb_oracle.engine import Oracle
from streamgauge.workloads import registry
from streamgauge.workloads.dspbench.telecom.voipstream import RATES, call_rates, global_acd, places
from streamgauge.workloads.helpers.decayed_sums import SHARDS, BloomFilter, Filter
from tests.unit.helpers_duckdb import duckdb_session
from tests.unit.workloads import helpers_cuts
from tests.unit.workloads.helpers_cuts import BOTH, answered, made, results_in_batches, without_truth

read: Any = registry.get("voipstream").read
Call = tuple[int | None, int | None, int | None, int | None]
"""(calling, called, duration, established); the n-th has event id n, and event time n where nothing else is said."""
Scores = tuple[float, float, float, float]
"""Score, FoFiR, URL, ACD."""
LONG = {"ecr_decay": 1e9, "ecr24_decay": 1e9, "acd_decay_factor": 1e9, "variation_memory": 1e9}
"""Nothing is forgotten while a test lasts, so that sums are counts."""


flow_of = cache(partial(helpers_cuts.flow_of, "voipstream"))


def table(calls: list[Call], times: list[int] | None = None) -> pa.Table:
    return helpers_cuts.table(calls, times, calling="int32", called="int32", duration="int32", established="int32")


def answer(flow: Flow, calls: list[Call], times: list[int] | None = None) -> dict[int, Scores]:
    """Event id to the scores of each result."""
    rows = answered(flow, {"calls": table(calls, times)}).to_pylist()
    assert [row["calling"] for row in rows] == [calls[row["event_id"]][0] for row in rows]
    return {row["event_id"]: (row["score"], row["fofir"], row["url"], row["acd"]) for row in rows}


@BOTH
def test_worked_by_hand(variant: Any) -> None:
    """Nothing decays; what is malformed or was not answered counts nowhere, and gives nothing."""
    calls: list[Call] = [
        (1, 2, 100, 1),  # 0: never called: 1; somebody new: 1; as long as all: 0
        (2, 1, 50, 1),  # 1: called once, calls once: 0; new: 1; 75 / 50 = 1.5: 0
        (1, 2, 100, 0),  # 2: not answered
        (1, 1, 10, 1), (None, 2, 10, 1), (1, None, 10, 1), (1, 2, -1, 1), (1, 2, 86_401, 1), (1, 2, None, 1),
        (-1, 2, 10, 1), (1, 2, 10, None),  # 3 to 10: malformed
        (3, 1, 10, 1),  # 11: 1; 1; (160 / 3) / 10 = 16/3, a fifteenth of the way from 5 to 10
        (1, 2, 100, 1),  # 12: 2 made, 2 received: 0; 1 of 2 new: 0; 65 / 100: 0: no result
        (3, 2, 0, 1),  # 13: 1; 1; 52 / 5 = 10.4: 1
        (3, 2, 26, 1),  # 14: 1; 2 of 3 new, a third of the way from a half to 1; (143 / 3) / 12 = 3.97: 0
        (2, 3, 50, 1),  # 15: 2 made, 4 received: 0; 1; 48 / 50: 0
        (2, 4, 50, 1),  # 16: 3 made, 4 received: 0; 1; 48.25 / 50: 0
        (3, 4, 6, 1),  # 17: 4 made, 1 received: a quarter; 3 of 4: a half; (392 / 9) / 10.5 = 4.1: 0
    ]  # fmt: skip
    expected = {
        0: (5, 1, 1, 0), 1: (3, 0, 1, 0), 11: (5.2, 1, 1, 1 / 15), 13: (8, 1, 1, 1), 14: (3, 1, 1 / 3, 0),
        15: (3, 0, 1, 0), 16: (3, 0, 1, 0), 17: (2, 0.25, 0.5, 0),
    }  # fmt: skip
    results = answer(variant(flow_of(scorer_threshold=0.001, **LONG)), calls)
    assert results == {number: pytest.approx(scores, abs=1e-9) for number, scores in expected.items()}


@BOTH
def test_sums_forget(variant: Any) -> None:
    """A call received one decay ago counts 1 / e to FoFiR; the sums of ACD have a decay of their own."""
    calls: list[Call] = [(2, 1, 100, 1), (1, 2, 100, 1), (1, 3, 20, 1)]
    results = answer(variant(flow_of(**LONG | {"ecr_decay": "10us"}, scorer_threshold=0.0)), calls, [0, 10, 15])
    received, made = math.exp(-1.5), 1 + math.exp(-0.5)
    assert results[1][1] == pytest.approx((1 / math.exp(-1) - 2) / 8)
    assert results[2][1] == pytest.approx((made / received - 2) / 8)
    assert results[2][3] == 0  # (220 / 3) / (120 / 2) is far below 5


@BOTH
def test_a_callee_is_new_again_when_forgotten(variant: Any) -> None:
    """In the second span of ten after the last call, not in the first."""
    calls: list[Call] = [(1, 2, 10, 1)] * 4
    flow = variant(flow_of(**LONG | {"variation_memory": "10us"}, scorer_threshold=0.0))
    results = answer(flow, calls, [0, 19, 39, 41])
    # Nobody calls 1, so FoFiR counts 2; new: 1 of 1, 1 of 2, 2 of 3, 2 of 4.
    assert [results[number][0] for number in range(4)] == pytest.approx([5, 2, 3, 2], abs=1e-9)


@BOTH
@pytest.mark.parametrize(("threshold", "count"), [(4.9, 1), (5.0, 0), (5.1, 0)])
def test_a_score_must_be_above_the_threshold(variant: Any, threshold: float, count: int) -> None:
    """Of 5, one below is passed; 5 itself and one above are not."""
    assert len(answer(variant(flow_of(scorer_threshold=threshold)), [(1, 2, 100, 1)])) == count


@BOTH
def test_calls_of_no_length(variant: Any) -> None:
    """Where all calls are empty nobody is brief; where only the caller's own are, he is as brief as can be."""
    flow = variant(flow_of(scorer_threshold=0.0, **LONG))
    assert answer(flow, [(1, 2, 0, 1)])[0] == pytest.approx((5, 1, 1, 0))
    assert answer(flow, [(3, 2, 10, 1), (1, 2, 0, 1)])[1] == pytest.approx((8, 1, 1, 1))


@BOTH
def test_a_weight_is_what_a_score_counts(variant: Any) -> None:
    """Each of the three its own."""
    weights = {"fofir_weight": 10.0, "url_weight": 100.0, "acd_weight": 1000.0}
    results = answer(variant(flow_of(scorer_threshold=0.0, **LONG, **weights)), [(3, 2, 10, 1), (1, 2, 0, 1)])
    assert results[1][0] == pytest.approx(1110)


def assert_alike(results: dict[int, Scores], expected: dict[int, Scores]) -> None:
    """A call that is not there has no score above 0."""
    nothing = (0.0, 0.0, 0.0, 0.0)
    for number in {*results, *expected}:
        given_, wanted = (each.get(number, nothing) for each in (results, expected))
        if number in results:
            assert given_ == pytest.approx(wanted, abs=1e-6), number
        else:
            assert wanted[0] == pytest.approx(0, abs=1e-6), number


PEOPLE = [1, 2, 65, 66, 129, 193]
"""Most of one shard, so that small filters mix them up."""
CALLS = st.lists(
    st.tuples(
        st.sampled_from([*PEOPLE, None]),
        st.sampled_from([*PEOPLE, -1]),
        st.sampled_from([0, 1, 5, 40, 300, None, -3]),
        st.sampled_from([1, 1, 1, 1, 0, None]),
    ),
    max_size=40,
)
STEPS = st.lists(st.integers(0, 9), min_size=40, max_size=40)
SHORT = {"ecr_decay": "20us", "ecr24_decay": "50us", "acd_decay_factor": "70us", "variation_memory": "30us"}
SHORTEST = {"ecr_decay": "1us", "ecr24_decay": "2us", "acd_decay_factor": "1us", "variation_memory": "3us"}
SMALL = {
    "filter": "bloom", "num_elements": 60, "buckets_per_element": 3, "variation_aprox_size": 60,
    "variation_error_rate": 0.25,
}  # fmt: skip
"""Two hashes each; in a shard, two cells for each of them, and a byte of bits."""
MEMORY = pytest.mark.parametrize("memory", [{}, SMALL], ids=["exact", "bloom"])


@MEMORY
@given(CALLS, STEPS, st.sampled_from([(SHORT, 0), (SHORTEST, 0), (SHORTEST, 480)]))
def test_class_and_truth_agree(
    memory: dict[str, Any], calls: list[Call], steps: list[int], pace: tuple[dict[str, str], int]
) -> None:
    """Whatever comes; also where the blocks of SQL begin, at 500 decays."""
    decays, start = pace
    times = list(itertools.accumulate(steps[: len(calls)], initial=start))[1:]
    flow = flow_of(scorer_threshold=0.0, **decays, **memory)
    assert_alike(answer(without_truth(flow), calls, times), answer(flow, calls, times))


RATED = Schema.from_types(party="int", calling="int", called="int", duration="int", gacd="double")


def rows_of(calls: list[tuple[int, int, int]], times: list[int]) -> tuple[pa.Table, list[int]]:
    """Two rows of each call (calling, called, duration), as `call_rates` gets them, and their times; `gacd` numbers
    them."""
    parties = [(party, *call) for call in calls for party in call[:2]]
    rows = [(*row, number, row[0] % SHARDS) for number, row in enumerate(parties)]
    types = {**dict.fromkeys(("party", "calling", "called", "duration"), "int32"), "gacd": "float64", "shard": "int32"}
    return helpers_cuts.table(rows, **types), [time for time in times for _ in range(2)]


def rates_flow(parameters: dict[str, Any]) -> Flow:
    return call_rates(source("parties", RATED), read(parameters)).sink("rates")


SOUND = st.lists(
    st.tuples(st.sampled_from(PEOPLE), st.sampled_from(PEOPLE), st.integers(0, 300)).filter(lambda c: c[0] != c[1]),
    max_size=40,
)


@MEMORY
@given(SOUND, STEPS, st.lists(st.integers(0, 380), max_size=5))
def test_rates_do_not_depend_on_where_batches_end(
    memory: dict[str, Any], calls: list[tuple[int, int, int]], steps: list[int], cuts: list[int]
) -> None:
    """Cut between any two times, with a snapshot into a fresh instance at every cut, as engines do."""
    rows, times = rows_of(calls, list(itertools.accumulate(steps[: len(calls)])))
    assert len(results_in_batches(rates_flow(SHORT | memory), rows, times, cuts, rel=1e-9)) == len(calls)


@given(st.lists(st.integers(0, 300), max_size=40), STEPS, st.lists(st.integers(0, 380), max_size=5))
def test_the_average_does_not_depend_on_where_batches_end(
    durations: list[int], steps: list[int], cuts: list[int]
) -> None:
    """The same of the global ACD."""
    calls = [("all", number, number, duration) for number, duration in enumerate(durations)]
    rows = helpers_cuts.table(calls, network="string", calling="int32", called="int32", duration="int32")
    schema = Schema.from_types(network="string", calling="int", called="int", duration="int")
    flow = global_acd(source("rows", schema), read(SHORT)).sink("averages")
    times = list(itertools.accumulate(steps[: len(durations)]))
    assert len(results_in_batches(flow, rows, times, cuts, rel=1e-9)) == len(durations)


@MEMORY
@given(SOUND, STEPS)
def test_rates_do_not_depend_on_how_many_instances_there_are(
    memory: dict[str, Any], calls: list[tuple[int, int, int]], steps: list[int]
) -> None:
    """By the keys of the flow, three instances give what one gives: whoever shares a cell is in one of them."""
    rows, times = rows_of(calls, list(itertools.accumulate(steps[: len(calls)])))
    flow = rates_flow(SHORT | memory)
    assert isinstance(flow.sink.input, Process)
    (key,), (before,) = flow.sink.input.keys, flow.sink.input.inputs
    rows = rows.set_column(rows.schema.get_field_index("event_time"), "event_time", pa.array(times, pa.int64()))
    keyed_flow = Flow((replace(flow.sink, input=before),))
    keyed = Oracle().answer(keyed_flow, {"parties": rows}, duckdb_session()).to_arrow_table().sort_by("gacd")
    parts = []
    for number in range(3):
        places = np.flatnonzero(keyed[key].to_numpy() % 3 == number)
        parts += results_in_batches(flow, keyed.take(pa.array(places)), [times[row] for row in places], [])
    whole = results_in_batches(flow, keyed, times, [])
    names = ("calling", "gacd", *RATES)
    assert [{name: row[name] for name in names} for row in sorted(parts, key=lambda row: row["gacd"])] == [
        pytest.approx({name: row[name] for name in names}, rel=1e-9, abs=1e-12) for row in whole
    ]


def test_a_filter_overestimates() -> None:
    """In one cell for each shard, who calls has received what all of his shard have; exactly, he has not."""
    rows, times = rows_of([(2, 1, 10), (2, 65, 10), (129, 2, 10)], [0, 1, 2])
    for memory, received in (({}, 0), ({"filter": "bloom", "num_elements": 1, "buckets_per_element": 1}, 2)):
        whole = results_in_batches(rates_flow(LONG | memory), rows, times, [])
        assert whole[-1]["rcr"] * LONG["ecr_decay"] == pytest.approx(received)


def test_sizes_of_filters_are_the_thesis_s() -> None:
    """Of pairs the thesis has 1 817 796 bits, seven each; of numbers 1 800 000 counters, seven each, in equal parts."""
    pairs, parties = places(read({"filter": "bloom"}))
    assert isinstance(pairs, BloomFilter)
    assert isinstance(parties, Filter)
    assert (pairs.hashes, parties.hashes) == (6, 7)
    assert pairs.width * SHARDS == pytest.approx(1_817_796, rel=0.06)
    assert parties.hashes * parties.width * SHARDS == pytest.approx(1_800_000, rel=0.001)


def test_telemarketers_are_found_and_few_others() -> None:
    """At the defaults: nearly all that is found is theirs, and of what is theirs nearly all is found."""
    flow, inputs = made("voipstream", 10_000.0, 2.0)
    rows = inputs["calls"]
    callers = answered(flow, inputs)["calling"].to_numpy()
    answered_calls = rows.filter(pc.equal(rows["established"], 1))["calling"].to_numpy()
    detected = np.count_nonzero(callers >= read({}).generator_population)
    assert detected / len(callers) > 0.9
    assert detected / np.count_nonzero(answered_calls >= read({}).generator_population) > 0.8
