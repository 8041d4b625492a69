"""An experiment that can be started: every default filled in, and what follows from it.

Only `preflight.validate` makes one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from streamgauge.config.experiment import Experiment, Load
from streamgauge.config.slo import ServiceLevelObjective
from streamgauge.config.thresholds import EXTENSION_SHARE_MAX, EXTENSIONS_MAX
from streamgauge.core.clock import US
from streamgauge.core.lineage_columns import INGEST_TIME
from streamgauge.core.trial_spans import TrialSpans
from streamgauge.dataflow.horizon import reach_us, slide_us, tail_us
from streamgauge.dataflow.lineage import needed_columns, with_lineage
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.registry import entry
from streamgauge.engines.spi import Capabilities, StartRequest
from streamgauge.loadgen.fields import Payload, StreamSpec
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import RISES_FROM, RISES_TO, RateProfile, parse_profile
from streamgauge.loadgen.replay.columns import require_times
from streamgauge.preflight.tuning import engine_options, transport_options
from streamgauge.system.machine import cpus
from streamgauge.transports.registry import STAMPS
from streamgauge.workloads.registry import Workload

FRESH_WARMUP_S = 45.0
"""A fresh JVM compiles for this long; batches shrink fifteen-fold on the way (measured)."""
RISE_SHARE, WARM_RISE_S = 0.8, 4.0
"""So long the rate rises in a warm-up: that share of a fresh engine's first 45 s; where an engine has run before, long
enough for the few slow batches after an idle time."""
_RISE_LACKS = 1 - (RISES_FROM + RISES_TO) / 2
"""Events that a second of rising rate lacks, as a share of those of a second at the whole rate."""
WARM_WARMUP_SHARE = 0.25
"""Of the events [K]."""
UNBOUNDED_TAIL_S = 2.0
"""Running state has no reach: nothing to close, so the tail only lets the last measured events through."""
TAIL_MARGIN_S = 1.0
SLOW_CHUNK_US, COARSE = 10_000, 5
FAST_CHUNK_US = COARSE * SLOW_CHUNK_US
FAST_RATE_PER_S = 200_000
CHUNK_SHARE_MAX = 0.05
"""Of the interval of the engine's batches: so little is nothing beside what an event waits for its batch. Short chunks
cost: a hundred a second of two streams took 18 % of a core in each generator, beside 12 k events/s."""
EVENT_BYTES_SLACK = 1.01
"""What an event takes may be so much more than what is computed: Arrow pads, and lengths of texts vary."""
LEVEL_MAX_US = 60 * US
"""A warm-up at whose end the engine is still starting goes on for at most so long."""
HOLD_US = 60 * US
"""How long generators may go on while a trend is judged; far more than that takes."""


@dataclass(frozen=True)
class ResolvedExperiment:
    """An experiment that can be started, with what follows from it."""

    experiment: Experiment
    workload: Workload
    parameters: Any
    engine: Capabilities
    flow: Flow
    generators: int
    bytes_max: int
    tail_us: int
    reach_us: int | None
    limits: tuple[ServiceLevelObjective, ...]
    driver_cpus: tuple[int, ...] | None
    sut_cpus: tuple[int, ...] | None

    @property
    def engine_options(self) -> dict[str, str]:
        """What is asked of the engine, by the tuning profile where the experiment does not say."""
        return engine_options(self.experiment, self.engine)

    @property
    def transport_options(self) -> dict[str, str]:
        """What is asked of the transport, by the profile or the engine where the experiment does not say."""
        return transport_options(self.experiment, self.engine)

    @property
    def lineage_flow(self) -> Flow:
        """The flow that runs, with all that its results are told apart and timed by."""
        return with_lineage(self.flow, ingest_time=self.experiment.transport in STAMPS)

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """What the transport carries of each stream: what the flow reads, and payloads, which are there for that."""
        columns = needed_columns(self.lineage_flow)
        for stream in self.streams(self.experiment.load.rate):
            if stream.name not in columns:
                continue
            payloads = [field.name for field in stream.fields if isinstance(field, Payload)]
            missing = tuple(name for name in payloads if name not in columns[stream.name])
            columns[stream.name] = missing + columns[stream.name]
        return columns

    @property
    def made_columns(self) -> dict[str, tuple[str, ...]]:
        """What generators make of each stream: the transport adds the time at which it hands an event out."""
        return {
            stream: tuple(name for name in columns if name != INGEST_TIME) for stream, columns in self.columns.items()
        }

    def of_each_sink(self) -> tuple[ResolvedExperiment, ...]:
        """The same experiment, as far as each sink is concerned."""
        return tuple(replace(self, flow=one, reach_us=reach_us(one)) for one in self.flow.each())

    @property
    def closing_sinks(self) -> tuple[str, ...]:
        """The sinks whose results come when a window closes, or when the watermark lets them out."""
        return tuple(one.flow.sink.name for one in self.of_each_sink() if tail_us(one.flow))

    @property
    def generators_in_words(self) -> str:
        """How many there are, and whether some of them have no processor to themselves."""
        there = len(cpus())
        number = f"{self.generators} generator{'s' * (self.generators > 1)}"
        return f"{number}, more than there are processors ({there})" if self.generators > there else number

    @property
    def interval_s(self) -> float:
        """How far apart the engine's batches begin, at least; 0 where that is not known."""
        return entry(self.engine.name).interval(self._wanted).seconds

    @property
    def watermark_delay_us(self) -> int:
        """How far behind the latest event the engine's watermark stays."""
        return entry(self.engine.name).watermark_delay_us(self._wanted)

    @property
    def _wanted(self) -> StartRequest:
        return start_request_of(self.experiment, self.engine, self.flow, self.bytes_max, self.generators)

    def windows_due(self, span_us: int) -> int | None:
        """How many windows end in such a span, at least, for the sink with fewest; None where none is windowed."""
        slide = longest_slide_us(self.flow)
        return span_us // slide if slide is not None else None

    def streams(self, rate_per_s: float) -> tuple[StreamSpec, ...]:
        """The input streams at a rate: some workloads keep a selectivity constant by growing a key domain."""
        return tuple(self.workload.build(self.parameters, rate_per_s).streams)

    @property
    def malformed(self) -> Mapping[str, str]:
        """The rule by which records of a stream are malformed, of each stream that has one."""
        rules: Mapping[str, str] = self.workload.build(self.parameters, self.experiment.load.rate).malformed
        return rules

    def warmup_s(self, fresh: bool, duration_s: float) -> float:
        if self.experiment.load.warmup is not None:
            return self.experiment.load.warmup
        of_events = duration_s * WARM_WARMUP_SHARE / (1 - WARM_WARMUP_SHARE)
        # Trials begin with empty windows: before they have filled once, an engine has less state than it will have.
        of_state = (self.reach_us or 0) / US
        if fresh:
            rise_s = _rise_s(FRESH_WARMUP_S, fresh)
            of_engine = entry(self.engine.name).warmup_s(self._wanted)
            return max(FRESH_WARMUP_S, of_events + _RISE_LACKS * rise_s, rise_s + of_state, of_engine)
        return max(of_events + _RISE_LACKS * WARM_RISE_S, WARM_RISE_S + of_state)

    def spans(self, start_us: int, fresh: bool, duration_s: float) -> TrialSpans:
        measured_from = start_us + round(self.warmup_s(fresh, duration_s) * US)
        measured_to = measured_from + round(duration_s * US)
        return TrialSpans(start_us, measured_from, measured_to, measured_to + self.tail_us)

    def plan(self, start_us: int, rate_per_s: float, whole_s: float, profile: RateProfile | None = None) -> Plan:
        """InputError where no plan can hold that, or the data's own time cannot."""
        profile = profile or parse_profile("constant", rate_per_s, whole_s)
        load = self.experiment.load
        plan = Plan(self.streams(rate_per_s), profile, start_us, whole_s, self.generators, load.seed)
        for number, stream in enumerate(plan.streams):
            require_times(stream, plan.planned_events(plan.start_us, plan.end_us, number))
        return plan

    def trial_plan(self, spans: TrialSpans, rate_per_s: float, fresh: bool, spare_s: float = 0.0) -> Plan:
        """The plan of a trial: the profile asked for begins where the warm-up ends, at its first rate.

        An engine meets a rising rate: given the whole at once it begins with a backlog, a fresh one of many seconds,
        and near its limit drains that for minutes, which says nothing of what it sustains.
        `spare_s` is how much longer the plan may be made.
        """
        load = self.experiment.load
        whole_s = (spans.end_us - spans.start_us) / US + spare_s
        warmup_s = (spans.measured_from_us - spans.start_us) / US
        profile = parse_profile(load.profile, rate_per_s, load.duration)
        return self.plan(spans.start_us, rate_per_s, whole_s, profile.delayed(warmup_s, _rise_s(warmup_s, fresh)))

    def chunk_for(self, rate_per_s: float) -> int:
        asked = self.experiment.load.chunk
        if asked is not None:
            return round(asked * US)
        coarse = rate_per_s >= FAST_RATE_PER_S or self.interval_s * US * CHUNK_SHARE_MAX >= FAST_CHUNK_US
        return (self.engine.chunk_us or SLOW_CHUNK_US) * (COARSE if coarse else 1)

    def bound_s(self, rate_per_s: float) -> tuple[float, bool]:
        """(seconds of the rate that the queue holds, whether memory cut that below what was asked).

        A queue counts its batches as Arrow does. It takes whole chunks, so the last one may not fit.
        """
        asked = self.experiment.load.bound
        by_memory = self.bytes_max / (EVENT_BYTES_SLACK * self.event_bytes(rate_per_s) * rate_per_s)
        return min(asked, by_memory), by_memory < asked

    def event_bytes(self, rate_per_s: float) -> float:
        """What an event takes in Arrow, the mean over the streams."""
        made = self.made_columns
        return sum(stream.bytes_of(made[stream.name]) * stream.share for stream in self.streams(rate_per_s))


