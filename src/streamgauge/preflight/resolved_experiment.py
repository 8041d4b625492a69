"""An experiment that can be started: every default filled in, and the values that follow.

Only `preflight.settings_checks` creates one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from streamgauge.config.experiment import Experiment, Load, undecided
from streamgauge.config.limits import EXTENSION_SHARE_MAX, EXTENSIONS_MAX, ServiceLevelObjective
from streamgauge.core.clock import US
from streamgauge.core.engine_reports import Guarantee
from streamgauge.core.schema import INGEST_TIME, LINEAGE
from streamgauge.core.trial import TrialSpans
from streamgauge.dataflow import graph
from streamgauge.dataflow.lineage import needed_columns, with_lineage
from streamgauge.dataflow.nodes import Explode, Flow, Lookup, Process, Select, Source, Union, Where
from streamgauge.dataflow.reach import reach_us, slide_us, tail_us
from streamgauge.engines.registry import capabilities, entry
from streamgauge.engines.spi import BatchInterval, Capabilities, StartRequest, TuningProfile
from streamgauge.loadgen.fields import Payload, StreamSpec
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import RISES_FROM, RISES_TO, RateProfile, parse_profile
from streamgauge.loadgen.replay.columns import require_times
from streamgauge.preflight.resources import Budget
from streamgauge.system.cpu_pinning import cpus
from streamgauge.transports.registry import BROKERED, STAMPS
from streamgauge.user_workloads.lookup import kind_of
from streamgauge.workloads.registry import Job, Workload

UNSEEN_FACTOR = 1.25
"""The queue holds at least so many times what may have been read before it is seen. Chosen."""
FRESH_WARMUP_S = 45.0
"""A fresh JVM compiles for about this long. Measured: its batches become 15 times shorter meanwhile."""
RISE_SHARE, WARM_RISE_S = 0.8, 4.0
"""Length of the rising rate in a warm-up: a share of a fresh engine's first 45 s, or seconds on a warm engine, whose
first batches after an idle time are slow."""
_RISE_LACKS = 1 - (RISES_FROM + RISES_TO) / 2
"""Share of the full rate's events that a second of rising rate lacks."""
WARM_WARMUP_SHARE = 0.25
"""Share of all events (Karimov et al. 2018)."""
UNBOUNDED_TAIL_S = 2.0
"""Running state has no reach, so the tail only lets the last measured events through."""
TAIL_MARGIN_S = 1.0
SLOW_CHUNK_US, COARSE = 10_000, 5
FAST_CHUNK_US = COARSE * SLOW_CHUNK_US
FAST_RATE_PER_S = 200_000
CHUNK_SHARE_MAX = 0.05
"""Chunk length as a share of the engine's batch interval, which is little beside an event's wait for its batch. Short
chunks cost CPU: 100 a second of two streams took 18 % of a core per generator at 12 k events/s."""
EVENT_BYTES_SLACK = 1.01
"""Factor on the computed size of an event: Arrow pads buffers, and text lengths vary."""
LEVEL_MAX_US = 60 * US
"""Most extra warm-up while the engine is still starting."""
HOLD_US = 60 * US
"""Most time that generators continue while a trend is judged, which takes far less."""

STATELESS = (Source, Select, Where, Explode, Lookup, Union)
"""The kinds of nodes that keep no state."""


@dataclass(frozen=True)
class Draft:
    """An experiment with what follows from it, for the checks. What a refusal leaves open is None.

    Attributes:
        flow: as the engine runs it.
        transport: the one that defaults follow: if it is refused, another one, so that no further problems arise.
        processes: the generators that are started beside the engine.
    """

    experiment: Experiment
    workload: Workload | None
    engine: Capabilities | None
    flow: Flow | None
    transport: str
    limits: tuple[ServiceLevelObjective, ...]
    budget: Budget
    processes: int
    partitions: int
    request: StartRequest

    @cached_property
    def interval(self) -> BatchInterval:
        return entry(self.engine.name).interval(self.request) if self.engine else BatchInterval()

    @property
    def kind(self) -> type[Workload]:
        """What answers questions about the workload where its file is refused."""
        return kind_of(self.experiment.workload)


