"""Spam Filter: worked by hand, against plain Python, by truth and by class, and wherever batches end."""

import itertools
from collections.abc import Mapping
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.schema import Schema
from streamgauge.dataflow import graph
from streamgauge.dataflow.builder import Stream, source
from streamgauge.dataflow.nodes import Flow
from streamgauge.dataflow.reach import reach_us
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.random import PhiloxBits
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.workloads.dspbench.text.spam_filter import (
    bayes_rule,
    each_word,
    training_sum,
    word_map,
    word_probability,
)
from tests.unit.workloads import helpers_cuts
from tests.unit.workloads.helpers_cuts import (
    BOTH,
    answered,
    job_of,
    made,
    results_in_batches,
    table,
    without_truth,
)

SPAM, HAM, NO_LABEL, JUDGE = "spam", "ham", "no label", "judge"
Mail = tuple[str, str | None]
"""(what it is, its text); the n-th has event id n, id 100 + n and, if nothing else is said, event time n."""
KELVIN = "\u212a"
"""A sign whose small letter is k."""
_LABELS = {SPAM: True, HAM: False, NO_LABEL: None}


flow_of = partial(helpers_cuts.flow_of, "spam_filter")


def tables(mails: list[Mail], times: list[int] | None = None) -> dict[str, pa.Table]:
    """The two streams."""
    rows = [(100 + number, text, _LABELS.get(kind), kind == JUDGE) for number, (kind, text) in enumerate(mails)]
    both = table(rows, times, id="int64", message="string", spam="bool", judged="bool")
    training = both.filter(pc.invert(both["judged"])).drop_columns("judged")
    return {"training": training, "analysis": both.filter(both["judged"]).drop_columns(["spam", "judged"])}


def verdicts(flow: Flow, inputs: Mapping[str, pa.Table]) -> dict[int, tuple[Any, bool]]:
    """Of each judged mail's event id: the probability, and whether it is taken for spam."""
    rows = answered(flow, dict(inputs)).to_pylist()
    by_id = {row["event_id"]: (row["spam_probability"], row["is_spam"]) for row in rows}
    assert len(by_id) == len(rows)
    return by_id


def about(number: float) -> Any:
    return pytest.approx(number, rel=1e-12)


@BOTH
def test_worked_by_hand(variant: Any) -> None:
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
    assert verdicts(variant(flow_of()), tables(mails)) == {
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
def test_the_fifteen_words_that_tell_most_decide(variant: Any) -> None:
    """Of 15 unknown words two make room for x and a, however often they are said; 1.5 is 0.6 / 0.4."""
    unknown = " ".join(f"u{number} u{number}" for number in range(15))
    mails: list[Mail] = [(SPAM, "x"), (HAM, "a"), (JUDGE, unknown), (JUDGE, f"{unknown} x a")]
    assert verdicts(variant(flow_of()), tables(mails)) == {
        2: (about(1 / (1 + 1.5**15)), False), 3: (about(1 / (1 + 1.5**13)), False),
    }  # fmt: skip


@BOTH
@pytest.mark.parametrize(("spam", "ham", "probability"), [("a", "b", 0.99), ("b", "a", 0.01)])
def test_words_that_tell_as_much_are_taken_by_the_alphabet(
    variant: Any, spam: str, ham: str, probability: float
) -> None:
    """Eight words of 0.99, eight of 0.01: the last one, b7, is left out, and one of the others is left over."""
    of_spam, of_ham = (" ".join(f"{side}{number}" for number in range(8)) for side in (spam, ham))
    mails: list[Mail] = [(SPAM, of_spam), (HAM, of_ham), (JUDGE, f"{of_ham} {of_spam}")]
    assert verdicts(variant(flow_of()), tables(mails)) == {2: (about(probability), probability > 0.9)}


@BOTH
@pytest.mark.parametrize(("threshold", "is_spam"), [
    (0.99 - 1e-13, False), (0.99 - 1e-11, True), (0.99, False), (0.98, True),
])  # fmt: skip
def test_a_mail_is_spam_above_the_threshold_alone(variant: Any, threshold: float, is_spam: bool) -> None:
    """0.99 is not above 0.99, nor above what only rounding makes less of it."""
    flow = variant(flow_of(bayesrule_spam_probability=threshold))
    assert verdicts(flow, tables([(SPAM, "x"), (JUDGE, "x")])) == {1: (about(0.99), is_spam)}


@BOTH
@pytest.mark.parametrize("times", [[5, 5, 5], [5, 4, 3]])
def test_of_one_time_the_smaller_event_id_comes_first(variant: Any, times: list[int]) -> None:
    """Of two training mails at the time of a mail to be judged, one teaches it."""
    mails: list[Mail] = [(SPAM, "x"), (JUDGE, "x y"), (SPAM, "y")]
    expected = {1: (about(0.396 / 0.402), True)}  # 0.99 * 0.4; 0.01 * 0.6
    assert verdicts(variant(flow_of()), tables(mails, times)) == expected


@BOTH
def test_an_analysis_mail_without_an_id_is_left_out(variant: Any) -> None:
    """And mails of one id at two times are two."""
    inputs = tables([(SPAM, "x"), (JUDGE, "x"), (JUDGE, "y"), (JUDGE, "x")])
    place = inputs["analysis"].schema.get_field_index("id")
    inputs["analysis"] = inputs["analysis"].set_column(place, "id", pa.array([None, 7, 7], pa.int64()))
    results = answered(variant(flow_of()), inputs).to_pylist()
    assert [(row["event_id"], row["id"], row["spam_probability"]) for row in results] == [
        (2, 7, about(0.4)), (3, 7, about(0.99)),
    ]  # fmt: skip


WORDS = [*(f"w{number}" for number in range(18)), "W1", "w2!", "w3w", "é", "", "_", f"{KELVIN}w4"]
TEXTS = st.one_of(st.none(), st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join))
MAILS = st.lists(st.tuples(st.sampled_from([SPAM, HAM, NO_LABEL, JUDGE, JUDGE]), TEXTS), max_size=25)


