"""The figures of an operator profile: counts and times of each operator, and the parallelism they imply.

Nothing is measured here. An operator that could not be timed has a null time and a reason.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np

from streamgauge.config.experiment import Characterize
from streamgauge.dataflow import graph
from streamgauge.dataflow.describe import describe
from streamgauge.dataflow.nodes import (
    Distinct,
    Explode,
    Flow,
    IntervalJoin,
    InWindows,
    Lookup,
    Node,
    Process,
    RunningAggregate,
    Select,
    SessionAggregate,
    Sink,
    Source,
    TopN,
    Union,
    UserJobNode,
    Where,
    WindowAggregate,
    WindowJoin,
)
from streamgauge.engines.operator_profiler import OperatorProfiler, ParallelismOptions, Slice
from streamgauge.results.profile import (
    AdvisedOption,
    EngineInstances,
    ParallelismPlan,
    ParallelismPlans,
    ProfiledOperator,
    ProfileFigures,
    PublishedInstances,
    ThesisOperator,
    TupleTime,
    Weights,
)
from streamgauge.stats.parallelism_advice import advised, multiplied, spread, work
from streamgauge.stats.samples import carries, observations_needed
from streamgauge.studies.operator_profile.operator_io import OperatorIO
from streamgauge.studies.operator_profile.per_tuple_cost import Q, per_tuple_cost, resampled, too_few, unreported

WEIGHTS: tuple[Weights, ...] = get_args(Weights)

_TYPES: dict[type[Node], str] = {
    Source: "source", Select: "projection", Where: "selection", Explode: "projection, one to many",
    InWindows: "projection, one to many", Lookup: "join with a static table", Union: "union",
    WindowAggregate: "group-by, windowed aggregation", SessionAggregate: "group-by, windowed aggregation",
    RunningAggregate: "group-by, aggregation",
    WindowJoin: "windowed join", IntervalJoin: "windowed join", Distinct: "group-by, first row",
    TopN: "group-by, ranking", Process: "code", UserJobNode: "code",
}  # fmt: skip
"""Operator types in the thesis's terms (Bordin 2017, section 2.9) where it has one."""

RESAMPLES, SEED = 200, 1

METHODS = {
    "updates": "a running aggregate gives one row for each key and slice, as in micro-batches. The thesis counts one "
    "row for each row in, so its selectivity is 1",
    "own_job": "a user job is one operator. Rows out are those of its reference, or else of the same function in batch "
    "over the whole input. Its time is that of the function over one slice",
    "tuple_bytes": "the size of a row of the operator's own columns in Arrow: values and offsets, without lineage",
    "p99": "of the runs with the operator, minus the median of only reading and the fixed cost. A p99 of differences "
    "would be the noise of reading if the operator costs little",
    "advised_instances": "eq. 3.4 with the p99. Operators without a p99 get none, and the others share the target. An "
    "operator that a sign test cannot tell from only reading counts as no work and gets one",
    "advised_instances_interval": f"5th and 95th percentile over {RESAMPLES} bootstrap samples of the slices",
}

SOURCE_REASON = "the time of only reading is subtracted from every other operator's time"
SINK_REASON = "results go to the recorder, which is not part of the system under test"


@dataclass(frozen=True)
class Published:
    """An operator of the thesis with its instances, and the operators here that do the same.

    Sources and sinks stand for all sources and sinks, because streams and results have other names here.
    """

    operator: str
    instances: int
    here: tuple[str, ...] = ()

    def is_done_by(self, kind: str, name: str) -> bool:
        """Whether an operator here of that kind and name does the same."""
        ends = ("source", "sink")
        return kind == self.operator if kind in ends or self.operator in ends else name in self.here


def _row(source: int, sink: int, **operators: int | tuple[int, tuple[str, ...]]) -> tuple[Published, ...]:
    """A row of the table; an operator that has another name here, or several, is a pair of instances and names."""
    between = (
        Published(name, *(given if isinstance(given, tuple) else (given, (name,)))) for name, given in operators.items()
    )
    return (Published("source", source), *between, Published("sink", sink))