@dataclass(frozen=True)
class ResolvedExperiment:
    """An experiment that can be started, with the values that follow."""

    experiment: Experiment
    workload: Workload
    parameters: Any
    engine: Capabilities
    flow: Flow
    generators: int
    partitions: int
    bytes_max: int
    tail_us: int
    reach_us: int | None
    limits: tuple[ServiceLevelObjective, ...]
    driver_cpus: tuple[int, ...] | None
    sut_cpus: tuple[int, ...] | None

    @property
    def engine_options(self) -> dict[str, str]:
        """Engine options: those of the tuning profile and the experiment's settings."""
        return engine_options(self.experiment, self.engine)

    @property
    def transport_options(self) -> dict[str, str]:
        """Transport options: those of the profile or the engine, the experiment's, and what a program's file says."""
        return {**transport_options(self.experiment, self.engine), **self.workload.transport_options}

    @property
    def unseen_s(self) -> float:
        """For how long nothing may show that an event was read, seconds."""
        of_engine_us = entry(self.engine.name).unseen_us(self._request)
        return max(self.workload.unseen_s, of_engine_us / US)

    @cached_property
    def lineage_flow(self) -> Flow:
        """The flow that runs, with the lineage columns that identify and time its results.

        The user's own code may name any of them. Over a broker its ingest time is null.
        """
        is_known = self.workload.operators_known
        return with_lineage(self.flow, ingest_time=not is_known or self.experiment.transport in STAMPS)

    @property
    def keyed(self) -> bool:
        """Whether messages carry a key, which then decides their partition."""
        return self.experiment.transport in BROKERED

    @property
    def reads_unevenly(self) -> bool:
        """Whether a batch reads partitions or streams up to different event times, each up to its own offset."""
        return self._is_uneven and self.engine.has_batch_ids

    @property
    def hides_reads(self) -> bool:
        """Whether the engine reads them so and does not say how far, because it has no batches."""
        return self._is_uneven and not self.engine.has_batch_ids

    @property
    def _is_uneven(self) -> bool:
        several = self.partitions > 1 or len(graph.sources(self.flow)) > 1
        return self.experiment.transport in BROKERED and several

    @property
    def sees_deliveries(self) -> bool:
        """Whether the driver sees each delivery, so that events have an ingest time."""
        return self.experiment.transport in STAMPS

    @property
    def waits_for_all(self) -> bool:
        """Whether events can be read only after every generator has offered its chunk."""
        return self.sees_deliveries and self.experiment.load.frontier == "common"

    @property
    def holds_rows(self) -> bool:
        """Whether a keyed process holds rows until the watermark, because batches read partitions unevenly."""
        keyed = (isinstance(node, Process) and bool(node.keys) for node in graph.operators(self.flow))
        return self.reads_unevenly and any(keyed)

    @property
    def keys(self) -> dict[str, str]:
        """The key column of each stream that has one; empty over a transport without keys."""
        streams = self.streams(self.experiment.load.rate) if self.keyed else ()
        return {stream.name: stream.key for stream in streams if stream.key is not None}

    @cached_property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """Columns that the transport carries, by stream: those that the flow reads, payloads, and keys of messages.

        All declared ones, if the engine's options say so.
        """
        columns = needed_columns(self.lineage_flow)
        if entry(self.engine.name).sends_all_columns(self.engine_options):
            columns = {
                source.name: (*source.schema.names, *(name for name in columns[source.name] if name in LINEAGE))
                for source in graph.sources(self.lineage_flow)
            }
        for stream in self.streams(self.experiment.load.rate):
            if stream.name not in columns:
                continue
            payloads = [field.name for field in stream.fields if isinstance(field, Payload)]
            keys = [stream.key] if stream.key is not None and self.keyed and stream.key not in payloads else []
            missing = tuple(name for name in (*payloads, *keys) if name not in columns[stream.name])
            columns[stream.name] = missing + columns[stream.name]
        return columns

    @property
    def generated_columns(self) -> dict[str, tuple[str, ...]]:
        """Columns that generators produce, by stream; the transport adds the ingest time."""
        return {
            stream: tuple(name for name in columns if name != INGEST_TIME) for stream, columns in self.columns.items()
        }

    def by_sink(self) -> tuple[Self, ...]:
        """One experiment for each sink."""
        return tuple(replace(self, flow=one, reach_us=reach_us(one)) for one in self.flow.each())

    @property
    def closing_sinks(self) -> tuple[str, ...]:
        """Sinks whose results wait for the end of a window or for the watermark."""
        delay_us = entry(self.engine.name).closing_delay_us
        return tuple(one.flow.sink.name for one in self.by_sink() if tail_us(one.flow, delay_us) or one.holds_rows)

    @property
    def generators_in_words(self) -> str:
        """The number of generators, and whether they exceed the processors."""
        processors = len(cpus())
        number = f"{self.generators} generator{'s' * (self.generators > 1)}"
        if self.partitions != self.generators:
            number = f"{number} of {self.partitions} partitions"
        return f"{number}, more than the {processors} processors" if self.generators > processors else number

    @property
    def interval(self) -> BatchInterval:
        """Least time between the starts of two batches, and its option."""
        return entry(self.engine.name).interval(self._request)

    @property
    def interval_s(self) -> float:
        """Least time between the starts of two batches; 0 if unknown."""
        return self.interval.seconds

    @property
    def watermark_delay_us(self) -> int:
        """How far the engine's watermark stays behind the latest event."""
        return entry(self.engine.name).watermark_delay_us(self._request)

    @property
    def kept_us(self) -> int:
        """How much of the latest event time the engine does not commit."""
        return entry(self.engine.name).kept_us(self._request)

    @property
    def guarantee(self) -> Guarantee | None:
        """That of the engine, if it is weaker than exactly once; that of a program stands in its file."""
        keeps_state = any(not isinstance(node, STATELESS) for node in graph.operators(self.flow))
        delivery = (keeps_state and self.engine.delivery_of_windows) or self.engine.delivery
        return None if delivery in (None, "exactly_once") else Guarantee(delivery, only_after_restart=True)

    @property
    def _request(self) -> StartRequest:
        return start_request_of(self.experiment, self.engine, self.flow, self.bytes_max, self.partitions)

    def windows_due(self, span_us: int) -> int | None:
        """Least number of windows that end in a span, for the sink with the fewest; None without windows."""
        slide = longest_slide_us(self.flow)
        return span_us // slide if slide is not None else None

    def streams(self, rate_per_s: float) -> tuple[StreamSpec, ...]:
        """The input streams at a rate. Some workloads grow a key domain with it, to keep a selectivity constant."""
        built = self._built if rate_per_s == self.experiment.load.rate else self._built_for(rate_per_s)
        return tuple(built.streams)

    @property
    def malformed(self) -> Mapping[str, str]:
        """Rule for malformed records, by stream."""
        return self._built.malformed

    @cached_property
    def _built(self) -> Job:
        return self._built_for(self.experiment.load.rate)

    def _built_for(self, rate_per_s: float) -> Job:
        return self.workload.build(self.parameters, rate_per_s)

    def warmup_s(self, fresh: bool, duration_s: float) -> float:
        if self.experiment.load.warmup is not None:
            return self.experiment.load.warmup
        for_events = duration_s * WARM_WARMUP_SHARE / (1 - WARM_WARMUP_SHARE)
        # Windows start empty, so the engine's state is complete only after one reach.
        for_state = (self.reach_us or 0) / US
        rise_s = _rise_s(FRESH_WARMUP_S, fresh)
        least_s = max(for_events + _RISE_LACKS * rise_s, rise_s + for_state)
        return max(least_s, FRESH_WARMUP_S, entry(self.engine.name).warmup_s(self._request)) if fresh else least_s

    def spans(self, start_us: int, fresh: bool, duration_s: float) -> TrialSpans:
        measured_from = start_us + round(self.warmup_s(fresh, duration_s) * US)
        measured_to = measured_from + round(duration_s * US)
        return TrialSpans(start_us, measured_from, measured_to, measured_to + self.tail_us)

    def plan(self, start_us: int, rate_per_s: float, whole_s: float, profile: RateProfile | None = None) -> Plan:
        """The plan of a load. Raises InputError if a plan, or the data's time column, cannot hold it."""
        profile = profile or parse_profile("constant", rate_per_s, whole_s)
        seed = self.experiment.load.seed
        plan = Plan(self.streams(rate_per_s), profile, start_us, whole_s, self.partitions, seed, self.keyed)
        for number, stream in enumerate(plan.streams):
            require_times(stream, plan.planned_events(plan.start_us, plan.end_us, number))
        return plan

    def trial_plan(self, spans: TrialSpans, rate_per_s: float, fresh: bool, spare_s: float = 0.0) -> Plan:
        """The plan of a trial: a rising rate in the warm-up, then the requested profile.

        At the full rate from the start, an engine builds up a backlog and drains it for minutes near its limit, which
        says nothing about the rate that it sustains. `spare_s`: seconds by which the plan is longer.
        """
        load = self.experiment.load
        whole_s = (spans.end_us - spans.start_us) / US + spare_s
        warmup_s = (spans.measured_from_us - spans.start_us) / US
        profile = parse_profile(load.profile, rate_per_s, load.duration)
        return self.plan(spans.start_us, rate_per_s, whole_s, profile.delayed(warmup_s, _rise_s(warmup_s, fresh)))

    def chunk_for(self, rate_per_s: float) -> int:
        requested = self.experiment.load.chunk
        if requested is not None:
            return round(requested * US)
        coarse = rate_per_s >= FAST_RATE_PER_S or self.interval_s * US * CHUNK_SHARE_MAX >= FAST_CHUNK_US
        return (self.engine.chunk_us or SLOW_CHUNK_US) * (COARSE if coarse else 1)

    @property
    def queue_s(self) -> float:
        """Seconds of input that the queue may hold: the requested ones, and no fewer than a program may wait, or than
        may have been read before it is seen.
        """
        return max(self.experiment.load.bound, self.workload.patience_s, UNSEEN_FACTOR * self.unseen_s)

    def bound_s(self, rate_per_s: float) -> tuple[float, bool]:
        """(seconds of the rate that the queue holds, whether memory limits it below the requested bound).

        A queue counts Arrow bytes. It takes whole chunks, so the last one may not fit.
        """
        requested = self.queue_s
        by_memory = self.bytes_max / (EVENT_BYTES_SLACK * self.event_bytes(rate_per_s) * rate_per_s)
        return min(requested, by_memory), by_memory < requested

    def event_bytes(self, rate_per_s: float) -> float:
        """Arrow bytes of an event, the mean over the streams."""
        columns = self.generated_columns
        return sum(stream.bytes_of(columns[stream.name]) * stream.share for stream in self.streams(rate_per_s))


