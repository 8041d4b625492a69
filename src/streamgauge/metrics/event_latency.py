"""Latencies from the columns of results, by the rules of Karimov et al. 2018, section IV.

Pure functions over Arrow batches: no clocks, no files. Event time alone decides which rows count, never arrival. So a
stall cannot push its victims out of the figures.

Terms:

- The *base* of a latency is the timestamp it counts from: latency = emission - base.
- A *lower bound* stands for an expected result that had not arrived at the deadline: "at least deadline - base".
- The *effective count* is the number of independent observations: rows for row-wise results, closed windows for
  windowed ones, engine batches for updates. If the engine's batches are known, it is at most their number, because one
  slow batch delays all its results.
- A window belongs to the span if at least half of its results do: see `_Windows`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.arrays import Bools, Int64s
from streamgauge.core.schema import EMISSION_TIME, EVENT_TIME, INGEST_TIME, WINDOW_END
from streamgauge.dataflow import graph, schema
from streamgauge.dataflow.nodes import Explode, Flow, Lookup, OpaqueNode, RunningAggregate, Select, Where, WindowJoin
from streamgauge.metrics.histogram import Histogram, SecondHistograms
from streamgauge.results.latency import PERCENTILES, Latencies, Latency
from streamgauge.stats.samples import carries

ENGINE_BATCH = b"engine_batch"
"""Key in the metadata of a batch's schema: the query and batch of these rows, if known."""

CLOSING = "closing_delay"
_BELOW_0, _EARLY = "a negative latency", "a window closed early"

Kind = Literal["row", "window", "update", "join"]


@dataclass(frozen=True)
class LatencyRule:
    """How the latencies of one sink are defined.

    For "join" the driver computes both timestamps of a result from its window's end and the plan (Karimov et al. 2018,
    section IV). `window_event_time` and `window_ingest_time` map window ends (n,) to times (n,), all microseconds.
    `handed_over` maps event times (n,) to the times at which generators published the events; None if unknown.
    """

    kind: Kind
    window_event_time: Callable[[Int64s], Int64s] | None = None
    window_ingest_time: Callable[[Int64s], Int64s] | None = None
    handed_over: Callable[[Int64s], Int64s] | None = None

    @property
    def windowed(self) -> bool:
        return self.kind in ("window", "join")


@dataclass(frozen=True)
class Missing:
    """Expected results that had not arrived at `deadline_us`: their event times (n,), by the rule of the sink.

    `ingest_time_us` and `window_end_us` (n,) are None if unknown; the latencies that need them then lack these results.
    """

    deadline_us: int
    event_time_us: Int64s
    ingest_time_us: Int64s | None = None
    window_end_us: Int64s | None = None


@dataclass(frozen=True)
class LatencyBySecond:
    """For each kind of latency, the histogram of results by second of event time since the epoch.

    Missing results are included as lower bounds. The last two are empty if the kind does not exist.
    """

    event_time: dict[int, Histogram] = field(default_factory=dict)
    processing_time: dict[int, Histogram] = field(default_factory=dict)
    closing_delay: dict[int, Histogram] = field(default_factory=dict)


class SinkLatencies(NamedTuple):
    """What `sink_latencies` returns. `negatives`: results with a negative latency, by a wrong clock or a wrong time.

    `windows_closed`: windows with at least half of their results in the span and at least one result; None if results
    are not windowed. `window_gap_us`: the least distance of two window ends among all results; None if fewer than two
    are known.
    """

    latencies: Latencies
    seconds: LatencyBySecond
    negatives: int
    effective_count: int
    histograms: dict[str, Histogram]
    windows_closed: int | None
    window_gap_us: int | None = None

    def with_until_counted(self, latency: Latency) -> SinkLatencies:
        return self._replace(latencies=self.latencies.model_copy(update={"until_counted_us": latency}))

    def with_notes(self, *notes: str) -> SinkLatencies:
        """The same with more notes at the end."""
        return self._replace(latencies=self.latencies.model_copy(update={"notes": (*self.latencies.notes, *notes)}))


def summary(histogram: Histogram, effective_count: int, lower_bounds: int = 0) -> Latency:
    """One latency as it is reported; a percentile is null if `effective_count` is too small for it.

    `lower_bounds`: how many of the values stand for missing results.
    """
    return Latency(
        min=histogram.min,
        mean=histogram.mean,
        max=histogram.max,
        count=histogram.count,
        effective_count=effective_count,
        lower_bounds=lower_bounds,
        note=f"{histogram.n_negative} negative values are in no figure" if histogram.n_negative else "",
        **{name: carried_percentile(histogram, q, effective_count) for name, q in PERCENTILES.items()},
    )


