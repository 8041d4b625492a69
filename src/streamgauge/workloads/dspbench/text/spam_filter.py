"""Spam Filter (SF): the probability that a mail is spam, learned from all labelled mails before it.

Two streams, `training` (labelled) and `analysis`, are merged in order of time, with ties by event id. So there is one
right answer, whereas the thesis lets both streams race. Then, as in the thesis, by word and by mail:

- `tokenizer`: runs of ASCII letters, digits and underscores, in lower case; native.
- `training_sum`: the number of spam and ham words learned so far. The thesis sends these sums to every instance. Here
  all mails pass one instance, one row per mail, which adds the sums. (A broadcast edge takes rows of one time input by
  input, but mails of both streams are ordered by id. It would also handle each training mail once per bucket.)
- `each_word`, by mail: its words. A class, so that words go from class to class without being rows of the engine. It is
  keyed, because a native `explode` would run on one core, where all mails pass.
- `word_probability`, by word: how often the word was learned from spam and from ham, and so the probability that a mail
  with it is spam. Nothing learned is ever forgotten.
- `bayes_rule`, by mail: combines the 15 most telling distinct words, with ties in alphabetical order. All words of a
  mail have its time and no batch ends within a time, so a mail is always complete and there is no state. The thesis
  counts arrivals, and keeps a mail that lost a word forever.

With `training_share` 0 nothing is learned (the thesis's offline mode). A static table then has what a thousand
generated mails of each kind teach. `each_word` is native, and only `bayes_rule` is keyed.

Not repeated from the thesis's code:

- counts from 0, so that a word learned once counts as unknown
- recomputing the probabilities of all words after each mail; here only those of requested words
- single precision
- mails without words, which never came out; here their probability is 0.5

Malformed: training mails without a label and analysis mails without an id. They are ignored. A mail without a text has
no words.

Source: Bordin 2017, section 3.3.6.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from streamgauge.core.arrays import Bools, Floats, Int64s
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import Stream, source
from streamgauge.dataflow.operators.api import ROW, TIME, StateInAttributes
from streamgauge.dataflow.operators.grouped_arrays import (
    KeyDictionary,
    counts_so_far,
    group_by_key,
    group_starts,
    groups,
)
from streamgauge.dataflow.static_table import Table, table
from streamgauge.loadgen.datasets.texts import (
    MAIL_WORDS_MAX,
    VOCABULARY_MAX,
    VOCABULARY_MIN,
    IsSpam,
    Message,
    shares,
    words,
)
from streamgauge.loadgen.fields import OwnNumber, StreamSpec, with_malformed
from streamgauge.workloads.registry import Feature, Job, Parameters, Workload, double

TOKENS = r"lower(trim(regexp_replace(coalesce(message, ''), '\\W+', ' ')))"
"""The words of a mail, separated by single spaces. Capitals are lowered last, when only ASCII is left. For the JVM, the
explicit class `[^A-Za-z0-9_]` costs twice as much.
"""
UNKNOWN, NO_WORD, LEAST, MOST = 0.4, 0.5, 0.01, 0.99
"""Probabilities: of an unknown word, of a mail without words, and the bounds of all others."""
INTERESTING = 15
"""Number of words of a mail that decide."""
ROUNDING = "1e-12"
"""Least excess over the threshold, so that the order of multiplication decides nothing."""
LEARNED_MAILS = 1000


class SpamFilter(Parameters):
    """The thesis's parameter and the mails'."""

    bayesrule_spam_probability: float = Field(
        0.9, ge=0, le=1, description="a mail with a greater probability counts as spam"
    )
    training_share: float = Field(
        0.5, ge=0, lt=1, description="share of training mails among the events; 0: word probabilities come from a table"
    )
    spam: float = Field(0.5, ge=0, le=1, description="share of spam among the mails of both streams")
    words: int = Field(
        40, ge=1, le=MAIL_WORDS_MAX, description="mean number of words in a mail (each has 0.5 to 1.5 times as many)"
    )
    vocabulary: int = Field(
        10_000, ge=VOCABULARY_MIN, le=VOCABULARY_MAX, description="number of different words, with Zipf's frequencies"
    )
    malformed: float = Field(
        0.001, ge=0, le=1, description="share of the training mails without a label, and of the others without an id"
    )


def probability(bad: Int64s, good: Int64s, spam_total: Int64s | int, ham_total: Int64s | int) -> Floats:
    """The probability that a mail with a word is spam: rate in spam / (rate in spam + twice the rate in ham).

    Both rates are multiplied by both totals, so that only the quotient is rounded and words of equal counts are equal.
    """
    of_spam = bad.astype(np.float64) * np.maximum(ham_total, 1)
    of_ham = 2.0 * good * np.maximum(spam_total, 1)
    with np.errstate(invalid="ignore"):
        ratio = np.clip(of_spam / (of_spam + of_ham), LEAST, MOST)
    return np.where(bad + good == 0, UNKNOWN, ratio)


def _labels(spam: pa.Array) -> tuple[Bools, Bools]:
    """Which rows are spam, and which are ham; all others must be judged."""
    is_spam, is_ham = (pc.fill_null(each, False).to_numpy(zero_copy_only=False) for each in (spam, pc.invert(spam)))
    return is_spam, is_ham


class TrainingSum(StateInAttributes):
    """The number of spam and ham words learned up to each mail. All mails have one key."""

    def __init__(self) -> None:
        self._spam_total, self._ham_total = 0, 0

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        text, spam = batch.column("words"), batch.column("spam")
        is_empty = pc.equal(text, "").to_numpy(zero_copy_only=False)
        tokens = np.where(is_empty, 0, pc.count_substring(text, " ").to_numpy().astype(np.int64) + 1)
        is_spam, is_ham = _labels(spam)
        spam_total = self._spam_total + np.cumsum(tokens * is_spam)
        ham_total = self._ham_total + np.cumsum(tokens * is_ham)
        if batch.num_rows:
            self._spam_total, self._ham_total = int(spam_total[-1]), int(ham_total[-1])
        return pa.RecordBatch.from_pydict(
            {
                "id": batch.column("id"),
                "words": text,
                "spam": spam,
                "spam_total": spam_total,
                "ham_total": ham_total,
                ROW: np.arange(batch.num_rows),
            }
        )


SUM_TRUTH = (
    "WITH counted AS (SELECT *,"
    " CASE WHEN words = '' THEN 0 ELSE length(words) - length(replace(words, ' ', '')) + 1 END AS tokens FROM input)"
    " SELECT id, words, spam, _row, sum(CASE WHEN spam THEN tokens ELSE 0 END) OVER so_far AS spam_total,"
    " sum(CASE WHEN NOT spam THEN tokens ELSE 0 END) OVER so_far AS ham_total"
    " FROM counted WINDOW so_far AS (ORDER BY _row ROWS UNBOUNDED PRECEDING)"
)


class EachWord(StateInAttributes):
    """The words of each mail, with the mail's columns; a mail without words has one empty word."""

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        words = pc.split_pattern(batch.column("words"), " ")
        mail_of = pa.array(np.repeat(np.arange(batch.num_rows), pc.list_value_length(words).to_numpy()))
        mails = {name: batch.column(name).take(mail_of) for name in ("id", "spam", "spam_total", "ham_total")}
        return pa.RecordBatch.from_pydict({"word": words.flatten(), **mails, ROW: mail_of})


