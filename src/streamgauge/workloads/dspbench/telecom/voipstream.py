"""VoIPSTREAM (VS): calls of telemarketers, who call many new people, briefly, and are seldom called.

Of every caller, sums in which a call counts less and less: established calls (ECR), those to somebody new (ENCR), calls
received (RCR), and, over a longer time, calls (ECR24) and time talked (CT24); over all callers, the average duration
(global ACD). Three ratios of them are scored from 0 to 1 between two thresholds: FoFiR, calls made to calls received;
URL, calls to somebody new to all; ACD, the average duration of all calls to that of the caller's own. Their weighted
sum is the score of the caller at this call; calls with a score above a threshold are the result.

What was decided:

- A call's time is its event time, so there is one order; who is called at the same microsecond is counted by event id.
- Sums forget by exp(-age / decay), with decays in seconds. The thesis's betas are 0.9672 a second, 30 s, and 0.9917
  for what it calls 24 hours, which are 2 minutes; here they are 24 hours.
- Only established calls count anywhere; a call that nobody answered has no duration that could be averaged.
- Scores rise from the lower threshold to the upper one. The code ignores the lower one, and its ACD is the caller's own
  average to that of all, so that it scores who talks five to ten times as long as others. Here it is the other way
  round: telemarketers are brief. For the same end CT24 is of all calls, as ECR24 is, and not of those to somebody new.
- The code joins what filters emit by caller and second, so two calls in a second meet wrongly, and what finds no
  partner stays for ever. Here one process has all sums of a number, and gives them with the call that they are of.
- The global ACD is another process, of one instance: it sees every call and sends it on with the average up to it.
  That is the thesis's broadcast without its race; windows would come to the caller's process after the calls they are
  for. The average is by time, an exact weighted mean from the first call on.
- A call becomes two rows, one of each number (`parties`), so a caller's RCR is counted where the other sums are.

The thesis's sums and the memory of who called whom are probabilistic. With `filter` `exact`, the default, all of them
are exact; with `bloom` they are kept in Bloom filters of the thesis's sizes (`bloom` and `decayed` say which, and how
they differ from the thesis's). Filters bound the state, and exact sums do not; yet as long as there are fewer numbers
than cells, a number takes one cell exactly and one for each hash in a filter of sums. Both ways have a truth in SQL.

Numbers that are null or below 0, calls to oneself, durations that are null, below 0 or longer than a day, and calls
that say neither that they were established (1) nor that they were not (0) are malformed: such calls are left out, as
those that were not established.

Source: Bordin 2017, section 3.3.14.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, ValidationInfo, field_validator

from streamgauge.core.clock import US
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import Stream, source
from streamgauge.dataflow.operators.api import ROW, TIME, Processor
from streamgauge.dataflow.operators.grouped_arrays import load, save
from streamgauge.loadgen.datasets.calls import SUBSCRIBERS_MAX, Called, Caller, Duration, Established
from streamgauge.loadgen.fields import StreamSpec
from streamgauge.loadgen.malformed import with_malformed
from streamgauge.workloads.features import Feature
from streamgauge.workloads.helpers.bloom_filter import BloomFilter, RecentKeysInBloom
from streamgauge.workloads.helpers.decayed_sums import (
    HASHES_MAX,
    SHARDS,
    WORD,
    DecayedSums,
    Exact,
    Filter,
    Places,
    RecentKeys,
    decayed_sql,
    seen_sql,
)
from streamgauge.workloads.registry import Job, Parameters, Seconds, Workload, double, unless

DAY_S = 86_400
WHOLE = f"calling >= 0 AND called >= 0 AND calling <> called AND duration >= 0 AND duration <= {DAY_S}"
SOUND = f"established = 1 AND {WHOLE}"
RATES = ("ecr", "rcr", "encr", "ecr24", "ct24")
RATED = Schema.of(calling="int", gacd="double", **dict.fromkeys(RATES, "double"))


def _decay(default: float, description: str) -> Any:
    """A time after which things are forgotten: at least a microsecond, so that it is some, at most 30 years."""
    return Field(default, ge=1e-6, le=1e9, description=description)


class VoipStream(Parameters):
    """The thesis's parameters, and the calls."""

    filter: Literal["exact", "bloom"] = Field(
        "exact", description="how sums and callees are kept: exact, or bloom as in the thesis"
    )
    num_elements: int = Field(180_000, ge=1, le=10**8, description="of bloom: for how many numbers sums are kept")
    buckets_per_element: int = Field(10, ge=1, le=15, description="of bloom: cells for each of them")
    variation_aprox_size: int = Field(
        180_000, ge=1, le=10**8, description="of bloom: for how many pairs of caller and callee there is room"
    )
    variation_error_rate: float = Field(
        0.01, ge=1e-6, lt=0.5, description="of bloom: share of the new callees that may pass for known"
    )
    variation_memory: Seconds = _decay(DAY_S, "a callee is new again after one to two of these times")
    ecr_decay: Seconds = _decay(30.0, "over how long calls count in ECR, RCR and ENCR: after it, a call counts 1 / e")
    ecr24_decay: Seconds = _decay(DAY_S, "the same of ECR24 and CT24")
    acd_decay_factor: Seconds = _decay(DAY_S, "the same of the average duration of all calls")
    fofir_threshold_min: float = Field(2.0, ge=0, le=1e6, description="calls made to calls received that score 0")
    fofir_threshold_max: float = Field(10.0, le=1e6, validate_default=True, description="those that score 1")
    fofir_weight: float = Field(2.0, ge=0, le=1000, description="what that score counts")
    url_threshold_min: float = Field(0.5, ge=0, le=1e6, description="share of calls to new callees that scores 0")
    url_threshold_max: float = Field(1.0, le=1e6, validate_default=True, description="the one that scores 1")
    url_weight: float = Field(3.0, ge=0, le=1000, description="what that score counts")
    acd_threshold_min: float = Field(
        5.0, ge=0, le=1e6, description="average duration of all calls to that of the caller's that scores 0"
    )
    acd_threshold_max: float = Field(10.0, le=1e6, validate_default=True, description="the one that scores 1")
    acd_weight: float = Field(3.0, ge=0, le=1000, description="what that score counts")
    scorer_threshold: float = Field(6.5, ge=0, le=3000, description="calls with a greater score are telemarketers'")
    generator_population: int = Field(
        10_000, ge=2, le=SUBSCRIBERS_MAX, description="how many subscribers there are, who call with Zipf's frequencies"
    )
    generator_error_prob: float = Field(0.05, ge=0, le=1, description="share of the calls that nobody answers")
    contacts: int = Field(8, ge=1, le=1000, description="how many people a subscriber knows")
    strangers: float = Field(0.1, ge=0, le=1, description="share of the subscribers' calls that go to anyone")
    telemarketers: int = Field(100, ge=1, le=100_000, description="how many telemarketers there are besides")
    telemarketing: float = Field(0.02, ge=0, le=1, description="share of the calls that are theirs")
    malformed: float = Field(0.001, ge=0, le=1, description="share of the calls without a duration that can be")

    @field_validator("fofir_threshold_max", "url_threshold_max", "acd_threshold_max")
    @classmethod
    def _above_the_lower(cls, value: float, info: ValidationInfo) -> float:
        lower = f"{info.field_name}".replace("max", "min")
        if value <= info.data.get(lower, -math.inf):
            raise ValueError(f"must be above {lower}")
        return value


