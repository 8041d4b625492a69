"""The result of a trial, with the evidence behind it. It is built without a verdict, and written before verification.

A job with several sinks may run as several queries, which duplicates work. The transport counts events that are read
twice. Operators that run twice follow from the flow and the sinks of each query: a query runs everything that its sinks
need.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.limits import BOUND_S_MIN
from streamgauge.core.clock import US
from streamgauge.core.units import FAR_FUTURE_US, format_cpus
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Flow, Source
from streamgauge.engines.registry import entry
from streamgauge.harness.start_processes import TestBed
from streamgauge.metrics import interference, rates_and_backlog, resources
from streamgauge.metrics.delivery_times import read_skew_us
from streamgauge.metrics.interference import MACHINE_SHARE_MAX, background_load
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.metrics.trial_record import TrialRecord, phases
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.results.codes import Cause, WarningCode
from streamgauge.results.run import Result
from streamgauge.results.text.sentences import cautions
from streamgauge.results.verdict import Remark, Verdict
from streamgauge.system.cpu_pinning import allowed_cpus, cpus
from streamgauge.system.machine import environment
from streamgauge.transports.registry import transport
from streamgauge.transports.spi import COMMITS, FOREIGN, NEVER_COMMITTED, UNOBSERVED
from streamgauge.user_workloads.data_files import input_notes, replayed_data
from streamgauge.verdict.driver_check import SCHEDULE_DELAY_US_MAX
from streamgauge.verification.sink_comparison import VerificationResult


@dataclass
class TrialResult:
    """A trial's result with its record and verification."""

    result: Result
    record: TrialRecord
    verified: VerificationResult | None


def build_result(
    resolved: ResolvedExperiment,
    testbed: TestBed,
    folder: RunFolder,
    record: TrialRecord,
    rate_per_s: float,
    ceiling_per_s: float | None,
) -> Result:
    """A trial's result at its end, without verification and without the verdict on its answers."""
    load = resolved.experiment.load.model_copy(update={"rate": rate_per_s})
    experiment = resolved.experiment.model_copy(update={"load": load})
    driver_cpus = resolved.driver_cpus or tuple(cpus())
    # The processors that the SUT's processes may use; as planned, if they have ended.
    allowed = allowed_cpus(pid for _, role, pid in testbed.processes() if role == "sut")
    sut_cpus = allowed or resolved.sut_cpus or tuple(cpus())
    settings, is_own_default = testbed.engine.settings(), entry(experiment.engine).is_own_default
    return Result(
        run_id=folder.read_result().run_id,
        start_time=datetime.fromtimestamp(record.spans.start_us / US, UTC).isoformat(),
        workload=resolved.workload.name,
        question=resolved.workload.question,
        engine=experiment.engine,
        quick=experiment.is_quick_look,
        isolation=experiment.isolation,
        tuning=experiment.tuning,
        experiment=experiment.model_dump(mode="json"),
        environment=environment()
        | {
            "generators": resolved.generators,
            "partitions": resolved.partitions,
            "parallelism": experiment.parallelism,
            "chunk_ms": resolved.chunk_for(rate_per_s) / 1000,
            "driver_cpus": list(driver_cpus),
            "sut_cpus": list(sut_cpus),
            "shared_cpus": sorted(set(driver_cpus) & set(sut_cpus)),
        },
        settings={**settings, **transport(experiment.transport).effective_settings(resolved.transport_options)},
        changed_settings=tuple(name for name, value in settings.items() if not is_own_default(name, value)),
        verdict=Verdict(value="interrupted", cause=Cause.UNJUDGED, sentence="The run ended before its verdict."),
        rate=rates_and_backlog.rates_of(record, ceiling_per_s, SCHEDULE_DELAY_US_MAX),
        backlog=rates_and_backlog.backlog_of(record),
        lag=None
        if {NEVER_COMMITTED, UNOBSERVED} & record.trial_log.remarks.keys()
        else rates_and_backlog.lag_of(record),
        driver=resources.driver_result(record),
        processes=resources.processes(record),
        others_cpu_percent=interference.background_percent(record),
        loopback_bytes_per_s=resources.loopback_bytes_per_s(record),
        reference_work_us=interference.reference_work_us(record),
        phases=phases(record.offered_spans, record.deadline_us),
        input=rates_and_backlog.offered_input(record, resolved.generators),
        data=(data := replayed_data(record.trial_log.plan, record.offered_until())),
        job_files=dict(resolved.workload.files),
        notes=(
            *input_notes(resolved.workload, data),
            *(text for code, (_, text) in record.trial_log.remarks.items() if code not in REMARKS),
            *_not_seen(resolved, record),
        ),
        folder=str(folder.path),
    ).warned(*cautions(_shared_cores(driver_cpus, sut_cpus)), *cautions(warnings_of(resolved, record, rate_per_s)))


def _shared_cores(driver_cpus: Collection[int], sut_cpus: Collection[int]) -> Iterator[Remark]:
    if shared := set(driver_cpus) & set(sut_cpus):
        yield Remark(WarningCode.SHARED_CORES, {"cores": f"core{'s' * (len(shared) > 1)} {format_cpus(shared)}"})