def start_request_of(
    experiment: Experiment,
    engine: Capabilities | None,
    flow: Flow | None,
    queue_bytes: int,
    partitions: int,
    generators_bytes: int = 0,
) -> StartRequest:
    return StartRequest(
        flow, engine_options(experiment, engine), experiment.master, experiment.load.frontier, queue_bytes,
        experiment.bind, generators_bytes, experiment.transport, partitions, experiment.parallelism,
        transport_options(experiment, engine) if engine is not None else experiment.transport_options,
        experiment.search.start_rate or 0.0 if experiment.command == "sustain" else experiment.load.rate,
    )  # fmt: skip


def longest_slide_us(flow: Flow) -> int | None:
    return max((slide for sink in flow.sinks if (slide := slide_us(sink.input)) is not None), default=None)


def trial_tail_us(flow: Flow, engine: Capabilities, request: StartRequest) -> int:
    """Length of a trial's tail: until the results of all measured events have arrived."""
    plugin, unbounded_s = entry(engine.name), UNBOUNDED_TAIL_S if reach_us(flow) is None else 0.0
    closed_s = max(tail_us(flow, plugin.closing_delay_us) / US, unbounded_s)
    return round((TAIL_MARGIN_S + closed_s) * US) + plugin.watermark_delay_us(request)


