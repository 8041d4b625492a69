"""What was measured in a trial, as a result without a verdict: it is written down before anything is judged."""

from __future__ import annotations

from datetime import UTC, datetime

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.events import US
from streamgauge.result import Result, Verdict
from streamgauge.run import figures
from streamgauge.run.batch_ends import read_skew_us
from streamgauge.run.conduct import Conducted
from streamgauge.run.criteria import SLIP_US_MAX
from streamgauge.run.data_facts import input_notes, replayed_data
from streamgauge.run.facts import MACHINE_SHARE_MAX, OTHERS_BURST_S, beside_others, busy_others
from streamgauge.run.ready import Ready
from streamgauge.run.repeated import done_twice, read_twice, times
from streamgauge.run.rig import Rig
from streamgauge.system.machine import cpus, environment
from streamgauge.transports.catalogue import transport


def measured(
    ready: Ready, rig: Rig, folder: RunFolder, done: Conducted, rate_per_s: float, ceiling_per_s: float | None
) -> Result:
    """What a trial has given by its end, but for its answers and what they say; the verdict is that of one without."""
    load = ready.experiment.load.model_copy(update={"rate": rate_per_s})
    experiment = ready.experiment.model_copy(update={"load": load})
    start = datetime.fromtimestamp(done.spans.start_us / US, UTC)
    return Result(
        run_id=folder.read_result().run_id,
        start_time=start.isoformat(),
        workload=ready.workload.name,
        engine=experiment.engine,
        isolation=experiment.isolation,
        experiment=experiment.model_dump(mode="json"),
        environment=environment()
        | {
            "generators": ready.generators,
            "chunk_ms": ready.chunk_for(rate_per_s) / 1000,
            "driver_cpus": list(ready.driver_cpus or cpus()),
            "sut_cpus": list(ready.sut_cpus or cpus()),
        },
        settings={**rig.engine.settings(), **transport(experiment.transport).in_force(ready.transport_options)},
        verdict=Verdict(value="interrupted", sentence="The run ended before it was judged."),
        rate=figures.rates(done, ceiling_per_s, SLIP_US_MAX),
        backlog=figures.backlog(done),
        driver=figures.driver(done),
        processes=figures.processes(done),
        others_cpu_percent=figures.others_percent(done),
        reference_work_us=figures.reference_work_us(done),
        phases=figures.phases(done.offered_spans, done.deadline_us),
        input=figures.offered_input(done),
        data=(data := replayed_data(done.journal.plan, done.offered_until())),
        job_files=dict(ready.workload.files),
        warnings=warnings_of(ready, done, rate_per_s),
        notes=input_notes(ready.workload, data),
        folder=str(folder.path),
    )


def warnings_of(ready: Ready, done: Conducted, rate_per_s: float) -> tuple[str, ...]:
    """What a reader of a trial's figures must know, as far as it does not come from the answers."""
    warnings = []
    bound_s, cut = ready.bound_s(rate_per_s)
    if cut:
        warnings.append(f"memory cuts the queue's bound to {bound_s:.1f} s of the rate")
    if ready.experiment.isolation == "shared":
        warnings.append("driver and SUT share the same cores: figures hold for this arrangement only")
    if ready.generators > len(cpus()):
        warnings.append(
            f"{ready.generators_in_words}: they wait for each other, and make no more events than fewer would"
        )
    if done.hopeless:
        warnings.append(f"ended early: {done.hopeless}")
    if done.prolonged_us:
        reasons = ", then ".join(dict.fromkeys(done.prolonged_for))
        warnings.append(f"warm-up {done.prolonged_us // US} s longer than planned: {reasons}")
    if (busy := busy_others(figures.others_share(done), figures.others_burst_share(done, OTHERS_BURST_S))) is not None:
        warnings.append(beside_others(busy[0]))
    if (slowed := figures.slowed_by(done)) > MACHINE_SHARE_MAX:
        warnings.append(
            f"the machine itself became slower by {slowed:.0%} within the span (reference work), "
            "and a trend may be its doing"
        )
    skew_us = read_skew_us(done.journal, done.spans.measured_from_us, done.spans.measured_to_us)
    if skew_us > ready.watermark_delay_us and ready.closing_sinks:
        warnings.append(
            f"partitions were read up to {skew_us / US:.2g} s apart, and the watermark stays "
            f"{ready.watermark_delay_us / US:g} s behind: rows that come later than that are dropped"
        )
    warnings += read_twice(done.journal) + done_twice(ready.flow, done.journal)
    if done.looks > 1:
        open_ = ", then ".join(dict.fromkeys(done.extended_for))
        warnings.append(f"extended {times(done.looks - 1)}, as undecided: {open_}")
    return tuple(warnings)