def warnings_of(resolved: ResolvedExperiment, record: TrialRecord, rate_per_s: float) -> Iterator[Remark]:
    """What a reader of a trial's figures must know, as far as it does not come from the answers."""
    bound_s, cut = resolved.bound_s(rate_per_s)
    if cut:
        yield Remark(WarningCode.QUEUE_CUT_BY_MEMORY, {"bound_s": bound_s, "least_s": BOUND_S_MIN})
    if resolved.generators > len(cpus()):
        yield Remark(WarningCode.MORE_GENERATORS_THAN_CORES, {"generators": resolved.generators_in_words})
    yield from _of_keys(record)
    for code, warning in REMARKS.items():
        if code in record.trial_log.remarks:
            yield Remark(warning, {"text": record.trial_log.remarks[code][1]})
    if record.early_stop:
        yield Remark(WarningCode.ENDED_EARLY, {"reason": record.early_stop})
    if record.hopeless:
        yield Remark(WarningCode.WENT_ON, {"reason": record.hopeless})
    if record.prolonged_us:
        reasons = ", then ".join(dict.fromkeys(record.prolonged_for))
        yield Remark(WarningCode.WARMUP_EXTENDED, {"extended_s": record.prolonged_us // US, "reasons": reasons})
    shares = interference.background_share(record), interference.background_burst_share(record)
    if (load := background_load(*shares)) is not None:
        yield Remark(WarningCode.BACKGROUND_LOAD, {"load": load})
    if (slowed := interference.slowed_by(record)) > MACHINE_SHARE_MAX:
        yield Remark(WarningCode.MACHINE_SLOWED, {"slowed": slowed})
    yield from _of_reads(resolved, record)
    if record.interim_analyses > 1:
        checks = ", then ".join(dict.fromkeys(record.extended_for))
        yield Remark(WarningCode.SPAN_EXTENDED, {"times": times(record.interim_analyses - 1), "checks": checks})


REMARKS = {
    **dict.fromkeys((NEVER_COMMITTED, UNOBSERVED), WarningCode.LAG_UNKNOWN),
    FOREIGN: WarningCode.FOREIGN_MESSAGES,
}
"""The warning of a remark of the transport; every other remark is a note."""


def _not_seen(resolved: ResolvedExperiment, record: TrialRecord) -> Iterator[str]:
    """What the driver cannot know where it sees no delivery."""
    if resolved.sees_deliveries:
        return
    transport, engine = resolved.experiment.transport, resolved.experiment.engine
    yield f"processing-time latency is unknown: over {transport} the driver does not see when an event is read"
    # A remark says how the offsets of a group move.
    if not (resolved.workload.observed_from_outside or COMMITS in record.trial_log.remarks):
        how = f"hardly known, because {engine} committed offsets less than twice"
        if resolved.engine.has_batch_ids or resolved.engine.batch_steps:
            how = f"what {engine} reports of its batches, since it commits no offsets that could be read from outside"
        yield f"progress (backlog, lag, ingested rate) is {how}"


def _of_keys(record: TrialRecord) -> Iterator[Remark]:
    """Partitions without events, because no key hashes to them."""
    plan = record.trial_log.plan
    for number, stream in enumerate(plan.streams):
        if empty := [str(each) for each, share in enumerate(plan.partition_shares(number)) if not share]:
            yield Remark(WarningCode.PARTITIONS_WITHOUT_KEYS, {
                "empty": len(empty), "partitions": plan.partitions, "stream": stream.name, "key": stream.key,
                "shown": (*empty[:5], "...") if len(empty) > 5 else tuple(empty),
            })  # fmt: skip


def _of_reads(resolved: ResolvedExperiment, record: TrialRecord) -> Iterator[Remark]:
    """Warnings about partitions that were read far apart, and about duplicate reads and work."""
    skew_us = read_skew_us(record.trial_log, record.spans.measured_from_us, record.spans.measured_to_us)
    has_own_delay = not resolved.workload.watermark_known and (resolved.reads_unevenly or resolved.hides_reads)
    delay_us = resolved.watermark_delay_us
    if skew_us > delay_us and resolved.closing_sinks and not has_own_delay:
        yield Remark(WarningCode.PARTITIONS_APART, {"skew_s": skew_us / US, "delay_s": delay_us / US})
    yield from redelivered(record.trial_log)
    yield from duplicate_work(resolved.flow, record.trial_log)


def redelivered(trial_log: TrialLog) -> Iterator[Remark]:
    """A warning for each stream that the system reads more than once, with the average number of reads."""
    shared, queries = trial_log.running.shared_events, trial_log.queries()
    sinks = "; ".join(", ".join(trial_log.of_query(query).sinks) for query in queries) if len(queries) > 1 else ""
    for stream in sorted(shared):
        first = int(trial_log.running.delivered_by(FAR_FUTURE_US, stream))
        if shared[stream] and first:
            yield Remark(WarningCode.READ_TWICE, {
                "stream": stream, "times": 1 + shared[stream] / first, "n": len(queries), "sinks": sinks,
            })  # fmt: skip


def duplicate_work(flow: Flow, trial_log: TrialLog) -> Iterator[Remark]:
    """A warning for each group of queries that run the same operators."""
    sinks = {query: trial_log.of_query(query).sinks for query in trial_log.queries()}
    ends = {sink.name: sink.input for sink in flow.sinks}
    needed = {query: set(graph.walk(*(ends[name] for name in names if name in ends))) for query, names in sinks.items()}
    shared: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for node in graph.operators(flow):
        users = tuple(query for query, nodes in needed.items() if node in nodes)
        if len(users) > 1 and not isinstance(node, Source):
            shared[users].append(node.name)
    for users, operators in shared.items():
        queries = ", ".join(f"{query} ({', '.join(sinks[query])})" for query in users)
        yield Remark(WarningCode.DONE_TWICE, {
            "operators": tuple(operators), "several": len(operators) > 1, "times": times(len(users)),
            "queries": queries,
        })  # fmt: skip


def times(n: int) -> str:
    return {1: "once", 2: "twice"}.get(n, f"{n} times")