EACH_TRUTH = (
    "WITH split AS (SELECT *, string_split(words, ' ') AS found FROM input)"
    " SELECT id, unnest(found) AS word, unnest(range(len(found))) AS _ordinal, spam, spam_total, ham_total, _row"
    " FROM split"
)


class WordProbability(StateInAttributes):
    """The spam probability of each word of a mail to judge, from the training mails before it."""

    def __init__(self) -> None:
        self._bad, self._good = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def open(self, schema: pa.Schema) -> None:
        self._words = KeyDictionary(schema.field("word").type)

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        word = batch.column("word")
        codes = self._words.encode(word)
        is_spam, is_ham = _labels(batch.column("spam"))
        rows = np.flatnonzero(~(is_spam | is_ham))
        order = group_by_key(codes)
        self._bad, bad = counts_so_far(self._bad, len(self._words), codes, order, is_spam)
        self._good, good = counts_so_far(self._good, len(self._words), codes, order, is_ham)
        totals = (batch.column(name).to_numpy()[rows] for name in ("spam_total", "ham_total"))
        probabilities = probability(bad[rows], good[rows], *totals)
        at = pa.array(rows)
        judged_words = word.take(at)
        likely = np.where(pc.equal(judged_words, "").to_numpy(zero_copy_only=False), NO_WORD, probabilities)
        return pa.RecordBatch.from_pydict(
            {"id": batch.column("id").take(at), "word": judged_words, "p_spam": likely, ROW: at}
        )