INSTANCES: dict[str, tuple[Published, ...]] = {
    "word_count": _row(1, 3, splitter=5, counter=6),
    "log_processing": _row(
        4, 4,
        status=(1, ("status_counter",)), volume=(2, ("volume_counter",)), geo_locator=(4, ("geo_finder",)),
        geo_summary=(2, ("country_stats", "city_stats")),
    ),
    "traffic_monitoring": _row(1, 1, map_matcher=2, speed_calculator=2),
    "machine_outlier": _row(6, 1, scorer=1, anomaly_scorer=1, alert_trigger=4),
    "sentiment_analysis": _row(
        1, 1,
        tweet_filter=1, text_filter=1, stemmer=1, positive_scorer=1, negative_scorer=1, joiner=1, sentiment_scorer=1,
    ),
    "spam_filter": _row(1, 1, tokenizer=10, word_probability=1, bayes_rule=1),
    "trending_topics": _row(
        9, 1,
        topic_extractor=2, rolling_counter=1, intermediate_ranker=(1, ("ranker",)), total_ranker=(1, ("ranker",)),
    ),
    "click_analytics": _row(
        2, 1,
        repeat_visit=2, visit_total=(2, ("visit_stats", "unique_stats")), geo_locator=(5, ("geo_finder",)),
        geo_summary=(1, ("country_stats", "city_stats")),
    ),
    "fraud_detection": _row(8, 2, predictor=3),
    "spike_detection": _row(7, 1, moving_average=3, spike_detector=2),
}  # fmt: skip
"""Workload to the thesis's row of table 3.4, in the thesis's order; never mixed into our own figures.

It has no instances for Bargain Index, Reinforcement Learner, Smart Grid and VoIPSTREAM. As a whole, five of its ten
rows cannot come from eq. 3.4 as it is printed, with K = 10 shared out among all operators of the row, each share
rounded up: Word Count 15 of at most 13, Log Processing 17 of at most 15, Fraud Detection 13 of at most 12; Traffic
Monitoring 6 and Sentiment Analysis 9 of at least 10.
"""


@dataclass(frozen=True)
class Timings:
    """The measured slices of each operator that had rows, how they were timed, and why others could not be."""

    slices: Mapping[str, Sequence[Slice]] = field(default_factory=dict)
    methods: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)


def profile_figures(
    workload: str,
    flow: Flow,
    counted: Mapping[Node, OperatorIO],
    timings: Timings,
    config: Characterize,
    profiler: OperatorProfiler,
) -> ProfileFigures:
    """The figures of an operator profile."""
    nodes, descriptions, of_thesis = list(graph.operators(flow)), describe(flow), INSTANCES.get(workload, ())
    events = sum(counted[node].rows_out for node in nodes if isinstance(node, Source))
    rows = [
        _operator(words, counted, node, events, timings, profiler.parallelism_options(node))
        for words, node in zip(descriptions, nodes, strict=False)
    ]
    rows += [
        _sink(words, counted, sink, events) for words, sink in zip(descriptions[len(nodes) :], flow.sinks, strict=True)
    ]
    # By their places: a stream and the results of a flow may have one name.
    works = {weights: {str(place): _work(row, weights) for place, row in enumerate(rows)} for weights in WEIGHTS}
    given = {weights: advised(works[weights], config.target) for weights in WEIGHTS}
    intervals = _intervals(rows, timings, config)
    for place, row in enumerate(rows):
        key = str(place)
        rows[place] = row.model_copy(update={
            "s_op_us": {weights: works[weights][key] for weights in WEIGHTS},
            "advised_instances_by_weights": {weights: given[weights][key] for weights in WEIGHTS},
            "advised_instances": given[config.weights][key],
            "advised_instances_interval": {weights: intervals[weights][key] for weights in WEIGHTS},
            "thesis": tuple(
                PublishedInstances(operator=each.operator, instances=each.instances)
                for each in of_thesis
                if each.is_done_by(row.kind, row.name)
            ),
        })  # fmt: skip
    sources = {str(place) for place, row in enumerate(rows) if row.kind == "source"}
    return ProfileFigures(
        operators=tuple(rows),
        s_app_us={weights: sum(filter(None, works[weights].values())) for weights in WEIGHTS},
        ways=_parallelism_plans(given[config.weights], sources, config),
        apply=_apply(nodes, rows, profiler),
        thesis=tuple(
            ThesisOperator(
                operator=each.operator,
                instances=each.instances,
                here=tuple(row.name for row in rows if each.is_done_by(row.kind, row.name)),
            )
            for each in of_thesis
        ),
    )


def _operator(
    words: Mapping[str, Any],
    counted: Mapping[Node, OperatorIO],
    node: Node,
    events: int,
    timings: Timings,
    parallelism: ParallelismOptions,
) -> ProfiledOperator:
    one, before = counted[node], [counted[input_] for input_ in graph.inputs(node)]
    time = per_tuple_cost(timings.slices.get(node.name, ()))
    return ProfiledOperator(
        name=node.name,
        kind=words["kind"],
        type=_TYPES[type(node)],
        communication=_communication(node),
        inputs=tuple(words["inputs"]),
        rows_in=one.rows_in,
        rows_out=one.rows_out,
        selectivity=one.selectivity,
        counted_as=one.rule,
        tuple_bytes=one.tuple_bytes,
        time_per_tuple_us=time,
        time_per_tuple_us_p99=time.p99 if time else None,
        time_method=timings.methods.get(node.name) if time else None,
        time_reason=_time_reason(node, time, timings),
        weights=_weights(before, events),
        engine_instances=EngineInstances(acts=parallelism.acts, reason=parallelism.reason),
    )


