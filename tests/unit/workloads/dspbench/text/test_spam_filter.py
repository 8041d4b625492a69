"""Spam Filter: worked by hand, against plain Python, by truth and by class, and wherever batches end."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.schema import Schema
from streamgauge.dataflow import graph, schema
from streamgauge.dataflow.builder import source
from streamgauge.dataflow.lineage import identity
from streamgauge.dataflow.nodes import Flow
from streamgauge.dataflow.reach import reach_us
from streamgauge.loadgen.datasets.texts import Message
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.random import PhiloxBits
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.workloads import registry
from streamgauge.workloads.dspbench.text.spam_filter import (
    bayes_rule,
    each_word,
    training_sum,
    word_map,
    word_probability,
)
from tests.unit.workloads.helpers_cuts import BOTH, answered, made, whole_and_in_parts, without_truth

WORKLOAD = registry.get("spam_filter")
SPAM, HAM, NO_LABEL, JUDGE = "spam", "ham", "no label", "judge"
Mail = tuple[str, str | None]
"""(what it is, its text); the n-th has event id n, id 100 + n and, if nothing else is said, event time n."""
KELVIN = "\u212a"
"""A sign whose small letter is k."""
_LABELS = {SPAM: True, HAM: False, NO_LABEL: None}


def flow_of(**parameters: Any) -> Flow:
    return WORKLOAD.build(WORKLOAD.read(parameters), 1000.0).flow


def tables(mails: list[Mail], times: list[int] | None = None) -> dict[str, pa.Table]:
    """The two streams."""
    rows = list(zip(range(len(mails)), times or range(len(mails)), mails, strict=True))
    streams = {
        "training": [row for row in rows if row[2][0] != JUDGE],
        "analysis": [row for row in rows if row[2][0] == JUDGE],
    }
    found = {
        name: pa.table({
            "id": pa.array([100 + number for number, _, _ in kept], pa.int64()),
            "message": pa.array([text for _, _, (_, text) in kept], pa.string()),
            "event_time": pa.array([time for _, time, _ in kept], pa.int64()),
            "event_id": pa.array([number for number, _, _ in kept], pa.int64()),
        })
        for name, kept in streams.items()
    }  # fmt: skip
    labels = pa.array([_LABELS[kind] for _, _, (kind, _) in streams["training"]], pa.bool_())
    found["training"] = found["training"].append_column("spam", labels)
    return found


def answer(flow: Flow, inputs: Mapping[str, pa.Table]) -> list[dict[str, Any]]:
    """The flow's results with their lineage, by event id."""
    return answered(flow, dict(inputs)).to_pylist()


def verdicts(flow: Flow, mails: list[Mail], times: list[int] | None = None) -> dict[int, tuple[Any, bool]]:
    """Of each judged mail's event id: the probability, and whether it is taken for spam."""
    rows = answer(flow, tables(mails, times))
    assert [row["id"] for row in rows] == [100 + row["event_id"] for row in rows]
    found = {row["event_id"]: (row["spam_probability"], row["is_spam"]) for row in rows}
    assert len(found) == len(rows)
    return found


def about(number: float) -> Any:
    return pytest.approx(number, rel=1e-12)


@BOTH
def test_worked_by_hand(way: Any) -> None:
    """A word: rate in spam / (rate in spam + twice the rate in ham), from 0.01 to 0.99; an unknown one 0.4."""
    mails: list[Mail] = [
        (JUDGE, "buy"),  # 0: nothing was learned yet: 0.4
        (SPAM, "Buy now, BUY!"),  # 1: 3 words of spam
        (JUDGE, "now"),  # 2: 1/3 of spam and no ham: 1, so 0.99
        (HAM, "see-you now"),  # 3: 3 words of ham
        (JUDGE, "buy it NOW now"),  # 4: buy 0.99; it 0.4; now 1/3 / (1/3 + 2 * 1/3) = 1/3, and once only
        (JUDGE, "See it"),  # 5: see 0.01; it 0.4
        (NO_LABEL, "it it it it"),  # 6: malformed
        (SPAM, None),  # 7: teaches nothing
        (HAM, "..."),  # 8: teaches nothing
        (JUDGE, None),  # 9: no word
        (JUDGE, " -- \n"),  # 10: no word
        (JUDGE, "it"),  # 11: still unknown
        (SPAM, f"now x_1 é {KELVIN} \u01302"),  # 12: 6 words of spam: now, x_1, 2; of other letters there are none
        (JUDGE, "now"),  # 13: 2/6 of spam, 1/3 of ham: 1/3 / (1/3 + 2/3)
        (JUDGE, "x_1 x 1"),  # 14: 0.99; unknown, unknown
        (JUDGE, "buy"),  # 15: 0.99
    ]
    assert verdicts(way(flow_of()), mails) == {
        0: (about(0.4), False),
        2: (about(0.99), True),
        4: (about(0.132 / 0.136), True),  # 0.99 * 0.4 / 3 = 0.132 and 0.01 * 0.6 * 2 / 3 = 0.004
        5: (about(0.004 / 0.598), False),  # 0.01 * 0.4 and 0.99 * 0.6
        9: (0.5, False),
        10: (0.5, False),
        11: (about(0.4), False),
        13: (about(1 / 3), False),
        14: (about(0.1584 / 0.162), True),  # 0.99 * 0.4 * 0.4 = 0.1584 and 0.01 * 0.6 * 0.6 = 0.0036
        15: (about(0.99), True),
    }