@given(MAILS, st.lists(st.integers(0, 1), min_size=25, max_size=25))
def test_class_and_truth_agree(mails: list[Mail], steps: list[int]) -> None:
    """With several mails of one time."""
    assert_same(flow_of(), tables(mails, list(itertools.accumulate(steps[: len(mails)]))))


def assert_same(flow: Flow, inputs: Mapping[str, pa.Table]) -> dict[int, tuple[Any, bool]]:
    """The verdicts, which are those of truth and of class."""
    truth = verdicts(flow, inputs)
    assert verdicts(without_truth(flow), inputs) == {n: (about(p), is_spam) for n, (p, is_spam) in truth.items()}
    return truth


CUTS = st.lists(st.integers(0, 130), max_size=5)
LABELS = st.sampled_from([True, False, None])
STEPS = st.integers(0, 3)
SUMS = {"spam_total": "int64", "ham_total": "int64"}
"""Names and types of columns; `int64` is `bigint` in a flow."""


def mail_source(**types: str) -> Stream:
    sql = {"int32": "int", "int64": "bigint", "bool": "boolean", "float64": "double"}
    return source("mails", Schema.from_types(**{name: sql.get(type_, type_) for name, type_ in types.items()}))


@given(st.lists(st.tuples(st.sampled_from(["", "a", "a b", "a b a"]), LABELS, STEPS), max_size=40), CUTS)
def test_sums_do_not_depend_on_where_batches_end(rows: list[tuple[str, bool | None, int]], cuts: list[int]) -> None:
    """With a snapshot into a fresh instance at every cut, as engines do."""
    types = {"id": "int64", "words": "string", "spam": "bool", "mailbox": "int32"}
    mails = table([(number, text, spam, 0) for number, (text, spam, _) in enumerate(rows)], **types)
    times = list(itertools.accumulate(step for *_, step in rows))
    results_in_batches(training_sum(mail_source(**types)).sink("out"), mails, times, cuts)