def may_extend(load: Load) -> bool:
    """Whether a trial may be extended. A changing rate has no defined load past its end."""
    return load.profile == "constant"


def spare_s(duration_s: float) -> float:
    """Most seconds by which a trial can become longer than planned."""
    return EXTENSIONS_MAX * EXTENSION_SHARE_MAX * duration_s + (HOLD_US + LEVEL_MAX_US) / US


def _rise_s(warmup_s: float, fresh: bool) -> float:
    return RISE_SHARE * min(warmup_s, FRESH_WARMUP_S) if fresh else min(WARM_RISE_S, warmup_s / 2)


_EMPTY = TuningProfile()


def with_engine_transport(experiment: Experiment) -> Experiment:
    """The experiment with its transport decided: the given one, else the default or the first that the engine reads.

    It stays undecided if the engine is unknown.
    """
    engine = capabilities().get(experiment.engine)
    if engine is None or not engine.transports or not undecided(experiment):
        return experiment
    readable, default = engine.transports, experiment.transport
    return experiment.model_copy(update={"transport": default if default in readable else readable[0]})


def engine_options(experiment: Experiment, engine: Capabilities | None) -> dict[str, str]:
    """The engine's options; without an engine that is known, only the user's."""
    return {**_profile(experiment, engine).options, **experiment.options}


def transport_options(experiment: Experiment, engine: Capabilities) -> dict[str, str]:
    """The transport's options: where neither the user nor the profile says anything, the engine's own."""
    by_profile = _profile(experiment, engine).transport_options.get(experiment.transport, {})
    encoding = {"encoding": engine.encodings[0]} if experiment.transport in BROKERED and engine.encodings else {}
    return {**encoding, **engine.transport_options, **by_profile, **experiment.transport_options}


def _profile(experiment: Experiment, engine: Capabilities | None) -> TuningProfile:
    return engine.profiles.get(experiment.tuning, _EMPTY) if engine is not None else _EMPTY
