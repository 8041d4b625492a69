"""The plan of a run, a search or a scalability study as a document: what would be started, how long, what is missing.

It is of its own because nothing was run, so it shares nothing with their documents.
"""

from collections.abc import Iterator, Sequence

from streamgauge.core.formatting import format_count, format_duration, format_rate
from streamgauge.report.document_blocks import Document, Fact, Paragraph, missing_here
from streamgauge.report.documents.scalability import load_text
from streamgauge.results.dry_run import ScaleTrialPlan, TrialPlan


def plan_document(plan: TrialPlan) -> Document:
    """The plan, with what the machine lacks first."""
    return Document(
        name=plan.workload,
        on=f"{plan.command} on {plan.engine} ({plan.tuning}), over {plan.transport}",
        title=f"{plan.workload}, plan of a {plan.command}",
        headline=(
            f"{plan.command} {plan.workload} on {plan.engine} ({plan.tuning}), over {plan.transport}: about "
            f"{format_duration(plan.seconds)}; {format_duration(plan.seconds_max)} if {_longest(plan)}"
        ),
        lead=missing_here(plan.missing),
        facts=tuple(_facts(plan)),
        remarks=(Paragraph("nothing was started", "note", terminal=True),),
    )


def _longest(plan: TrialPlan) -> str:
    """When a plan takes its greatest time."""
    if isinstance(plan, ScaleTrialPlan):
        return "every trial is extended"
    return f"all {plan.trials_max} trials run, each at its longest" if plan.trials_max > 1 else "extended"


def _facts(plan: TrialPlan) -> Iterator[Fact]:
    study = plan if isinstance(plan, ScaleTrialPlan) else None
    yield Fact("starts", tuple(one.detail for one in plan.starts))
    for data in plan.data:
        yield Fact("data", (data.file, f"{format_count(data.rows)} rows for the stream {data.stream}"))
    if study is not None:
        yield Fact("levels", (f"{study.resource} {', '.join(map(str, study.resources))}",))
        yield Fact("loads", (f"{study.dimension} {_listed(study.loads, study.load_unit)}",))
    rate = "found by an overload trial" if plan.rate_per_s is None else format_rate(plan.rate_per_s)
    ceiling = f"generators make at most {format_rate(plan.generator_ceiling_per_s)} here"
    yield Fact("rate", (rate if study is None else _rates(study), ceiling))
    spans = (("warm-up", plan.warmup_s), ("measured", plan.duration_s), ("tail", plan.tail_s))
    counted = () if plan.events is None else (f"{format_count(plan.events)} events in the measured span",)
    yield Fact("trial", (*(f"{name} {format_duration(seconds)}" for name, seconds in spans), *counted))
    if study is not None:
        yield Fact("trials", (f"at most {study.trials_max} trials for {study.cells:,} cells",))
    elif plan.trials_max > 1:
        yield Fact("trials", (f"usually {plan.trials}", f"at most {plan.trials_max}"))
    if plan.fetches:
        yield Fact("fetches", (*plan.fetches, "once, unless they are here already"))
    if plan.not_checked:
        yield Fact("not checked", plan.not_checked)
    # One line each, which no width of a terminal or of a pipe cuts or folds apart.
    for one in plan.unavailable:
        yield Fact("cannot have", (f"{one.name}: {one.reason}", f"instead: {one.way_out}"))


def _rates(plan: ScaleTrialPlan) -> str:
    """The rate of each load, in the order of the loads."""
    if len(set(plan.rates)) == 1:
        return f"{format_rate(plan.rates[0])} at every load"
    return "as the loads" if plan.rates == plan.loads else _listed(plan.rates, "events/s")


def _listed(loads: Sequence[float], unit: str) -> str:
    texts = [load_text(load, unit) for load in loads]
    if len(texts) <= 6:
        return ", ".join(texts)
    return f"{', '.join(texts[:3])}, ... {texts[-1]} ({len(texts)} loads)"