@given(st.lists(st.sampled_from(["", "a", "a b", "a b a"]), max_size=40), CUTS)
def test_each_word_comes_in_its_place_with_its_mail(texts: list[str], cuts: list[int]) -> None:
    """A mail without words has one that is empty; and nothing is kept from batch to batch."""
    types = {"id": "int64", "words": "string", "spam": "bool", **SUMS}
    mails = table([(number, text, None, 10 * number, 7) for number, text in enumerate(texts)], **types)
    whole = results_in_batches(each_word(mail_source(**types)).sink("out"), mails, list(range(len(texts))), cuts)
    expected = [(number, word, 10 * number) for number, text in enumerate(texts) for word in text.split(" ")]
    assert [(row["id"], row["word"], row["spam_total"]) for row in whole] == expected


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c", ""]), LABELS, STEPS), max_size=40), CUTS)
def test_words_do_not_depend_on_where_batches_end(rows: list[tuple[str, bool | None, int]], cuts: list[int]) -> None:
    """Nor does any word's count on the other words of its batch; here 7 words of spam and 9 of ham were learned."""
    types = {"id": "int64", "word": "string", "spam": "bool", **SUMS}
    words = table([(number, word, spam, 7, 9) for number, (word, spam, _) in enumerate(rows)], **types)
    times = list(itertools.accumulate(step for *_, step in rows))
    results_in_batches(word_probability(mail_source(**types)).sink("out"), words, times, cuts)


KNOWN = {"id": "int64", "word": "string", "p_spam": "float64"}


@given(st.lists(st.tuples(st.lists(st.integers(0, 30), min_size=1, max_size=25), STEPS), max_size=10), CUTS)
def test_mails_do_not_depend_on_where_batches_end(mails: list[tuple[list[int], int]], cuts: list[int]) -> None:
    """Several of them at one time; ids fall as time goes on, and one of four has that of another."""
    ends = list(itertools.accumulate(step for _, step in mails))
    rows = [(-(n - n // 4), f"w{w}", (w + 1) / 32) for n, (words, _) in enumerate(mails) for w in words]
    times = [time for (words, _), time in zip(mails, ends, strict=True) for _ in words]
    results_in_batches(bayes_rule(mail_source(**KNOWN)).sink("out"), table(rows, **KNOWN), times, cuts)


def test_a_result_is_of_the_first_word_of_its_mail() -> None:
    """Words of two mails of one time, the later of which begins first."""
    rows = table([(2, "b", 0.2), (1, "a", 0.9), (1, "b", 0.2), (2, "a", 0.9)], **KNOWN)
    whole = results_in_batches(bayes_rule(mail_source(**KNOWN)).sink("out"), rows, [5, 5, 5, 5], [])
    assert [(row["id"], row["event_id"]) for row in whole] == [(1, 1), (2, 0)]


SMALL = {"words": 10, "vocabulary": 400, "malformed": 0.02}


@pytest.mark.parametrize("training_share", [0.5, 0.1, 0.0])
def test_class_and_truth_agree_on_generated_mails(training_share: float) -> None:
    """Every whole mail to be judged has its verdict; without training words are known from a table."""
    flow, inputs = made("spam_filter", 2000.0, 1.0, training_share=training_share, **SMALL)
    assert len(assert_same(flow, inputs)) == pytest.approx(2000 * (1 - training_share) * 0.98, rel=0.02)
    assert reach_us(flow) == (None if training_share else 0)


def test_without_training_the_operators_are_fewer() -> None:
    """A look-up stands where words were counted; words that are not in the table have 0.4, and a mail of none 0.5."""
    flow = flow_of(training_share=0)
    assert [node.name for node in graph.walk(flow.sink.input)] == [
        "analysis", "addressed", "tokenizer", "each_word", "word", "word_map", "word_probability", "bayes_rule",
        "decision",
    ]  # fmt: skip
    expected = {0: (about(0.4), False), 1: (0.5, False)}
    for each in (flow, without_truth(flow)):
        assert verdicts(each, tables([(JUDGE, "Zebra?"), (JUDGE, None)])) == expected


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
    streams = job_of("spam_filter", 2000.0, **parameters).streams
    plan, stream = Plan(streams, parse_profile("constant", 2000.0, 2.0), 0, 2.0, 2, 1), len(streams) - 1
    message: Any = streams[stream].fields[1]
    spam: dict[int, bool] = {}
    for partition in range(2):
        count = plan.count_before(stream, partition, plan.end_us)
        ids = plan.batch(stream, partition, 0, count, ["event_id"]).column(0).to_pylist()
        spam |= dict(zip(ids, message.is_spam(PhiloxBits(1, stream, partition, 1), 0, count).tolist(), strict=True))
    late = [row for row in answered(flow, inputs).to_pylist() if row["event_time"] >= 1_000_000]
    for kind in (True, False):
        right = [row["is_spam"] == kind for row in late if spam[row["event_id"]] == kind]
        assert len(right) > 400
        assert sum(right) / len(right) > 0.95
