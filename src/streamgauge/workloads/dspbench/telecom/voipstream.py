"""VoIPSTREAM (VS): calls of telemarketers, who call many new people, briefly, and are seldom called.

Each caller has decaying sums: established calls (ECR), those to new callees (ENCR), and calls received (RCR). Calls
(ECR24) and talking time (CT24) decay more slowly. Over all callers there is an average duration (global ACD). Three
ratios are scored from 0 to 1 between two thresholds:

- FoFiR: calls made to calls received
- URL: calls to new callees to all calls
- ACD: the average duration of all calls to that of the caller's own

Their weighted sum is the caller's score at this call. The results are calls with a score above a threshold.

Decisions:

- A call's time is its event time, so the order is unique. Calls in the same microsecond are ordered by event id.
- Sums decay by exp(-age / decay), with decays in seconds. The thesis's betas are 0.9672 per second (30 s), and 0.9917
  for what it calls 24 hours, which are 2 minutes. Here they are 24 hours.
- Only established calls count. An unanswered call has no duration to average.
- Scores rise from the lower threshold to the upper one. The thesis's code ignores the lower one. Its ACD ratio is
  inverted, so that it scores callers who talk five to ten times as long as others, but telemarketers are brief.
- For the same reason CT24 covers all calls, as ECR24 does, instead of those to new callees.
- The code joins filter outputs by caller and second: two calls in a second mix, and outputs without a partner stay
  forever. Here one process has all sums of a number, and returns them with their call.
- The global ACD is a second process with one instance: it adds the average so far to every call. That is the thesis's
  broadcast without its race. Windows would reach the caller's process after their calls. The average is an exact
  time-weighted mean from the first call on.
- A call becomes two rows, one for each number (`parties`), so that a caller's RCR is counted with the other sums.

The thesis's sums and its memory of who called whom are probabilistic. With `filter` `exact`, the default, all are
exact. With `bloom` they are Bloom filters of the thesis's sizes; `bloom` and `decayed` document the differences.
Filters bound the state, exact sums do not. With fewer numbers than cells, exact sums still take less: one cell per
number, where a filter takes one per hash. Both have a truth in SQL.

Malformed: numbers that are null or below 0, calls to oneself, durations that are null, below 0 or longer than a day,
and `established` other than 1 and 0. Such calls are ignored, like calls that were not established.

Source: Bordin 2017, section 3.3.14.
"""

import math
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, ValidationInfo, field_validator

from streamgauge.core.clock import US
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import Stream, source
from streamgauge.dataflow.operators.api import ROW, TIME, StateInAttributes
from streamgauge.loadgen.datasets.calls import SUBSCRIBERS_MAX, Called, Caller, Duration, Established
from streamgauge.loadgen.fields import StreamSpec, with_malformed
from streamgauge.workloads.helpers.decayed_sums import (
    HASHES_MAX,
    SHARDS,
    WORD,
    BloomFilter,
    DecayedSums,
    Exact,
    Filter,
    Places,
    RecentKeys,
    RecentKeysInBloom,
    decayed_sql,
    seen_sql,
)
from streamgauge.workloads.registry import Feature, Job, Parameters, Seconds, Workload, double, unless

DAY_S = 86_400
WHOLE = f"calling >= 0 AND called >= 0 AND calling <> called AND duration >= 0 AND duration <= {DAY_S}"
SOUND = f"established = 1 AND {WHOLE}"
RATES = ("ecr", "rcr", "encr", "ecr24", "ct24")
RATED = Schema.from_types(calling="int", gacd="double", **dict.fromkeys(RATES, "double"))


def _decay(default: float, description: str) -> Any:
    """A decay time, from a microsecond to 30 years."""
    return Field(default, ge=1e-6, le=1e9, description=description)