@BOTH
def test_the_fifteen_words_that_tell_most_decide(way: Any) -> None:
    """Of 15 unknown words two make room for x and a, however often they are said; 1.5 is 0.6 / 0.4."""
    unknown = " ".join(f"u{number} u{number}" for number in range(15))
    mails: list[Mail] = [(SPAM, "x"), (HAM, "a"), (JUDGE, unknown), (JUDGE, f"{unknown} x a")]
    assert verdicts(way(flow_of()), mails) == {
        2: (about(1 / (1 + 1.5**15)), False), 3: (about(1 / (1 + 1.5**13)), False),
    }  # fmt: skip


@BOTH
@pytest.mark.parametrize(("spam", "ham", "found"), [("a", "b", 0.99), ("b", "a", 0.01)])
def test_words_that_tell_as_much_are_taken_by_the_alphabet(way: Any, spam: str, ham: str, found: float) -> None:
    """Eight words of 0.99, eight of 0.01: the last one, b7, is left out, and one of the others is left over."""
    of_spam, of_ham = (" ".join(f"{side}{number}" for number in range(8)) for side in (spam, ham))
    mails: list[Mail] = [(SPAM, of_spam), (HAM, of_ham), (JUDGE, f"{of_ham} {of_spam}")]
    assert verdicts(way(flow_of()), mails) == {2: (about(found), found > 0.9)}


@BOTH
def test_a_mail_is_spam_above_the_threshold_alone(way: Any) -> None:
    """0.99 is not above 0.99, nor above what only rounding makes less of it."""
    mails: list[Mail] = [(SPAM, "x"), (JUDGE, "x")]
    for less, is_spam in ((1e-13, False), (1e-11, True)):
        assert verdicts(way(flow_of(bayesrule_spam_probability=0.99 - less)), mails) == {1: (about(0.99), is_spam)}
    assert verdicts(way(flow_of(bayesrule_spam_probability=0.99)), mails) == {1: (about(0.99), False)}
    assert verdicts(way(flow_of(bayesrule_spam_probability=0.98)), mails) == {1: (about(0.99), True)}


@BOTH
def test_of_one_time_the_smaller_event_id_comes_first(way: Any) -> None:
    """Of two training mails at the time of a mail to be judged, one teaches it."""
    mails: list[Mail] = [(SPAM, "x"), (JUDGE, "x y"), (SPAM, "y")]
    assert verdicts(way(flow_of()), mails, [5, 5, 5]) == {1: (about(0.396 / 0.402), True)}  # 0.99 * 0.4; 0.01 * 0.6
    assert verdicts(way(flow_of()), mails, [5, 4, 3]) == {1: (about(0.396 / 0.402), True)}


@BOTH
def test_an_analysis_mail_without_an_id_is_left_out(way: Any) -> None:
    """And mails of one id at two times are two."""
    inputs = tables([(SPAM, "x"), (JUDGE, "x"), (JUDGE, "y"), (JUDGE, "x")])
    place = inputs["analysis"].schema.get_field_index("id")
    inputs["analysis"] = inputs["analysis"].set_column(place, "id", pa.array([None, 7, 7], pa.int64()))
    found = answer(way(flow_of()), inputs)
    assert [(row["event_id"], row["id"], row["spam_probability"]) for row in found] == [
        (2, 7, about(0.4)), (3, 7, about(0.99)),
    ]  # fmt: skip


WORDS = [*(f"w{number}" for number in range(18)), "W1", "w2!", "w3w", "é", "", "_", f"{KELVIN}w4"]
TEXTS = st.one_of(st.none(), st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join))
MAILS = st.lists(st.tuples(st.sampled_from([SPAM, HAM, NO_LABEL, JUDGE, JUDGE]), TEXTS), max_size=25)


@given(MAILS, st.lists(st.integers(0, 1), min_size=25, max_size=25))
def test_class_and_truth_agree(mails: list[Mail], steps: list[int]) -> None:
    """With several mails of one time."""
    flow, times = flow_of(), list(itertools.accumulate(steps[: len(mails)]))
    assert_same(verdicts(without_truth(flow), mails, times), verdicts(flow, mails, times))