class GlobalAcd(Processor):
    """Each call with the average duration of all up to it; there is one network, so it has one key."""

    def __init__(self, decay_us: int) -> None:
        self._sums = DecayedSums((decay_us, decay_us))

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        duration = _whole(batch, "duration")
        amounts = np.stack((duration, np.ones_like(duration))).astype(np.float64)
        total, calls = self._sums.add(np.zeros((1, len(duration)), np.int64), _whole(batch, TIME), amounts)
        columns = {name: batch.column(name) for name in ("calling", "called", "duration")}
        columns |= {"gacd": pa.array(total / calls), ROW: pa.array(np.arange(batch.num_rows))}
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def snapshot(self) -> bytes:
        return save(**self._sums.state)

    def restore(self, state: bytes) -> None:
        self._sums.restore(**load(state))


class CallRates(Processor):
    """The rates of who calls, at each of its calls; `pairs` is the filter of callees (none: exactly), `parties` says
    where sums are kept.

    It is given two rows of each call, one with the caller as `party` and one with the callee.
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
        amounts = np.stack((calls, ~calls, self._new(batch, rows), calls, calls * _whole(batch, "duration")))
        cells = self._parties.addresses(party % SHARDS, party)
        rates = self._sums.add(cells, times, amounts.astype(np.float64))[:, rows] / self._decays_s
        outputs = {name: batch.column(name).take(pa.array(rows)) for name in ("calling", "gacd")}
        outputs |= {name: pa.array(rate) for name, rate in zip(RATES, rates, strict=True)} | {ROW: pa.array(rows)}
        return pa.RecordBatch.from_arrays(list(outputs.values()), names=list(outputs))

    def _new(self, batch: pa.RecordBatch, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """The variation detector: which of the batch's rows are a caller's (`rows`) and call somebody new."""
        calling, called, times = (_whole(batch, name)[rows] for name in ("calling", "called", TIME))
        new = np.zeros(batch.num_rows, np.bool_)
        new[rows] = self._seen.add(calling * WORD + called, times)
        return new

    def snapshot(self) -> bytes:
        seen = {f"seen_{name}": array for name, array in self._seen.state.items()}
        return save(**self._sums.state, **seen)

    def restore(self, state: bytes) -> None:
        saved = load(state)
        self._sums.restore(saved["addresses"], saved["numbers"])
        self._seen.restore(**{name.removeprefix("seen_"): saved[name] for name in saved if name.startswith("seen_")})


def _whole(batch: pa.RecordBatch, name: str) -> NDArray[np.int64]:
    """A column of whole numbers; none is null, because malformed calls were left out."""
    column: NDArray[np.int64] = batch.column(name).to_numpy().astype(np.int64, copy=False)
    return column


def global_acd(calls: Stream, parameters: VoipStream) -> Stream:
    """Calls (`network`, `calling`, `called`, `duration`) with `gacd`."""
    decay_us = _us(parameters.acd_decay_factor)
    sums = decayed_sql("input", "network", {"total": ("duration", decay_us), "calls": ("1", decay_us)})
    return calls.process(
        GlobalAcd,
        keys="network",
        gives=Schema.of(calling="int", called="int", duration="int", gacd="double"),
        parameters={"decay_us": decay_us},
        truth=f"SELECT calling, called, duration, total / calls AS gacd, _row FROM ({sums})",
        name="global_acd",
    )


def call_rates(parties: Stream, parameters: VoipStream) -> Stream:
    """Rows (`party`, `calling`, `called`, `duration`, `gacd`) as the rates of who calls: `RATED`."""
    if parameters.filter == "bloom":
        columns = {name: name for name in parties.columns}
        parties = parties.select(columns, shard=f"party % {SHARDS}", name="shard")
    pairs, cells = places(parameters)
    decay_us, decay24_us = _us(parameters.ecr_decay), _us(parameters.ecr24_decay)
    memory_us = _us(parameters.variation_memory)
    arguments = {
        "decay_us": decay_us,
        "decay24_us": decay24_us,
        "memory_us": memory_us,
        "pairs": pairs,
        "parties": cells,
    }
    return parties.process(
        CallRates,
        keys="party" if parameters.filter == "exact" else "shard",
        gives=RATED,
        parameters=arguments,
        truth=rates_truth(decay_us, decay24_us, memory_us, pairs, cells),
        name="call_rates",
    )


def places(parameters: VoipStream) -> tuple[BloomFilter | None, Places]:
    """The filter of pairs of caller and callee (none: exactly), and where the sums of a number are: best sizes."""
    if parameters.filter == "exact":
        return None, Exact()
    pairs = BloomFilter(parameters.variation_aprox_size, parameters.variation_error_rate)
    hashes = min(max(round(parameters.buckets_per_element * math.log(2)), 1), HASHES_MAX)
    cells = parameters.num_elements * parameters.buckets_per_element
    return pairs, Filter(hashes, _width(cells / hashes))


def _width(cells: float) -> int:
    """Of a part of one filter, where all filters together have so many cells in it."""
    return math.ceil(cells / SHARDS)


def rates_truth(decay_us: int, decay24_us: int, memory_us: int, pairs: BloomFilter | None, parties: Places) -> str:
    """The rates as DuckDB SQL: each row once for each of its cells, window functions over a cell, then rows again."""
    exactly = (f"calling::BIGINT * {WORD} + called",)
    pair = ", ".join(exactly if pairs is None else pairs.sql(f"(party % {SHARDS})", "calling", "called"))
    cell = ", ".join(parties.sql(f"(party % {SHARDS})", "party"))
    amounts = ("calls::INT", "(NOT calls)::INT", "calls_new::INT", "calls::INT", "calls::INT * duration")
    decays = (decay_us, decay_us, decay_us, decay24_us, decay24_us)
    sums = dict(zip(RATES, zip(amounts, decays, strict=True), strict=True))
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
    """Rates as the scores of who calls; those above the threshold."""
    p = parameters
    modules = rated.select(
        calling="calling",
        fofir=ramp("ecr", "rcr", p.fofir_threshold_min, p.fofir_threshold_max),
        url=ramp("encr", "ecr", p.url_threshold_min, p.url_threshold_max),
        acd=ramp("gacd * ecr24", "ct24", p.acd_threshold_min, p.acd_threshold_max),
        name="fofir_url_acd",
    )
    weights = {"fofir": p.fofir_weight, "url": p.url_weight, "acd": p.acd_weight}
    score = " + ".join(f"{double(weight)} * {name}" for name, weight in weights.items())
    scores = modules.select(calling="calling", score=score, fofir="fofir", url="url", acd="acd", name="scorer")
    return scores.where(f"score > {double(p.scorer_threshold)}", name="suspicious")


def ramp(many: str, few: str, low: float, high: float) -> str:
    """How far `many / few` is on its way from `low` to `high`, 0 to 1, as an expression.

    Products, because `few` may be 0, or so little that a quotient would overflow; of nothing and nothing it is 0.
    """
    above = f"{many} - {double(low)} * {few}"
    return (
        f"case when {many} <= {double(low)} * {few} then 0e0 when {many} >= {double(high)} * {few} then 1e0"
        f" else try_divide({above}, {double(high - low)} * {few}) end"
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