class VoipStream(Parameters):
    """The thesis's parameters and the calls'."""

    filter: Literal["exact", "bloom"] = Field(
        "exact", description="storage of sums and callees: exact, or bloom as in the thesis"
    )
    num_elements: int = Field(180_000, ge=1, le=10**8, description="bloom: capacity of the sums, in numbers")
    buckets_per_element: int = Field(10, ge=1, le=15, description="bloom: cells per number")
    variation_aprox_size: int = Field(
        180_000, ge=1, le=10**8, description="bloom: capacity for pairs of caller and callee"
    )
    variation_error_rate: float = Field(
        0.01, ge=1e-6, lt=0.5, description="bloom: share of the new callees that may pass for known"
    )
    variation_memory: Seconds = _decay(DAY_S, "a callee counts as new again after one to two of these times")
    ecr_decay: Seconds = _decay(30.0, "decay time of calls in ECR, RCR and ENCR: after it, a call counts 1 / e")
    ecr24_decay: Seconds = _decay(DAY_S, "decay time of ECR24 and CT24")
    acd_decay_factor: Seconds = _decay(DAY_S, "decay time of the average duration of all calls")
    fofir_threshold_min: float = Field(2.0, ge=0, le=1e6, description="ratio of calls made to received that scores 0")
    fofir_threshold_max: float = Field(10.0, le=1e6, validate_default=True, description="ratio that scores 1")
    fofir_weight: float = Field(2.0, ge=0, le=1000, description="weight of this score")
    url_threshold_min: float = Field(0.5, ge=0, le=1e6, description="share of calls to new callees that scores 0")
    url_threshold_max: float = Field(1.0, le=1e6, validate_default=True, description="share that scores 1")
    url_weight: float = Field(3.0, ge=0, le=1000, description="weight of this score")
    acd_threshold_min: float = Field(
        5.0, ge=0, le=1e6, description="ratio of the average duration of all calls to the caller's that scores 0"
    )
    acd_threshold_max: float = Field(10.0, le=1e6, validate_default=True, description="ratio that scores 1")
    acd_weight: float = Field(3.0, ge=0, le=1000, description="weight of this score")
    scorer_threshold: float = Field(6.5, ge=0, le=3000, description="calls with a greater score are telemarketers'")
    generator_population: int = Field(
        10_000, ge=2, le=SUBSCRIBERS_MAX, description="number of subscribers, who call with Zipf's frequencies"
    )
    generator_error_prob: float = Field(0.05, ge=0, le=1, description="share of the calls that are not answered")
    contacts: int = Field(8, ge=1, le=1000, description="number of people that a subscriber knows")
    strangers: float = Field(0.1, ge=0, le=1, description="share of the subscribers' calls that go to anyone")
    telemarketers: int = Field(100, ge=1, le=100_000, description="number of telemarketers")
    telemarketing: float = Field(0.02, ge=0, le=1, description="share of the calls made by telemarketers")
    malformed: float = Field(0.001, ge=0, le=1, description="share of the calls with an impossible duration")

    @field_validator("fofir_threshold_max", "url_threshold_max", "acd_threshold_max")
    @classmethod
    def _above_the_lower(cls, value: float, info: ValidationInfo) -> float:
        lower = f"{info.field_name}".replace("max", "min")
        if value <= info.data.get(lower, -math.inf):
            raise ValueError(f"must be above {lower}")
        return value


class GlobalAcd(StateInAttributes):
    """Adds the average duration of all calls so far to each call. There is one network, so one key."""

    def __init__(self, decay_us: int) -> None:
        self._sums = DecayedSums((decay_us, decay_us))

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        duration = _whole(batch, "duration")
        amounts = np.stack((duration, np.ones_like(duration))).astype(np.float64)
        total, calls = self._sums.add(np.zeros((1, len(duration)), np.int64), _whole(batch, TIME), amounts)
        columns = {name: batch.column(name) for name in ("calling", "called", "duration")}
        return pa.RecordBatch.from_pydict(columns | {"gacd": total / calls, ROW: np.arange(batch.num_rows)})