def assert_same(found: dict[int, tuple[Any, bool]], truth: dict[int, tuple[Any, bool]]) -> None:
    assert found == {number: (about(p), is_spam) for number, (p, is_spam) in truth.items()}


CUTS = st.lists(st.integers(0, 130), max_size=5)
LABELS = st.sampled_from([True, False, None])
STEPS = st.integers(0, 3)


def columns(rows: list[tuple[Any, ...]], **types: pa.DataType) -> pa.Table:
    values = list(zip(*rows, strict=True)) if rows else [()] * len(types)
    return pa.table({name: pa.array(each, type_) for (name, type_), each in zip(types.items(), values, strict=True)})


@given(st.lists(st.tuples(st.sampled_from(["", "a", "a b", "a b a"]), LABELS, STEPS), max_size=40), CUTS)
def test_sums_do_not_depend_on_where_batches_end(rows: list[tuple[str, bool | None, int]], cuts: list[int]) -> None:
    """With a snapshot into a fresh instance at every cut, as engines do."""
    mails = source("mails", Schema.from_types(id="bigint", words="string", spam="boolean", mailbox="int"))
    given_ = [(number, text, spam, 0) for number, (text, spam, _) in enumerate(rows)]
    kinds = {"id": pa.int64(), "words": pa.string(), "spam": pa.bool_(), "mailbox": pa.int32()}
    times = list(itertools.accumulate(step for *_, step in rows))
    whole, parts = whole_and_in_parts(training_sum(mails).sink("out"), columns(given_, **kinds), times, cuts)
    assert parts == whole


@given(st.lists(st.sampled_from(["", "a", "a b", "a b a"]), max_size=40), CUTS)
def test_each_word_comes_in_its_place_with_its_mail(texts: list[str], cuts: list[int]) -> None:
    """A mail without words has one that is empty; and nothing is kept from batch to batch."""
    kinds = {"id": pa.int64(), "words": pa.string(), "spam": pa.bool_(), "spam_total": pa.int64(),
             "ham_total": pa.int64()}  # fmt: skip
    summed = source(
        "summed",
        Schema.from_types(id="bigint", words="string", spam="boolean", spam_total="bigint", ham_total="bigint"),
    )
    given_ = [(number, text, None, 10 * number, 7) for number, text in enumerate(texts)]
    times = list(range(len(texts)))
    flow = each_word(summed).sink("out")
    whole, parts = whole_and_in_parts(flow, columns(given_, **kinds), times, cuts)
    assert parts == whole
    expected = [(number, word, 10 * number) for number, text in enumerate(texts) for word in text.split(" ")]
    assert [(row["id"], row["word"], row["spam_total"]) for row in whole] == expected


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c", ""]), LABELS, STEPS), max_size=40), CUTS)
def test_words_do_not_depend_on_where_batches_end(rows: list[tuple[str, bool | None, int]], cuts: list[int]) -> None:
    """Nor does any word's count on the other words of its batch; here 7 words of spam and 9 of ham were learned."""
    kinds = {"id": pa.int64(), "word": pa.string(), "spam": pa.bool_(), "spam_total": pa.int64(),
             "ham_total": pa.int64()}  # fmt: skip
    found = source(
        "found", Schema.from_types(id="bigint", word="string", spam="boolean", spam_total="bigint", ham_total="bigint")
    )
    given_ = [(number, word, spam, 7, 9) for number, (word, spam, _) in enumerate(rows)]
    times = list(itertools.accumulate(step for *_, step in rows))
    whole, parts = whole_and_in_parts(word_probability(found).sink("out"), columns(given_, **kinds), times, cuts)
    assert parts == whole