WORD_TRUTH = (
    "WITH counted AS (SELECT *,"
    " CAST(sum(CASE WHEN spam THEN 1 ELSE 0 END) OVER so_far AS DOUBLE) AS bad,"
    " CAST(sum(CASE WHEN NOT spam THEN 1 ELSE 0 END) OVER so_far AS DOUBLE) AS good"
    " FROM input WINDOW so_far AS (PARTITION BY word ORDER BY _row ROWS UNBOUNDED PRECEDING)),"
    " rates AS (SELECT *, bad * greatest(ham_total, 1)::DOUBLE AS of_spam,"
    " 2::DOUBLE * good * greatest(spam_total, 1)::DOUBLE AS of_ham FROM counted WHERE spam IS NULL)"
    f" SELECT id, word, _row, CASE WHEN word = '' THEN {NO_WORD}::DOUBLE"
    f" WHEN bad + good = 0 THEN {UNKNOWN}::DOUBLE"
    f" ELSE least(greatest(of_spam / (of_spam + of_ham), {LEAST}::DOUBLE), {MOST}::DOUBLE) END AS p_spam FROM rates"
)


class BayesRule(StateInAttributes):
    """The spam probability of each mail, from its most telling distinct words. A batch has whole mails."""

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        likely = batch.column("p_spam").to_numpy()
        keys = [_alphabetical(batch.column("word")), batch.column("id").to_numpy(), batch.column(TIME).to_numpy()]
        order = np.lexsort((keys[0], -np.abs(0.5 - likely), keys[1], keys[2]))
        word, mail, time = (key[order] for key in keys)
        first, mail_of = groups(mail, time)
        new_word = group_starts(word, mail, time)
        distinct = np.cumsum(new_word)
        position: Int64s = distinct - distinct[first][mail_of]
        chosen = new_word & (position < INTERESTING)
        # A mail's first row is always chosen, so its index starts the mail's chosen rows.
        starts = (np.cumsum(chosen) - 1)[first]
        spam, ham = (np.multiply.reduceat(each[order][chosen], starts) for each in (likely, 1 - likely))
        rows = np.minimum.reduceat(order, first)
        return pa.RecordBatch.from_pydict({"id": mail[first], "spam_probability": spam / (spam + ham), ROW: rows})


def _alphabetical(words: pa.Array) -> Int64s:
    """Numbers that order and equal each other as the words do."""
    encoded = pc.dictionary_encode(words)
    ranks: Int64s = pc.rank(encoded.dictionary).to_numpy().astype(np.int64)
    return ranks[encoded.indices.to_numpy()]


BAYES_TRUTH = (
    "WITH known AS (SELECT id, _time, word, min(p_spam) AS p, min(_row) AS _row FROM input GROUP BY id, _time, word),"
    " ranked AS (SELECT *, row_number() OVER (PARTITION BY id, _time ORDER BY abs(0.5::DOUBLE - p) DESC, word) AS place"
    " FROM known),"
    f" mails AS (SELECT id, product(p) FILTER (WHERE place <= {INTERESTING}) AS spam,"
    f" product(1::DOUBLE - p) FILTER (WHERE place <= {INTERESTING}) AS ham, min(_row) AS _row"
    " FROM ranked GROUP BY id, _time)"
    " SELECT id, spam / (spam + ham) AS spam_probability, _row FROM mails"
)


def training_sum(mails: Stream) -> Stream:
    """Adds the sums learned so far to mails (`id`, `words`, `spam`: null if the mail must be judged)."""
    return mails.process(
        TrainingSum,
        keys="mailbox",
        reads=("id", "words", "spam"),
        gives=Schema.from_types(id="bigint", words="string", spam="boolean", spam_total="bigint", ham_total="bigint"),
        truth=SUM_TRUTH,
        name="training_sum",
    )


def each_word(summed: Stream) -> Stream:
    """From mails with sums to words with sums."""
    return summed.process(
        EachWord,
        keys="id",
        gives=Schema.from_types(id="bigint", word="string", spam="boolean", spam_total="bigint", ham_total="bigint"),
        several=True,
        reach="0s",
        truth=EACH_TRUTH,
        name="each_word",
    )