def start_request_of(
    experiment: Experiment,
    engine: Capabilities | None,
    flow: Flow | None,
    queue_bytes: int,
    generators: int,
    generators_bytes: int = 0,
) -> StartRequest:
    load, options = experiment.load, engine_options(experiment, engine)
    return StartRequest(
        flow, options, experiment.master, load.frontier, queue_bytes, experiment.bind, generators_bytes,
        experiment.transport, generators,
    )  # fmt: skip


def longest_slide_us(flow: Flow) -> int | None:
    return max((slide for sink in flow.sinks if (slide := slide_us(sink.input)) is not None), default=None)


def input_tail_us(flow: Flow) -> int:
    """How long input goes on after the measured span: until what was measured has got through."""
    unbounded_s = UNBOUNDED_TAIL_S if reach_us(flow) is None else 0.0
    return round((TAIL_MARGIN_S + max(tail_us(flow) / US, unbounded_s)) * US)


def may_extend(load: Load) -> bool:
    """Whether a trial may go on past its duration: what follows a profile's end is not the load that was asked for."""
    return load.profile == "constant"


def spare_s(duration_s: float) -> float:
    """How much longer than planned a trial may get that may be extended."""
    return EXTENSIONS_MAX * EXTENSION_SHARE_MAX * duration_s + (HOLD_US + LEVEL_MAX_US) / US


def _rise_s(warmup_s: float, fresh: bool) -> float:
    return RISE_SHARE * min(warmup_s, FRESH_WARMUP_S) if fresh else min(WARM_RISE_S, warmup_s / 2)
