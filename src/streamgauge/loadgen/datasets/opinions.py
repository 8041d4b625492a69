"""Tweets with opinions: ordinary words with some positive and negative ones, in various spellings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.errors import InputError, Problem
from streamgauge.loadgen.fields import WORDS_MAX, FieldSpec, vocabulary
from streamgauge.loadgen.random.distributions import Table, probabilities
from streamgauge.loadgen.random.philox import Lanes, PhiloxBits

SMALL = 0.4
"""The share of `small` words among the ordinary ones; the others are made up."""
FORMS: tuple[tuple[Callable[[str], str], float], ...] = (
    ("{}".format, 0.8), (str.capitalize, 0.08), ("{},".format, 0.03), (str.upper, 0.02), ("{}.".format, 0.02),
    ("#{}".format, 0.02), ("{}!".format, 0.01), ("“{}”".format, 0.01), ("{}…".format, 0.01),
)  # fmt: skip
"""Spellings of a word, with their shares."""
_OFFSET_BYTES = 4


@dataclass(frozen=True)
class Opinion(FieldSpec):
    """A line of `words` words; a share `opinions` of them (0 to 1) is from `good` or `bad`, equally often.

    The others are ordinary: `small` words, most frequent first, and words of `vocabulary` that are in no list.
    Every word has one of the spellings `FORMS`.
    """

    words: int
    opinions: float
    good: tuple[str, ...]
    bad: tuple[str, ...]
    small: tuple[str, ...]
    spark_type: ClassVar[str] = "string"

    def __post_init__(self) -> None:
        if not 1 <= self.words <= WORDS_MAX:
            raise _refuse(f"{self.name}.words", f"must be 1 to {WORDS_MAX} words a line", self.words, "15")
        if not 0 <= self.opinions <= 1:
            raise _refuse(f"{self.name}.opinions", "must be a share from 0 to 1", self.opinions, "0.15")
        for name, words in (("good", self.good), ("bad", self.bad), ("small", self.small)):
            if not words:
                raise _refuse(f"{self.name}.{name}", "must hold a word", words, "('word',)")

    @property
    def row_bytes(self) -> float:
        between_words = 1
        return _OFFSET_BYTES + self.words * (_word_bytes(self) + between_words) - between_words

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        parts = [self._lines(lanes) for _, lanes in bits.blocks(first, last, 2 * self.words)]
        return pa.concat_arrays(parts) if parts else pa.array([], pa.string())

    def _lines(self, lanes: Lanes) -> pa.Array:
        places = _draws(self).drawn(lanes[::2])
        places += len(_words(self)) * _form_draws().drawn(lanes[1::2])
        ends = np.arange(0, len(places) + 1, self.words, dtype=np.int32)
        return pc.binary_join(pa.ListArray.from_arrays(pa.array(ends), _written(self).take(pa.array(places))), " ")


def _refuse(setting: str, rule: str, got: object, way_out: str) -> InputError:
    return InputError(Problem(setting, rule, got, way_out))


def _made_up(field: Opinion) -> list[str]:
    """The words of the vocabulary without meaning; some words of it happen to be English."""
    listed = {*field.small, *field.good, *field.bad}
    return [word for word in vocabulary().to_pylist() if word not in listed]


@lru_cache(maxsize=4)
def _words(field: Opinion) -> tuple[str, ...]:
    """Every word once, in the order of `_chances`."""
    return (*field.small, *_made_up(field), *field.good, *field.bad)


@lru_cache(maxsize=4)
def _chances(field: Opinion) -> npt.NDArray[np.float64]:
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


@lru_cache(maxsize=1)
def _form_draws() -> Table:
    return Table(np.array([weight for _, weight in FORMS]))


@lru_cache(maxsize=4)
def _word_bytes(field: Opinion) -> float:
    """The mean length of a word over all spellings."""
    lengths = pc.binary_length(_written(field)).to_numpy().reshape(len(FORMS), -1)
    return float(np.array([weight for _, weight in FORMS]) @ lengths @ _chances(field))