def carried_percentile(histogram: Histogram, q: float, effective_count: int) -> float | None:
    """A percentile; None if too few independent observations carry it."""
    value = histogram.percentile(q) if carries(q, effective_count) else None
    return None if value is None else float(value)


def sink_latencies(
    batches: Iterable[pa.RecordBatch], rule: LatencyRule, span: tuple[int, int], missing: Iterable[Missing] = ()
) -> SinkLatencies:
    """All latencies of one sink's results whose event time lies in `span` = [from, to), microseconds.

    Columns: event_time, ingest_time (may be null or absent) and emission_time as BIGINT microseconds; for windowed
    kinds also window_end (timestamp, microseconds, UTC). Raises ValueError if a column is absent or an emission_time is
    null.

    - If batches name their `ENGINE_BATCH`, each engine batch counts as at most one observation. Else updates of one
      emission time count as one batch, and rows and windows count as they are.
    - Negative latencies are in no figure; `negatives` counts their results, also outside the span, because a clock
      that is wrong by more than the span moves its results out of it.
    - If the SUT closes a window early (before its end, after its events), it has no closing delay, and a note says so.
    - A join may emit a match before its window is complete. Then latencies from the window's last event do not exist
      (Karimov et al. 2018, section IV), and only `match_time` is reported.
    - Rows without an event time, or without their window's end, are wrong answers. A note counts them.
    """
    tally = _Tally(rule)
    for batch in batches:
        timed = _timed(batch, rule)
        tally.rows_timeless += batch.num_rows - timed.num_rows
        whole = _rows(timed, rule)
        inside = (whole.event_time >= span[0]) & (whole.event_time < span[1])
        rows = whole if inside.all() else whole.filtered(inside)
        if rule.windowed:
            _weigh(tally.windows.came, whole.bases[CLOSING], inside)
        tally.negatives += int(np.count_nonzero((whole.emission < whole.cause) & ~inside))
        if rows.event_time.size:
            tally.add(rows, (batch.schema.metadata or {}).get(ENGINE_BATCH))
    for part in missing:
        tally.add_missing(part, span)
    return tally.result()


@dataclass(frozen=True)
class _Rows:
    """Timestamps of some results (n,): emission, and the base of each kind of latency that applies."""

    emission: Int64s
    bases: dict[str, Int64s]

    def filtered(self, inside: Bools) -> _Rows:
        return _Rows(self.emission[inside], {name: base[inside] for name, base in self.bases.items()})

    @property
    def event_time(self) -> Int64s:
        return self.bases["event_time"]

    @property
    def cause(self) -> Int64s:
        """The event that made the result possible: for a match its later event, not the end of its window."""
        return self.bases.get("match_time", self.event_time)


def _timed(batch: pa.RecordBatch, rule: LatencyRule) -> pa.RecordBatch:
    """The rows that have every timestamp that their latencies need."""
    for name in (EVENT_TIME, WINDOW_END) if rule.windowed else (EVENT_TIME,):
        if name in batch.schema.names and batch.column(name).null_count:
            batch = batch.filter(pc.is_valid(batch.column(name)))
    return batch


def _rows(batch: pa.RecordBatch, rule: LatencyRule) -> _Rows:
    event_time = _times(_column(batch, EVENT_TIME))
    if rule.window_event_time is not None:
        window_end = _times(_column(batch, WINDOW_END))
        bases = {"event_time": rule.window_event_time(window_end), "match_time": event_time}
        if rule.window_ingest_time is not None:
            bases["processing_time"] = rule.window_ingest_time(window_end)
    else:
        # Row-wise and aggregated results carry both timestamps. Over a broker, ingest_time may be null.
        bases = {"event_time": event_time}
        if INGEST_TIME in batch.schema.names and not batch.column(INGEST_TIME).null_count:
            bases["processing_time"] = _times(batch.column(INGEST_TIME))
    if rule.windowed:
        bases[CLOSING] = _times(_column(batch, WINDOW_END))
    if rule.handed_over is not None:
        bases["uncorrected"] = rule.handed_over(bases["event_time"])
    return _Rows(_times(_column(batch, EMISSION_TIME)), bases)


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    if name not in batch.schema.names:
        raise ValueError(f"results must have a column {name}; they have {', '.join(batch.schema.names)}")
    return batch.column(name)


def _times(column: pa.Array) -> Int64s:
    """BIGINT or timestamp (any unit) as int64 microseconds, without a copy if possible."""
    if pa.types.is_timestamp(column.type):
        column = pc.cast(column, pa.timestamp("us", column.type.tz)).view(pa.int64())
    if column.null_count:
        raise ValueError("a result has no emission time")
    times: Int64s = column.to_numpy(zero_copy_only=True).astype(np.int64, copy=False)
    return times


