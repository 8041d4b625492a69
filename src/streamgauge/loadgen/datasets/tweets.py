"""Short messages with hashtags: words of `Text`, some with a `#` before them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.errors import InputError, Problem
from streamgauge.loadgen.fields import WORDS_MAX, FieldSpec, Text, vocabulary
from streamgauge.loadgen.random.distributions import sampler
from streamgauge.loadgen.random.philox import PhiloxBits


@dataclass(frozen=True)
class Tweet(FieldSpec):
    """A line of `words` words with Zipf's frequencies; a share `hashtags` of them (0 to 1) has a `#` before it."""

    words: int
    hashtags: float
    spark_type: ClassVar[str] = "string"

    def __post_init__(self) -> None:
        if not 1 <= self.words <= WORDS_MAX:
            raise InputError(Problem(f"{self.name}.words", f"must be 1 to {WORDS_MAX} words a line", self.words, "15"))
        if not 0 <= self.hashtags <= 1:
            raise InputError(Problem(f"{self.name}.hashtags", "must be a share from 0 to 1", self.hashtags, "0.1"))

    @property
    def row_bytes(self) -> float:
        return Text(self.name, self.words).row_bytes + self.words * self.hashtags

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        parts = [self._lines(lanes) for _, lanes in bits.blocks(first, last, 2 * self.words)]
        return pa.concat_arrays(parts) if parts else pa.array([], pa.string())

    def _lines(self, lanes: np.ndarray) -> pa.Array:
        places = sampler("zipf", len(vocabulary())).drawn(lanes[::2])
        places += len(vocabulary()) * (lanes[1::2] < self.hashtags * 2.0**32)
        ends = np.arange(0, len(places) + 1, self.words, dtype=np.int32)
        return pc.binary_join(pa.ListArray.from_arrays(pa.array(ends), _words().take(pa.array(places))), " ")


@lru_cache(maxsize=1)
def _words() -> pa.Array:
    """Every word, then every word as a hashtag."""
    return pa.concat_arrays([vocabulary(), pc.binary_join_element_wise("#", vocabulary(), "")])