class CallRates(StateInAttributes):
    """The rates of callers, at each of their calls.

    `pairs` is the filter of callees (None: exact), `parties` says where the sums are. Each call comes as two rows, one
    with the caller as `party` and one with the callee.
    """

    def __init__(
        self, decay_us: int, decay24_us: int, memory_us: int, pairs: BloomFilter | None, parties: Places
    ) -> None:
        decays = (decay_us, decay_us, decay_us, decay24_us, decay24_us)
        self._parties = parties
        self._seen = RecentKeys(memory_us) if pairs is None else RecentKeysInBloom(memory_us, pairs)
        self._sums = DecayedSums(decays)
        self._decays_s = np.array(decays, np.float64)[:, None] / US

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        party, calling, times = (_whole(batch, name) for name in ("party", "calling", TIME))
        calls = party == calling
        rows = np.flatnonzero(calls)
        new = np.zeros(batch.num_rows, np.bool_)
        new[rows] = self._seen.add((calling * WORD + _whole(batch, "called"))[rows], times[rows])
        amounts = np.stack((calls, ~calls, new, calls, calls * _whole(batch, "duration")))
        cells = self._parties.addresses(party % SHARDS, party)
        rates = self._sums.add(cells, times, amounts.astype(np.float64))[:, rows] / self._decays_s
        outputs = {name: batch.column(name).take(pa.array(rows)) for name in ("calling", "gacd")}
        return pa.RecordBatch.from_pydict({**outputs, **dict(zip(RATES, rates, strict=True)), ROW: rows})


def _whole(batch: pa.RecordBatch, name: str) -> NDArray[np.int64]:
    """A column of whole numbers, without nulls because malformed calls were removed."""
    return np.asarray(batch.column(name).to_numpy(), np.int64)


def global_acd(calls: Stream, parameters: VoipStream) -> Stream:
    """Adds `gacd` to calls (`network`, `calling`, `called`, `duration`)."""
    decay_us = _us(parameters.acd_decay_factor)
    sums = decayed_sql("input", "network", {"total": ("duration", decay_us), "calls": ("1", decay_us)})
    return calls.process(
        GlobalAcd,
        keys="network",
        gives=Schema.from_types(calling="int", called="int", duration="int", gacd="double"),
        parameters={"decay_us": decay_us},
        truth=f"SELECT calling, called, duration, total / calls AS gacd, _row FROM ({sums})",
        name="global_acd",
    )


def call_rates(parties: Stream, parameters: VoipStream) -> Stream:
    """From rows (`party`, `calling`, `called`, `duration`, `gacd`) to the callers' rates: `RATED`."""
    if parameters.filter == "bloom":
        columns = {name: name for name in parties.columns}
        parties = parties.select(columns, shard=f"party % {SHARDS}", name="shard")
    pairs, cells = places(parameters)
    rule: dict[str, Any] = {
        "decay_us": _us(parameters.ecr_decay),
        "decay24_us": _us(parameters.ecr24_decay),
        "memory_us": _us(parameters.variation_memory),
        "pairs": pairs,
        "parties": cells,
    }
    return parties.process(
        CallRates,
        keys="party" if parameters.filter == "exact" else "shard",
        gives=RATED,
        parameters=rule,
        truth=rates_truth(**rule),
        name="call_rates",
    )


def places(parameters: VoipStream) -> tuple[BloomFilter | None, Places]:
    """The filter of pairs of caller and callee (None: exact) and the places of a number's sums, in optimal sizes."""
    if parameters.filter == "exact":
        return None, Exact()
    pairs = BloomFilter(parameters.variation_aprox_size, parameters.variation_error_rate)
    hashes = min(max(round(parameters.buckets_per_element * math.log(2)), 1), HASHES_MAX)
    cells = parameters.num_elements * parameters.buckets_per_element
    return pairs, Filter(hashes, math.ceil(cells / hashes / SHARDS))


