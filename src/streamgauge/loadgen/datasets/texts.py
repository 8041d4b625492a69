"""Texts of made-up words: mails, spam and ham; tweets with opinions; short messages with hashtags; stamped records.

All mails share one vocabulary with Zipf's frequencies, and only the frequencies of words distinguish them. Of every ten
words one leans to spam and one to ham: it is `LEAN` times as frequent there, and as rare elsewhere. Mails have
sentences of eight words, so that jobs must handle capitals and full stops. Tweets with opinions have ordinary words
with some positive and negative ones, in various spellings. Hashtags are words of `Text` with a `#` before them. Stamped
records have a unique number and their creation time, as in the latency study of Spark Streaming.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.arrays import Bools, Floats, Int64s
from streamgauge.core.clock import US
from streamgauge.loadgen.fields import (
    OFFSET_BYTES,
    EventNumbers,
    FieldSpec,
    Text,
    column_of_one_partition,
    joined,
    vocabulary,
)
from streamgauge.loadgen.random import Lanes, PhiloxBits, Table, probabilities, sampler

MAIL_WORDS_MAX = 1000
VOCABULARY_MIN, VOCABULARY_MAX = 10, 100_000
LEAN = 6.0
"""The factor of a leaning word's frequency on its side, and the divisor on the other."""
SENTENCE = 8
_TO_SPAM, _TO_HAM, _TURN = 3, 7, 10
"""The positions of the leaning words among ten. The very first words do not lean, like `the` and `and`."""
_OF_KIND = 2**11
"""Added to a field's number for the bits that select spam."""


@dataclass(frozen=True)
class Message(FieldSpec):
    """The text of a mail: `words` words on average (50 to 150 % of that) from a vocabulary of `vocabulary` words.

    A share `spam` of the mails (0 to 1) is spam.
    """

    words: int
    vocabulary: int
    spam: float
    sql_type: ClassVar[str] = "string"

    @property
    def shortest(self) -> int:
        return self.words - self.words // 2

    @property
    def longest(self) -> int:
        return self.words + self.words // 2

    @property
    def row_bytes(self) -> float:
        lengths = pc.binary_length(words(self.vocabulary)).to_numpy()
        of_spam, of_ham = (float(np.dot(lengths, share)) for share in shares(self.vocabulary))
        space, stop = 1, 1 / SENTENCE
        return OFFSET_BYTES + self.words * (self.spam * of_spam + (1 - self.spam) * of_ham + space + stop) - space

    def is_spam(self, bits: PhiloxBits, first: int, last: int) -> Bools:
        """Whether each of the mails [first, last) is spam; `bits` are those of this field."""
        out = np.empty(last - first, np.bool_)
        for part, lanes in replace(bits, field=bits.field + _OF_KIND).blocks(first, last):
            np.less(lanes, self.spam * 2.0**32, out=out[part])
        return out

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        spam, width = self.is_spam(bits, first, last), 1 + self.longest
        return self.concatenated(
            [self._mails(lanes.reshape(-1, width), spam[part]) for part, lanes in bits.blocks(first, last, width)]
        )

    def _mails(self, lanes: Lanes, spam: Bools) -> pa.Array:
        """Mails from `lanes`, shape (mails, 1 + longest): a mail's length, then its words. The rest is unused."""
        by_length = sampler("normal", self.longest - self.shortest + 1)
        lengths = self.shortest + by_length.drawn(lanes[:, 0]).astype(np.int64)
        places = np.broadcast_to(np.arange(self.longest), (len(lengths), self.longest))
        used = places < lengths[:, None]
        in_sentence = places[used] % SENTENCE
        forms = np.where(in_sentence == 0, 1, np.where(in_sentence == SENTENCE - 1, 2, 0))
        own = lanes[:, 1:][used]
        of_spam, of_ham = (table.drawn(own) for table in _tables(self.vocabulary))
        drawn = np.where(np.repeat(spam, lengths), of_spam, of_ham) + self.vocabulary * forms
        ends = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
        spelled = _forms(self.vocabulary).take(pa.array(drawn))
        return pc.binary_join(pa.ListArray.from_arrays(pa.array(ends), spelled), " ")