def _sink(words: Mapping[str, Any], counted: Mapping[Node, OperatorIO], sink: Sink, events: int) -> ProfiledOperator:
    before = counted[sink.input]
    return ProfiledOperator(
        name=sink.name,
        kind="sink",
        type="sink",
        communication="forward",
        inputs=tuple(words["inputs"]),
        rows_in=(before.rows_out,),
        rows_out=None,
        selectivity=None,
        counted_as=before.rule,
        tuple_bytes=before.tuple_bytes,
        time_per_tuple_us=None,
        time_per_tuple_us_p99=None,
        time_method=None,
        time_reason=SINK_REASON,
        weights=_weights([before], events),
        engine_instances=EngineInstances(acts=False, reason="a sink runs in the tasks of the operator before it"),
    )


def _time_reason(node: Node, time: TupleTime | None, timings: Timings) -> str | None:
    """Why there is no time, or no p99 of it."""
    if isinstance(node, Source):
        return SOURCE_REASON
    if node.name in timings.failed:
        return f"it could not be run alone: {timings.failed[node.name]}"
    if time is None:
        return "no row came in"
    if not time.distinguishable:
        return unreported(time)
    return too_few(time.slices) if time.p99 is None else None


def _weights(before: Sequence[OperatorIO], events: int) -> dict[Weights, tuple[float, ...]]:
    """Sin_i of each input. A source has no operator before it, and counts as 1 in the immediate weights."""
    return {
        "cumulative": tuple(each.rows_out / events if events else 0.0 for each in before),
        "immediate": tuple(1.0 if isinstance(each.node, Source) else each.selectivity or 0.0 for each in before),
    }


def _work(row: ProfiledOperator, weights: Weights) -> float | None:
    """`s_op`; None without slices that carry a p99, 0 if the operator cannot be told from only reading."""
    time = row.time_per_tuple_us
    if time is None or not carries(Q, time.slices):
        return None
    return _weighted(row, weights, time.p99 or 0.0)


def _weighted(row: ProfiledOperator, weights: Weights, time_us: float) -> float:
    """`s_op` from one time per tuple, which is taken to be the same for every input."""
    return work((time_us, weight) for weight in row.weights[weights])


def _intervals(
    rows: Sequence[ProfiledOperator], timings: Timings, config: Characterize
) -> dict[Weights, dict[str, tuple[int, int] | None]]:
    """Interval of the advised instances over other slices of the same kind, by weights and place."""
    random = np.random.default_rng(SEED)
    drawn = {
        place: resampled(timings.slices[row.name], RESAMPLES, random)
        for place, row in enumerate(rows)
        if _work(row, config.weights) is not None
    }

    def works(weights: Weights, sample: int) -> dict[str, float | None]:
        return {
            str(place): _weighted(row, weights, drawn[place][sample]) if place in drawn else None
            for place, row in enumerate(rows)
        }

    return {
        weights: spread([works(weights, sample) for sample in range(RESAMPLES)], config.target) for weights in WEIGHTS
    }


def _parallelism_plans(
    base: Mapping[str, int | None], sources: Collection[str], config: Characterize
) -> ParallelismPlans:
    """The plans by three methods; those by the formula are None without advice."""
    nothing = all(each is None for each in base.values())
    plans = {
        way: tuple(ParallelismPlan(times=times, instances=tuple(each.values())) for times, each in multiples.items())
        for way, multiples in multiplied(base, sources, config.multipliers).items()
    }
    return ParallelismPlans(
        formula=None if nothing else plans["formula"],
        one_each=plans["one_each"],
        source_only=None if nothing else plans["source_only"],
    )


def _communication(node: Node) -> str:
    """How rows come to the operator's instances."""
    if isinstance(node, Source):
        return "none"
    if isinstance(node, Lookup):
        return "forward; the table to all"
    keys = node.groups if isinstance(node, TopN) else getattr(node, "keys", ())
    return f"by {', '.join(keys)}" if keys else "forward"


def _apply(nodes: Sequence[Node], rows: Sequence[ProfiledOperator], profiler: OperatorProfiler) -> AdvisedOption:
    """The one setting of the engine that acts: the largest advised instances of an operator after an exchange."""
    options, name = profiler.parallelism_options, profiler.parallelism_setting
    exchanged = {row.name: row for node, row in zip(nodes, rows, strict=False) if options(node).acts}
    known = [value for row in exchanged.values() if (value := row.advised_instances) is not None]
    if not known:
        reason = f"not applicable: {_nothing_to_apply(nodes, exchanged.values(), profiler.not_visible)}"
        return AdvisedOption(setting=name, value=None, line=None, reason=reason)
    value = max(known)
    reason = f"one number for all exchanges: the most of {', '.join(exchanged)}"
    return AdvisedOption(setting=name, value=value, line=f"--option {name}={value}", reason=reason)


def _nothing_to_apply(nodes: Iterable[Node], exchanged: Collection[ProfiledOperator], not_visible: str) -> str:
    if any(isinstance(node, UserJobNode) for node in nodes):
        return not_visible
    if not exchanged:
        return "no operator follows an exchange"
    if any(row.time_per_tuple_us for row in exchanged):
        return f"no operator after an exchange has a p99 ({observations_needed(Q)} slices with rows carry one)"
    return "no operator after an exchange could be timed"
