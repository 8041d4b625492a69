"""Calls of a telephone network: subscribers call people they know, telemarketers call anyone, briefly.

Numbers 0, 1, ... are subscribers, who call with Zipf's frequencies; the first calls most. The numbers after them are
telemarketers, who call equally often and receive no calls. Subscribers know those with neighbouring numbers, so
frequent callers also receive more calls.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np

from streamgauge.core.arrays import Floats, Int32s
from streamgauge.loadgen.fields import FieldSpec, need_count, sampled
from streamgauge.loadgen.random import (
    Lanes,
    PhiloxBits,
    Sampler,
    Table,
    Uniform,
    empty,
    probabilities,
    sampler,
    shares_of_partitions,
    subset_of_partition,
)

SUBSCRIBERS_MAX = 1_000_000
TALK_S, PITCH_S = 120.0, 8.0
"""The mean duration of a subscriber's call, and of a telemarketer's."""
SPREAD = 0.6
"""The standard deviation of the logarithm of durations, which is normal."""
LONGEST_S = 3600
"""The limit (exclusive) of durations."""

_COIN_STEPS = 2.0**32
_NUMBER = "telephone number"
"""The kind of key of callers and callees, who have the same numbers."""


@dataclass(frozen=True)
class Caller(FieldSpec):
    """The caller: one of `subscribers`, or for a share `selling` of the calls (0 to 1) one of `telemarketers`."""

    subscribers: int
    telemarketers: int
    selling: float
    sql_type: ClassVar[str] = "int"

    @property
    def key_kind(self) -> str:
        return _NUMBER

    def partition_shares(self, partitions: int) -> Floats:
        return shares_of_partitions(_chances(self), partitions)

    def column(self, bits: PhiloxBits, first: int, last: int) -> Int32s:
        if bits.split > 1:
            return sampled(_callers_of(self, bits.partition, bits.split), bits, first, last)
        out = empty(last - first, np.int32)
        for part, lanes in bits.blocks(first, last, width=2):
            out[part] = np.where(
                lanes[::2] < self.selling * _COIN_STEPS,
                Uniform(self.telemarketers, self.subscribers).drawn(lanes[1::2]),
                sampler("zipf", self.subscribers).drawn(lanes[1::2]),
            )
        return out


@lru_cache(maxsize=4)
def _chances(caller: Caller) -> Floats:
    """The probability of each number to call."""
    subscribers = (1 - caller.selling) * probabilities("zipf", caller.subscribers)
    return np.append(subscribers, np.full(caller.telemarketers, caller.selling / caller.telemarketers))


@lru_cache(maxsize=64)
def _callers_of(caller: Caller, partition: int, partitions: int) -> Sampler:
    return subset_of_partition(_chances(caller), partition, partitions)


@dataclass(frozen=True)
class Called(FieldSpec):
    """The subscriber that the stream's field `caller` (number `caller_place`) calls; never the caller.

    A subscriber calls one of the `contacts` nearest numbers with Zipf's frequencies, nearest first. A share `strangers`
    of its calls (0 to 1), and all calls of telemarketers, go to random subscribers.
    """

    caller: Caller
    caller_place: int
    contacts: int
    strangers: float
    sql_type: ClassVar[str] = "int"

    def __post_init__(self) -> None:
        most = self.caller.subscribers - 1
        need_count(f"{self.name}.contacts", self.contacts, most, f"{min(8, most)}", ", which is everybody else")

    @property
    def key_kind(self) -> str:
        return _NUMBER

    def column(self, bits: PhiloxBits, first: int, last: int) -> Int32s:
        callers = self.caller.column(replace(bits, field=self.caller_place), first, last)
        people = self.caller.subscribers
        out = empty(last - first, np.int32)
        for part, lanes in bits.blocks(first, last, width=2):
            by = callers[part]
            at_random = (by >= people) | (lanes[::2] < self.strangers * _COIN_STEPS)
            anyone = Uniform(people - 1, 1).drawn(lanes[1::2])
            out[part] = (by + np.where(at_random, anyone, self._near(lanes[1::2]))) % people
        return out

    def _near(self, lanes: Lanes) -> Int32s:
        """The distance between the numbers of subscriber and contact: 1, -1, 2, -2, ..."""
        rank = sampler("zipf", self.contacts).drawn(lanes)
        far = rank // 2 + 1
        return np.where(rank % 2 == 0, far, -far)


@dataclass(frozen=True)
class Duration(FieldSpec):
    """The duration of the call by the stream's field `caller` (number `caller_place`), whole seconds."""

    caller: Caller
    caller_place: int
    sql_type: ClassVar[str] = "int"

    def column(self, bits: PhiloxBits, first: int, last: int) -> Int32s:
        callers = self.caller.column(replace(bits, field=self.caller_place), first, last)
        out = empty(last - first, np.int32)
        for part, lanes in bits.blocks(first, last):
            selling = callers[part] >= self.caller.subscribers
            out[part] = np.where(selling, _durations(PITCH_S).drawn(lanes), _durations(TALK_S).drawn(lanes))
        return out


@dataclass(frozen=True)
class Established(FieldSpec):
    """1 for answered calls; 0 for a share `failed` of the calls (0 to 1)."""

    failed: float
    sql_type: ClassVar[str] = "int"

    def column(self, bits: PhiloxBits, first: int, last: int) -> Int32s:
        out = empty(last - first, np.int32)
        for part, lanes in bits.blocks(first, last):
            out[part] = lanes >= self.failed * _COIN_STEPS
        return out


@lru_cache(maxsize=8)
def _durations(mean_s: float) -> Table:
    """The sampler of whole seconds below `LONGEST_S`, from a truncated log-normal distribution."""
    from scipy.special import ndtr

    shorter = ndtr(np.log(np.arange(1, LONGEST_S) / mean_s) / SPREAD + SPREAD / 2)
    return Table(np.diff(shorter, prepend=0.0, append=1.0))