def _count_early(rows: _Rows) -> int:
    """Matches that came before the last event of their window was due, or before it was delivered (0: never).

    The second condition matters if a system is behind by more than a window: all its results are late, and yet early.
    """
    early = rows.emission < rows.event_time
    last_ingest = rows.bases.get("processing_time")
    if last_ingest is not None:
        early |= (last_ingest == 0) | (rows.emission < last_ingest)
    return int(np.count_nonzero(early))


@dataclass
class _Windows:
    """The windows that are observations of the span: those with at least half of their results in it.

    Results are chosen by event time, so each end of the span cuts through the results of a window. Of a window that
    closes after the span, a rare key whose last event came early is in the span, and all others are not. The half is of
    a window's own results, not of the fullest window's, because windows may differ in size, such as a join's matches or
    alarms.

    Keys are window ends in microseconds; values are results inside the span minus those outside, for results that
    `came` and for those `missing`. These are sums, so the parts of a window may come in any batches.
    """

    came: Counter[int] = field(default_factory=Counter)
    missing: Counter[int] = field(default_factory=Counter)

    @property
    def closed(self) -> int:
        """Those that results came of."""
        return sum(more >= 0 for more in self.came.values())

    @property
    def gap_us(self) -> int | None:
        """How far apart windows end, at least: their slide where they have one."""
        ends = np.unique(np.fromiter(self.came, np.int64, len(self.came)))
        return int(np.diff(ends).min()) if ends.size > 1 else None

    @property
    def observed(self) -> int:
        """Those and the ones that should have closed."""
        ends = self.came.keys() | self.missing.keys()
        return sum(self.came[end] + self.missing[end] >= 0 for end in ends)


def _weigh(sums: Counter[int], ends: Int64s, inside: Bools) -> None:
    """Adds to `sums` the window ends of all results of a batch; `inside`: which of them are in the span."""
    found, place = np.unique(ends, return_inverse=True)
    more = np.bincount(place.ravel(), np.where(inside, 1, -1), found.size).astype(np.int64)
    sums.update(dict(zip(found.tolist(), more.tolist(), strict=True)))