@dataclass(frozen=True)
class IsSpam(FieldSpec):
    """Whether the mail of the stream's field `message` (number `message_place`) is spam."""

    message: Message
    message_place: int
    sql_type: ClassVar[str] = "boolean"

    def column(self, bits: PhiloxBits, first: int, last: int) -> Bools:
        return self.message.is_spam(replace(bits, field=self.message_place), first, last)


@lru_cache(maxsize=4)
def words(count: int) -> pa.Array:
    """`count` words, most frequent first: those of `Text`, then pairs of them."""
    short = vocabulary()
    beyond = np.arange(max(count - len(short), 0))
    first, second = (short.take(pa.array(place)) for place in (beyond % len(short), beyond // len(short)))
    return pa.concat_arrays([short.slice(0, min(count, len(short))), pc.binary_join_element_wise(first, second, "")])


@lru_cache(maxsize=4)
def shares(count: int) -> tuple[Floats, Floats]:
    """The probability of each of `words(count)` at any place of a spam mail, and of a ham mail, each shape (count,)."""
    turn = np.arange(count) % _TURN
    lean = np.where(turn == _TO_SPAM, LEAN, np.where(turn == _TO_HAM, 1 / LEAN, 1.0))
    usual = probabilities("zipf", count)
    of_spam, of_ham = usual * lean, usual / lean
    return of_spam / of_spam.sum(), of_ham / of_ham.sum()


@lru_cache(maxsize=4)
def _tables(count: int) -> tuple[Table, ...]:
    return tuple(map(Table, shares(count)))


@lru_cache(maxsize=4)
def _forms(count: int) -> pa.Array:
    """Every word unchanged, then every word with a capital, then every word with a full stop."""
    plain = words(count)
    return pa.concat_arrays([plain, pc.utf8_capitalize(plain), pc.binary_join_element_wise(plain, ".", "")])


SMALL = 0.4
"""The share of `small` words among the ordinary ones; the others are made up."""
FORMS: tuple[tuple[Callable[[str], str], float], ...] = (
    ("{}".format, 0.8), (str.capitalize, 0.08), ("{},".format, 0.03), (str.upper, 0.02), ("{}.".format, 0.02),
    ("#{}".format, 0.02), ("{}!".format, 0.01), ("“{}”".format, 0.01), ("{}…".format, 0.01),
)  # fmt: skip
"""Spellings of a word, with their shares."""
_SHARES_OF_FORMS = np.array([share for _, share in FORMS])
_DRAWS_OF_FORMS = Table(_SHARES_OF_FORMS)


class _Line(FieldSpec):
    """A line of words, each by two random numbers."""

    words: int

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        return self.concatenated([self._lines(lanes) for _, lanes in bits.blocks(first, last, 2 * self.words)])

    @abstractmethod
    def _lines(self, lanes: Lanes) -> pa.Array:
        """The lines of some events, from their random numbers."""


@dataclass(frozen=True)
class Opinion(_Line):
    """A line of `words` words; a share `opinions` of them (0 to 1) is from `good` or `bad`, equally often.

    The others are ordinary: `small` words, most frequent first, and words of `vocabulary` that are in no list.
    Every word has one of the spellings `FORMS`.
    """

    words: int
    opinions: float
    good: tuple[str, ...]
    bad: tuple[str, ...]
    small: tuple[str, ...]
    sql_type: ClassVar[str] = "string"

    @property
    def row_bytes(self) -> float:
        between_words = 1
        return OFFSET_BYTES + self.words * (_word_bytes(self) + between_words) - between_words

    def _lines(self, lanes: Lanes) -> pa.Array:
        places = _draws(self).drawn(lanes[::2])
        places += len(_words(self)) * _DRAWS_OF_FORMS.drawn(lanes[1::2])
        return joined(_written(self), places, self.words)


def _made_up(field: Opinion) -> list[str]:
    """The words of the vocabulary without meaning; some words of it happen to be English."""
    listed = {*field.small, *field.good, *field.bad}
    return [word for word in vocabulary().to_pylist() if word not in listed]


@lru_cache(maxsize=4)
def _words(field: Opinion) -> tuple[str, ...]:
    """Every word once, in the order of `_chances`."""
    return (*field.small, *_made_up(field), *field.good, *field.bad)


@lru_cache(maxsize=4)
def _chances(field: Opinion) -> Floats:
    """The probability of each word."""
    ordinary = 1 - field.opinions
    return np.concatenate([
        ordinary * SMALL * probabilities("zipf", len(field.small)),
        ordinary * (1 - SMALL) * probabilities("zipf", len(_made_up(field))),
        field.opinions / 2 * probabilities("uniform", len(field.good)),
        field.opinions / 2 * probabilities("uniform", len(field.bad)),
    ])  # fmt: skip


@lru_cache(maxsize=4)
def _written(field: Opinion) -> pa.Array:
    """All words in the first form, then all in the second, and so on."""
    return pa.array([form(word) for form, _ in FORMS for word in _words(field)])


@lru_cache(maxsize=4)
def _draws(field: Opinion) -> Table:
    return Table(_chances(field))


@lru_cache(maxsize=4)
def _word_bytes(field: Opinion) -> float:
    """The mean length of a word over all spellings."""
    lengths = pc.binary_length(_written(field)).to_numpy().reshape(len(FORMS), -1)
    return float(_SHARES_OF_FORMS @ lengths @ _chances(field))


@dataclass(frozen=True)
class Tweet(_Line):
    """A line of `words` words with Zipf's frequencies; a share `hashtags` of them (0 to 1) has a `#` before it."""

    words: int
    hashtags: float
    sql_type: ClassVar[str] = "string"

    @property
    def row_bytes(self) -> float:
        return Text(self.name, self.words).row_bytes + self.words * self.hashtags

    def _lines(self, lanes: Lanes) -> pa.Array:
        places = sampler("zipf", len(vocabulary())).drawn(lanes[::2])
        places += len(vocabulary()) * (lanes[1::2] < self.hashtags * 2.0**32)
        return joined(_words_and_hashtags(), places, self.words)


@lru_cache(maxsize=1)
def _words_and_hashtags() -> pa.Array:
    """Every word, then every word as a hashtag."""
    return pa.concat_arrays([vocabulary(), pc.binary_join_element_wise("#", vocabulary(), "")])


ID_DIGITS, TIME_DIGITS = 10, 12
"""Digits for ten thousand million records, and for eleven days in microseconds."""
RECORD_BYTES_MIN, RECORD_BYTES_MAX = ID_DIGITS + TIME_DIGITS + 2, 65_536
_COMMA, _ZERO, _LETTER = ord(","), ord("0"), ord("a")


@dataclass(frozen=True)
class TimestampedText(FieldSpec):
    """`id,created_us,` and letters that do not compress, `size_bytes` in all.

    `id` numbers the records of all partitions. `created_us` is the record's due time at `rate_per_s`, microseconds
    since the first one. Both have leading zeros.
    """

    size_bytes: int
    rate_per_s: float
    sql_type: ClassVar[str] = "string"

    @property
    def row_bytes(self) -> float:
        return self.size_bytes + OFFSET_BYTES

    column = column_of_one_partition

    def of_events(self, bits: PhiloxBits, first: int, last: int, numbers: EventNumbers) -> pa.Array:
        ids = numbers()
        created_us = (ids * (US / self.rate_per_s)).astype(np.int64)
        whole = np.empty((last - first, self.size_bytes), np.uint8)
        after_id, after_time = ID_DIGITS + 1, ID_DIGITS + TIME_DIGITS + 2
        whole[:, :ID_DIGITS] = _digits(ids, ID_DIGITS)
        whole[:, after_id : after_time - 1] = _digits(created_us, TIME_DIGITS)
        whole[:, (ID_DIGITS, after_time - 1)] = _COMMA
        whole[:, after_time:] = self._letters(bits, first, last)
        ends = np.arange(last - first + 1, dtype=np.int32) * np.int32(self.size_bytes)
        return pa.StringArray.from_buffers(last - first, pa.py_buffer(ends), pa.py_buffer(whole))

    def _letters(self, bits: PhiloxBits, first: int, last: int) -> npt.NDArray[np.uint8]:
        """Letters with four random bits each."""
        size = self.size_bytes - RECORD_BYTES_MIN
        lanes = -(-size // 4)
        drawn = bits.lanes(first * lanes, last * lanes).view(np.uint8).reshape(last - first, 4 * lanes)
        return (drawn[:, :size] & np.uint8(0x0F)) + np.uint8(_LETTER)


def _digits(numbers: Int64s, count: int) -> Int64s:
    """Decimal digits as ASCII, shape (n, count)."""
    return numbers[:, None] // 10 ** np.arange(count - 1, -1, -1) % 10 + _ZERO
