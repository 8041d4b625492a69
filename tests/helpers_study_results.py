"""Made-up results of studies: a latency breakdown and an operator profile, complete, for tests that change a part."""

from typing import Any

from streamgauge.results.breakdown import BreakdownTrial, LatencyBreakdown, LatencyFigures, StageFigures, TrialLatency
from streamgauge.results.profile import (
    AdvisedOption,
    EngineInstances,
    MemoryDistribution,
    OperatorProfile,
    ParallelismPlan,
    ParallelismPlans,
    ProfiledOperator,
    ProfileInput,
    PublishedInstances,
    ThesisOperator,
    TupleTime,
)

STAGES = {"generated": "until it was offered", "waiting": "until a batch began"}


def stage(name: str, share: float = 0.1, mean_us: float = 1.0) -> StageFigures:
    return StageFigures(name=name, share=share, mean_us=mean_us, p50_us=1.0)


def breakdown_trial(**changes: Any) -> BreakdownTrial:
    trial = BreakdownTrial(
        rate_per_s=20_000.0, batch_window="1 second", batch_window_s=1.0, run="runs/one", verdict="sustained",
        latency=TrialLatency(mean_us=600_000.0, p50_us=590_000.0, results=1234, contradicted_share=0.001),
        first_of_batch=LatencyFigures(mean_us=900_000.0, p50_us=890_000.0, results=30),
        stages=(stage("generated", 0.1, 60_000.0), stage("waiting", 0.9, 540_000.0)),
        remainder_share=0.0004, cdf_us=(*(100_000.0 + 10_000 * n for n in range(91)), *[None] * 10),
        batches=30, left_out=0, contradicting_batches=0, contradiction_us_max=0,
        chunk_us=10_000, clock_moved_us=3, commit_after_us=12_000.0, tasks_share=0.41, sampled=1234,
    )  # fmt: skip
    return trial.model_copy(update=changes)


def breakdown(*trials: BreakdownTrial, **changes: Any) -> LatencyBreakdown:
    made = LatencyBreakdown(
        workload="stamped_text", engine="spark", transport="memory", parameters={}, options={},
        environment={"python": "3.11"}, start_time="2026-01-01T00:00:00+00:00", folder="runs/a", stages=STAGES,
        published=("one receiver took at most about 30 MB/s",), published_work_share=0.11, trials=trials, finished=True,
    )  # fmt: skip
    return made.model_copy(update=changes)


def tuple_time(median: float, p99: float | None, distinguishable: bool = True) -> TupleTime:
    return TupleTime(
        median=median, p99=p99, distinguishable=distinguishable, slices=100, slower_slices=100, negative_slices=0,
        baseline=1.0, fixed_per_slice=0.0, rows_per_slice=100.0,
    )  # fmt: skip


def profiled_operator(
    name: str, kind: str, time: TupleTime | None, reason: str | None, instances: int | None, **changes: Any
) -> ProfiledOperator:
    """`instances`: advised by both weights; other slices may advise one more."""
    between = None if instances is None else (instances, instances + 1)
    operator = ProfiledOperator(
        name=name, kind=kind, type=f"<{kind}>", communication="forward", inputs=(), rows_in=(100,), rows_out=50,
        selectivity=0.5, counted_as="rows", tuple_bytes=12.0,
        time_per_tuple_us=time, time_per_tuple_us_p99=time.p99 if time else None,
        time_method="difference" if time else None, time_reason=reason,
        weights={"cumulative": (1.0,), "immediate": (1.0,)}, advised_instances=instances,
        advised_instances_by_weights={"cumulative": instances, "immediate": instances},
        advised_instances_interval={"cumulative": between, "immediate": between},
        thesis=(PublishedInstances(operator=name, instances=5),),
        engine_instances=EngineInstances(acts=False, reason="fused"),
    )  # fmt: skip
    return operator.model_copy(update=changes)


def operator_profile(**changes: Any) -> OperatorProfile:
    """Of a made-up workload."""
    plans = (ParallelismPlan(times=1, instances=(1, 9, 1)), ParallelismPlan(times=2, instances=(2, 18, 2)))
    made = OperatorProfile(
        workload="made <up>", engine="spark", parameters={}, options={}, folder="runs/made",
        start_time="2026-01-02T03:04:05+00:00", weights="cumulative", target=10,
        input=ProfileInput(
            slices=100, warmup_slices=20, slice_events=10_000, rate_per_s=1e4, seed=1, start_us=0, end_us=120_000_000
        ),
        environment={"cpu_model": "of the test", "memory_bytes": 2**31},
        operators=(
            profiled_operator("lines", "source", None, "only reading is taken off", None),
            profiled_operator("splitter", "explode", tuple_time(2.0, 9.5), None, 9),
            profiled_operator("filter", "where", tuple_time(-0.1, 3.0, False), "not distinguishable", 1),
        ),
        s_app_us={"cumulative": 2.0, "immediate": 2.0},
        ways=ParallelismPlans(formula=plans, one_each=plans, source_only=plans),
        apply=AdvisedOption(setting="s", value=9, line="--option s=9", reason="the most"),
        thesis=(ThesisOperator(operator="splitter", instances=5, here=("splitter",)),),
        memory=MemoryDistribution(
            of="what was <sampled>", min=2**20, p50=2**21, p95=2**22, max=2**23, samples=7, interval_s=0.5,
            behaviour="variable", level="low",
        ),
        methods={"difference": "one less the other"}, notes=("a note",), finished=True,
    )  # fmt: skip
    return made.model_copy(update=changes)