def word_probability(words_of_mails: Stream) -> Stream:
    """From words of both kinds of mails to words to judge, with their probabilities."""
    return words_of_mails.process(
        WordProbability,
        keys="word",
        gives=Schema.from_types(id="bigint", word="string", p_spam="double"),
        truth=WORD_TRUTH,
        name="word_probability",
    )


def bayes_rule(words_with_probability: Stream) -> Stream:
    """From words with probabilities to mails with probabilities."""
    return words_with_probability.process(
        BayesRule,
        keys="id",
        gives=Schema.from_types(id="bigint", spam_probability="double"),
        reach="0s",
        truth=BAYES_TRUTH,
        name="bayes_rule",
    )


def word_map(mean_words: int, vocabulary: int) -> Table:
    """The expected knowledge from a thousand mails of each kind; words too rare for them are unknown."""
    bad, good = (np.rint(LEARNED_MAILS * mean_words * share).astype(np.int64) for share in shares(vocabulary))
    learned_words = np.flatnonzero(bad + good)
    likely = probability(bad, good, int(bad.sum()), int(good.sum()))[learned_words]
    rows = pa.table({"word": words(vocabulary).take(pa.array(learned_words)), "p_spam": pa.array(likely)})
    return table("word_map", rows, Schema.from_types(word="string", p_spam="double"))


def _learning(training: Stream, addressed: Stream) -> Stream:
    """Words of mails to judge, with probabilities from the training mails before them."""
    labelled = training.where("spam IS NOT NULL", name="labelled")
    unlabelled = addressed.select(id="id", message="message", spam="nullif(true, true)", name="unlabelled")
    tokens = labelled.union(unlabelled, name="mails").select(
        id="id", words=TOKENS, spam="spam", mailbox="0", name="tokenizer"
    )
    return word_probability(each_word(training_sum(tokens)))


def _offline(addressed: Stream, word_map: Table) -> Stream:
    """Words of mails to judge, with probabilities from a table."""
    p_spam = f"case when word = '' then {NO_WORD}e0 else coalesce(p_spam, {UNKNOWN}e0) end"
    return (
        addressed.select(id="id", words=TOKENS, name="tokenizer")
        .explode(word="split(words, ' ')", name="each_word")
        .select(id="id", word="word", name="word")
        .lookup(word_map, on="word", how="left", name="word_map")
        .select(id="id", word="word", p_spam=p_spam, name="word_probability")
    )


def build(parameters: SpamFilter, rate_per_s: float) -> Job:
    message = Message("message", parameters.words, parameters.vocabulary, parameters.spam)
    share, malformed = parameters.training_share, {"analysis": "id IS NULL"}
    number = with_malformed(OwnNumber("id"), parameters.malformed, None)
    analysis = StreamSpec("analysis", (number, message), 1 - share)
    addressed = source("analysis", analysis.schema).where("id IS NOT NULL", name="addressed")
    if share:
        label = with_malformed(IsSpam("spam", message, 1), parameters.malformed, None)
        training = StreamSpec("training", (OwnNumber("id"), message, label), share)
        malformed |= {"training": "spam IS NULL"}
        streams: tuple[StreamSpec, ...] = (training, analysis)
        known = _learning(source("training", training.schema), addressed)
    else:
        streams = (analysis,)
        known = _offline(addressed, word_map(parameters.words, parameters.vocabulary))
    above = f"spam_probability > {double(parameters.bayesrule_spam_probability)} + {ROUNDING}"
    verdicts = bayes_rule(known).select(id="id", spam_probability="spam_probability", is_spam=above, name="decision")
    return Job(verdicts.sink("verdicts"), streams, malformed)


WORKLOAD = Workload(
    name="spam_filter",
    title="spam filter",
    summary="the probability that each mail is spam, from the words of all labelled mails before it",
    source="Bordin 2017, section 3.3.6",
    parameters=SpamFilter,
    build=build,
    features=(
        Feature.FLAT_MAP,
        Feature.COUNTER,
        Feature.GLOBAL,
        Feature.SELF_JOIN,
        Feature.TWO_STREAMS,
        Feature.PYTHON,
    ),
    features_with={Feature.LOOKUP: ("training_share", 0)},
    prefix="sf",
)