@dataclass
class _Tally:
    """Everything counted so far of one sink."""

    rule: LatencyRule
    seconds: dict[str, SecondHistograms] = field(
        default_factory=lambda: {each.name: SecondHistograms() for each in fields(LatencyBySecond)}
    )
    others: dict[str, Histogram] = field(default_factory=dict)
    bounds: dict[str, int] = field(default_factory=dict)
    first_negative: dict[str, tuple[int, int]] = field(default_factory=dict)
    windows: _Windows = field(default_factory=_Windows)
    updates: set[int | bytes] = field(default_factory=set)
    engine_batches: set[bytes] = field(default_factory=set)
    rows: int = 0
    rows_without_ingest: int = 0
    rows_timeless: int = 0
    rows_early: int = 0
    negatives: int = 0

    def add(self, rows: _Rows, engine_batch: bytes | None) -> None:
        self.rows += rows.event_time.size
        self.rows_without_ingest += 0 if "processing_time" in rows.bases else rows.event_time.size
        if engine_batch is not None:
            self.engine_batches.add(engine_batch)
        if self.rule.kind == "update":
            # Tasks of one engine batch send apart, and each part has a stamp of its own.
            self.updates.update(np.unique(rows.emission).tolist() if engine_batch is None else [engine_batch])
        self.rows_early += _count_early(rows) if self.rule.kind == "join" else 0
        negative = np.zeros(rows.event_time.size, np.bool_)
        for name, base in rows.bases.items():
            latency_us = rows.emission - base
            if self.rule.kind == "join" and name != "match_time":
                latency_us = np.maximum(latency_us, 0)  # of early matches, for which `_summary` gives no such figure
            negative |= (latency_us < 0) & (name != CLOSING)
            if name not in self.first_negative and latency_us.min() < 0:
                first = int(np.argmax(latency_us < 0))
                self.first_negative[name] = (int(base[first]), int(base[first] + latency_us[first]))
            self._count(name, rows.event_time, latency_us)
        self.negatives += int(np.count_nonzero(negative))

    def add_missing(self, missing: Missing, span: tuple[int, int]) -> None:
        """Missing results enter as lower bounds, in the second of their event time; after all that came."""
        inside = (missing.event_time_us >= span[0]) & (missing.event_time_us < span[1])
        event_time = missing.event_time_us[inside]
        window_end = missing.window_end_us if self.rule.windowed else None
        bases = {
            "event_time": missing.event_time_us, "processing_time": missing.ingest_time_us, CLOSING: window_end
        }  # fmt: skip
        for name, base in bases.items():
            if base is not None and event_time.size:
                self._count(name, event_time, missing.deadline_us - base[inside])
                self.bounds[name] = self.bounds.get(name, 0) + int(event_time.size)
        self.rows += event_time.size
        if window_end is not None:
            _weigh(self.windows.missing, window_end, inside)

    def result(self) -> SinkLatencies:
        totals = {name: histograms.total for name, histograms in self.seconds.items()}
        # The kinds that apply; event time always does.
        kinds = {
            name: total for name, total in totals.items() if name == "event_time" or total.count or total.n_negative
        } | self.others
        reported = {f"{name}_us": self._summary(name, histogram) for name, histogram in kinds.items()}
        latencies = Latencies(**reported, notes=tuple(self._notes(kinds)))
        by_second = {} if self.rows_early else {name: each.histograms() for name, each in self.seconds.items()}
        closed, gap_us = (self.windows.closed, self.windows.gap_us) if self.rule.windowed else (None, None)
        return SinkLatencies(
            latencies, LatencyBySecond(**by_second), self.negatives, self.effective_count, kinds, closed, gap_us
        )

    @property
    def effective_count(self) -> int:
        return min(self._counted, len(self.engine_batches) or self._counted)

    @property
    def _counted(self) -> int:
        """Rows, windows or updates, however few batches they came in."""
        if self.rule.windowed:
            return self.windows.observed
        return self.rows if self.rule.kind == "row" else len(self.updates)

    def _count(self, name: str, event_time: Int64s, latency_us: Int64s) -> None:
        if name in self.seconds:
            self.seconds[name].add(event_time, latency_us)
        else:
            self.others.setdefault(name, Histogram()).add(latency_us)

    def _summary(self, name: str, histogram: Histogram) -> Latency:
        if self.rows_early and name != "match_time":
            note = f"{self.rows_early} of {self.rows} matches came before their window was complete: see match_time"
            return Latency(count=self.rows, effective_count=self.effective_count, note=note)
        return summary(histogram, self.effective_count, self.bounds.get(name, 0))

    def _notes(self, kinds: dict[str, Histogram]) -> list[str]:
        notes = [
            f"{name}: {_EARLY if name == CLOSING else _BELOW_0}, emission {emission} before {base} (us since the epoch)"
            for name, (base, emission) in self.first_negative.items()
        ]
        if self.rows_early:
            notes.append(
                f"event_time: {self.rows_early} of {self.rows} matches came before their window was complete, so they "
                "have no latency from its last event; match_time is their own"
            )
        lost = [
            name
            for name, q in PERCENTILES.items()
            if carries(q, self._counted) and not carries(q, self.effective_count)
        ]
        if lost:  # rows or windows would carry these, and the batches that they came in do not
            came = self.rows - self.bounds.get("event_time", 0)
            notes.append(
                f"{', '.join(lost)}: not given, since {came} results came in {self.effective_count} batches of "
                "the engine; those of a batch share its delays, so one slow batch may be all of that tail"
            )
        if self.rows_timeless:
            notes.append(
                f"{self.rows_timeless} results of the trial carry no event time, or no end of their window: "
                "they are in no figure"
            )
        if self.rows_without_ingest:
            notes.append(f"processing_time: {self.rows_without_ingest} results carry no ingest time")
        unbounded = [name for name in kinds if name not in self.bounds]
        if self.bounds and unbounded:
            notes.append(
                f"{', '.join(unbounded)}: {self.bounds['event_time']} missing results are not in these figures"
            )
        return notes


def kind_of(flow: Flow) -> Kind:
    """The kind of results of a flow with one sink that is not a user job."""
    node = flow.sink.input
    if isinstance(node, RunningAggregate):
        return "update"
    if WINDOW_END not in schema.columns(node):
        return "row"
    return "join" if has_matches(flow) else "window"


def has_matches(flow: Flow) -> bool:
    """Whether the results are matches of a window join, possibly changed row by row."""
    node = flow.sink.input
    while isinstance(node, (Select, Where, Lookup, Explode)):
        node = node.input
    return isinstance(node, WindowJoin)


def latencies_of(flow: Flow) -> tuple[str, ...] | None:
    """The latencies that a flow's sinks have; None for user jobs, whose columns are unknown before the run."""
    if any(isinstance(node, OpaqueNode) for node in graph.operators(flow)):
        return None
    kinds = {kind_of(one) for one in flow.each()}
    applies = {
        "event_time": True,
        "until_counted": "update" in kinds,
        "processing_time": True,
        "closing_delay": kinds & {"window", "join"},
        "match_time": "join" in kinds,
        "uncorrected": True,
    }
    return tuple(name for name, has_it in applies.items() if has_it)
