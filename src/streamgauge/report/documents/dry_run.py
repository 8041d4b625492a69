"""The plan of a run or of a search as a document: what would be started, how long it takes, what cannot be had.

It is of its own because no run or search was made, so it shares nothing with their documents.
"""

from collections.abc import Iterator

from streamgauge.core.formatting import format_count, format_duration, format_rate
from streamgauge.report.document_blocks import Document, Fact, Paragraph, Section, table, texts
from streamgauge.results.dry_run import TrialPlan


def plan_document(plan: TrialPlan) -> Document:
    """The plan, with what the machine lacks first."""
    gaps = [(one.name, one.reason, one.way_out) for one in plan.unavailable]
    caption = "What cannot be had"
    columns = texts("not to be had", "why", "instead")
    return Document(
        name=plan.workload,
        on=f"{plan.command} on {plan.engine} ({plan.tuning}), over {plan.transport}",
        title=f"{plan.workload}, plan of a {plan.command}",
        headline=(
            f"{plan.command} {plan.workload} on {plan.engine} ({plan.tuning}), over {plan.transport}: about "
            f"{format_duration(plan.seconds)}; {format_duration(plan.seconds_max)} if {_longest(plan)}"
        ),
        lead=tuple(Paragraph(f"missing here: {one}", "warning", terminal=True) for one in plan.missing),
        facts=tuple(_facts(plan)),
        sections=(Section("gaps", caption, (table(caption, columns, gaps, terminal=True),)),) if gaps else (),
        remarks=(Paragraph("nothing was started", "note", terminal=True),),
    )


def _longest(plan: TrialPlan) -> str:
    """When a plan takes its greatest time."""
    return f"all {plan.trials_max} trials run, each extended on a fresh engine" if plan.trials_max > 1 else "extended"


def _facts(plan: TrialPlan) -> Iterator[Fact]:
    yield Fact("starts", tuple(one.detail for one in plan.starts))
    rate = "found by an overload trial" if plan.rate_per_s is None else format_rate(plan.rate_per_s)
    yield Fact("rate", (rate, f"generators make at most {format_rate(plan.generator_ceiling_per_s)} here"))
    spans = (("warm-up", plan.warmup_s), ("measured", plan.duration_s), ("tail", plan.tail_s))
    counted = () if plan.events is None else (f"{format_count(plan.events)} events in the measured span",)
    yield Fact("trial", (*(f"{name} {format_duration(seconds)}" for name, seconds in spans), *counted))
    if plan.trials_max > 1:
        yield Fact("trials", (f"usually {plan.trials}", f"at most {plan.trials_max}"))
    if plan.fetches:
        yield Fact("fetches", (*plan.fetches, "once, unless they are here already"))
    if plan.not_checked:
        yield Fact("not checked", plan.not_checked)