def rates_truth(decay_us: int, decay24_us: int, memory_us: int, pairs: BloomFilter | None, parties: Places) -> str:
    """The rates, as DuckDB SQL: rows are expanded to cells, summed per cell, and collapsed again."""
    exactly = (f"calling::BIGINT * {WORD} + called",)
    pair = ", ".join(exactly if pairs is None else pairs.sql(f"(party % {SHARDS})", "calling", "called"))
    cell = ", ".join(parties.sql(f"(party % {SHARDS})", "party"))
    sums = {
        "ecr": ("calls::INT", decay_us),
        "rcr": ("(NOT calls)::INT", decay_us),
        "encr": ("calls_new::INT", decay_us),
        "ecr24": ("calls::INT", decay24_us),
        "ct24": ("calls::INT * duration", decay24_us),
    }
    rates = ", ".join(f"min({name}) / {decay / US!r}::DOUBLE AS {name}" for name, (_, decay) in sums.items())
    return (
        "WITH roles AS (SELECT *, party = calling AS calls FROM input),"
        f" paired AS (SELECT *, unnest([{pair}]) AS pair FROM roles),"
        f" seen AS ({seen_sql('paired', 'calls, pair', memory_us)}),"
        " known AS (SELECT party, calling, called, duration, gacd, calls, _time, _row,"
        " bool_or(calls AND fresh) AS calls_new FROM seen GROUP BY ALL),"
        f" placed AS (SELECT *, unnest([{cell}]) AS cell FROM known),"
        f" summed AS ({decayed_sql('placed', 'cell', sums)})"
        f" SELECT calling, gacd, {rates}, _row FROM summed WHERE calls GROUP BY ALL"
    )


def scored(rated: Stream, parameters: VoipStream) -> Stream:
    """From rates to callers' scores above the threshold."""
    p = parameters
    score = f"{double(p.fofir_weight)} * fofir + {double(p.url_weight)} * url + {double(p.acd_weight)} * acd"
    return (
        rated.select(
            calling="calling",
            fofir=ramp("ecr", "rcr", p.fofir_threshold_min, p.fofir_threshold_max),
            url=ramp("encr", "ecr", p.url_threshold_min, p.url_threshold_max),
            acd=ramp("gacd * ecr24", "ct24", p.acd_threshold_min, p.acd_threshold_max),
            name="fofir_url_acd",
        )
        .select(calling="calling", score=score, fofir="fofir", url="url", acd="acd", name="scorer")
        .where(f"score > {double(p.scorer_threshold)}", name="suspicious")
    )


def ramp(many: str, few: str, low: float, high: float) -> str:
    """Position of `many / few` between `low` and `high`, 0 to 1, as an expression.

    It multiplies, because `few` may be 0 or so small that the quotient overflows. If both are 0, the result is 0.
    """
    return (
        f"case when {many} <= {double(low)} * {few} then 0e0 when {many} >= {double(high)} * {few} then 1e0"
        f" else try_divide({many} - {double(low)} * {few}, {double(high - low)} * {few}) end"
    )


def _us(seconds: float) -> int:
    return round(seconds * US)


def build(parameters: VoipStream, rate_per_s: float) -> Job:
    caller = Caller("calling", parameters.generator_population, parameters.telemarketers, parameters.telemarketing)
    calls = StreamSpec(
        "calls",
        (
            caller,
            Called("called", caller, 0, parameters.contacts, parameters.strangers),
            with_malformed(Duration("duration", caller, 0), parameters.malformed, None, -1, DAY_S + 1),
            Established("established", parameters.generator_error_prob),
        ),
        key="calling",
    )
    established = (
        source("calls", calls.schema)
        .where(SOUND, name="established")
        .select(network="'all'", calling="calling", called="called", duration="duration", name="network")
    )
    parties = global_acd(established, parameters).explode(party="array(calling, called)", name="parties")
    result = scored(call_rates(parties, parameters), parameters)
    return Job(result.sink("telemarketers"), (calls,), {"calls": unless(f"{WHOLE} AND established IN (0, 1)")})


WORKLOAD = Workload(
    name="voipstream",
    title="VoIPSTREAM",
    summary="calls whose caller calls many new people, briefly, and is seldom called: telemarketers",
    source="Bordin 2017, section 3.3.14",
    parameters=VoipStream,
    build=build,
    features=(Feature.FLAT_MAP, Feature.FILTER, Feature.GLOBAL, Feature.PYTHON),
    features_with={Feature.PROBABILISTIC: ("filter", "bloom")},
    prefix="vs",
)