@given(st.lists(st.tuples(st.lists(st.integers(0, 30), min_size=1, max_size=25), STEPS), max_size=10), CUTS)
def test_mails_do_not_depend_on_where_batches_end(mails: list[tuple[list[int], int]], cuts: list[int]) -> None:
    """Several of them at one time; ids fall as time goes on, and one of four has that of another."""
    known = source("known", Schema.from_types(id="bigint", word="string", p_spam="double"))
    kinds = {"id": pa.int64(), "word": pa.string(), "p_spam": pa.float64()}
    ends = list(itertools.accumulate(step for _, step in mails))
    rows = [(-(n - n // 4), f"w{w}", (w + 1) / 32) for n, (words, _) in enumerate(mails) for w in words]
    times = [time for (words, _), time in zip(mails, ends, strict=True) for _ in words]
    whole, parts = whole_and_in_parts(bayes_rule(known).sink("out"), columns(rows, **kinds), times, cuts)
    assert parts == whole


def test_a_result_is_of_the_first_word_of_its_mail() -> None:
    """Words of two mails of one time, the later of which begins first."""
    known = source("known", Schema.from_types(id="bigint", word="string", p_spam="double"))
    rows = [(2, "b", 0.2), (1, "a", 0.9), (1, "b", 0.2), (2, "a", 0.9)]
    kinds = {"id": pa.int64(), "word": pa.string(), "p_spam": pa.float64()}
    whole, _ = whole_and_in_parts(bayes_rule(known).sink("out"), columns(rows, **kinds), [5, 5, 5, 5], [])
    assert [(row["id"], row["event_id"]) for row in whole] == [(1, 1), (2, 0)]


SMALL = {"words": 10, "vocabulary": 400, "malformed": 0.02}


@pytest.mark.parametrize("training_share", [0.5, 0.1, 0.0])
def test_class_and_truth_agree_on_generated_mails(training_share: float) -> None:
    """Every whole mail to be judged has its verdict; without training words are known from a table."""
    flow, inputs = made("spam_filter", 2000.0, 1.0, training_share=training_share, **SMALL)
    truth, found = (
        {row["event_id"]: (row["spam_probability"], row["is_spam"]) for row in answer(each, inputs)}
        for each in (flow, without_truth(flow))
    )
    assert_same(found, truth)
    assert len(found) == pytest.approx(2000 * (1 - training_share) * 0.98, rel=0.02)
    assert reach_us(flow) == (None if training_share else 0)


@BOTH
def test_without_training_words_that_are_not_in_the_table_and_no_words(way: Any) -> None:
    """0.4 and 0.5, as while learning."""
    flow = way(flow_of(training_share=0))
    assert verdicts(flow, [(JUDGE, "Zebra?"), (JUDGE, None)]) == {0: (about(0.4), False), 1: (0.5, False)}


def test_what_the_table_teaches() -> None:
    """Of a hundred words all are in it. A word that leans to neither side is in all mails alike, so its p is that of a
    rate of one side against one and twice one: about a third. Those that lean are beyond it. Of 100 000 words the rare
    ones are unknown.
    """
    likely = dict(zip(*word_map(40, 100).to_arrow().to_pydict().values(), strict=True))
    values = list(likely.values())
    assert len(values) == 100
    assert values[0] == pytest.approx(1 / 3, abs=0.05)
    assert all(p > 0.8 for p in values[3::10])
    assert all(p < 0.1 for p in values[7::10])
    assert min(p for place, p in enumerate(values) if place % 10 not in (3, 7)) > 0.2
    assert 2500 < word_map(40, 100_000).to_arrow().num_rows < 50_000


@pytest.mark.parametrize("training_share", [0.5, 0.0])
def test_planted_spam_is_found_and_ham_is_not(training_share: float) -> None:
    """With the words of the default mails, once a thousand mails were learned (or from the table)."""
    parameters = {"training_share": training_share, "vocabulary": 1000}
    flow, inputs = made("spam_filter", 2000.0, 2.0, **parameters)
    streams = WORKLOAD.build(WORKLOAD.read(parameters), 2000.0).streams
    plan, stream = Plan(streams, parse_profile("constant", 2000.0, 2.0), 0, 2.0, 2, 1), len(streams) - 1
    message = streams[stream].fields[1]
    assert isinstance(message, Message)
    spam: dict[int, bool] = {}
    for partition in range(2):
        count = plan.count_before(stream, partition, plan.end_us)
        ids = plan.batch(stream, partition, 0, count, ["event_id"]).column(0).to_pylist()
        spam |= dict(zip(ids, message.is_spam(PhiloxBits(1, stream, partition, 1), 0, count).tolist(), strict=True))
    late = [row for row in answer(flow, inputs) if row["event_time"] >= 1_000_000]
    for kind in (True, False):
        right = [row["is_spam"] == kind for row in late if spam[row["event_id"]] == kind]
        assert len(right) > 400
        assert sum(right) / len(right) > 0.95


def test_what_outsiders_see() -> None:
    """Columns, operators' names, identity."""
    flow = flow_of()
    assert schema.columns(flow.sink.input) == {"id": "bigint", "spam_probability": "double", "is_spam": "boolean"}
    assert [node.name for node in graph.walk(flow.sink.input)] == [
        "training", "labelled", "analysis", "addressed", "unlabelled", "mails", "tokenizer", "training_sum",
        "each_word", "word_probability", "bayes_rule", "decision",
    ]  # fmt: skip
    assert [node.name for node in graph.walk(flow_of(training_share=0).sink.input)] == [
        "analysis", "addressed", "tokenizer", "each_word", "word", "word_map", "word_probability", "bayes_rule",
        "decision",
    ]  # fmt: skip
    assert identity(flow) == ("event_id", "event_ordinal")
    assert reach_us(flow) is None
