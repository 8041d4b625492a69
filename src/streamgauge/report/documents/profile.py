"""An operator profile as a document: figures, advised instances, memory and methods."""

from collections.abc import Iterable, Iterator

from streamgauge.core.formatting import NONE, format_count, format_digits, format_rate, format_size
from streamgauge.report.charts import profile as charts
from streamgauge.report.charts.profile import time_text, tuple_time
from streamgauge.report.document_blocks import (
    Block,
    Cell,
    Column,
    Document,
    Drawing,
    Fact,
    Paragraph,
    Section,
    Table,
    blocks,
    environment_table,
    grouped,
    numbers,
    table,
    texts,
)
from streamgauge.results import labels
from streamgauge.results.profile import (
    AppliedAdvice,
    MemoryDistribution,
    OperatorProfile,
    ParallelismPlan,
    ProfiledOperator,
    Weights,
)
from streamgauge.stats.parallelism_advice import SPREAD

PLAN_NAMES = {
    "formula": "by the formula, all multiplied",
    "one_each": "one each, all multiplied",
    "source_only": "by the formula, sources multiplied",
}
"""The three ways of choosing instances (Bordin 2017, section 3.5)."""
_ENDS = ("source", "sink")
FORMULA = "each operator's share of all the work, p99 of a tuple times tuples, out of K instances, rounded up"
NO_ADVICE = "- (nothing is advised)"
UPDATES = "*"
"""After a selectivity that counts updates."""


def document(profile: OperatorProfile, apply: bool = False) -> Document:
    """The whole profile; `apply`: the terminal also shows the option that is now set, and why others have none."""
    planned = profile.input
    size = f"{format_count(planned.slices)} slices of {format_count(planned.slice_events)} events"
    warmup = f"{format_count(planned.warmup_slices)} more to warm up"
    engine = f"{profile.engine} ({profile.tuning})"
    operators = blocks(
        Drawing(lambda: charts.times(profile.operators)),
        _operators(profile),
        (Paragraph(note, "note", "note", terminal=True) for note in profile.notes),
    )
    return Document(
        name=profile.workload,
        on=f"characterized on {engine}",
        title=f"{profile.workload}, characterized",
        headline=headline(profile),
        meta=(f"{profile.start_time} · {profile.folder}",),
        lead=tuple(map(Paragraph, _sentences(profile))),
        facts=(Fact("input", (f"{profile.workload} on {engine}", size, warmup), page=False),),
        sections=(
            Section("operators", "What each operator does and takes", operators, "Operators"),
            Section("instances", "Instances", tuple(_instances(profile, apply)), "Instances"),
            Section("memory-section", "Memory", _memory(profile.memory), "Memory"),
            Section("methods", "Methods", tuple(_methods(profile)), "Methods"),
            Section("environment", "Environment", (environment_table(profile.environment),), "Environment"),
        ),
    )


def headline(profile: OperatorProfile) -> str:
    """`slowest operator: splitter, p50 2 us and p99 9.5 us a tuple`, or that none was timed."""
    timed = [(time.p99, time.median, row.name) for row in profile.operators if (time := time_text(row)) is not None]
    if not timed:
        return "no operator was timed"
    p99, median, name = max(timed)
    return f"slowest operator: {name}, p50 {tuple_time(median)} and p99 {tuple_time(p99)} a tuple"


def _sentences(profile: OperatorProfile) -> Iterator[str]:
    """The sizes of the input, the advised instances, and the memory."""
    planned = profile.input
    yield (
        f"{format_count(planned.slices)} slices of {format_count(planned.slice_events)} events were timed, after "
        f"{format_count(planned.warmup_slices)} to warm up."
    )
    advised = ", ".join(
        f"{row.name} {instances(row, profile.weights)}" for row in profile.operators if row.kind not in _ENDS
    )
    yield f"Advised of {profile.target} instances: {advised or NO_ADVICE}."
    if (memory := profile.memory) is not None:
        yield f"The memory is {memory.behaviour}, at most {format_size(memory.max)}."


def _operators(profile: OperatorProfile) -> Table:
    """Time of a tuple at one instance; instances by both weights; those of the thesis where it has any.

    The terminal's columns fit 80 characters; a name that is too long is folded.
    """
    first, second = profile.weights, second_weights(profile)
    compared = any(row.thesis for row in profile.operators)
    columns = (
        Column("operator"),
        Column("selectivity", number=True),
        Column("bytes of a tuple", number=True, short="bytes"),
        Column("time, median", number=True, short="time/tuple\np50"),
        Column("time, p99", number=True, short="\np99"),
        Column(f"instances, {first}", number=True, short="instances"),
        Column(second, number=True, short=""),
        *(numbers("thesis") if compared else ()),
    )
    rows: list[Iterable[Cell | str]] = []
    for row in profile.operators:
        name, *figures = cells(row, first, second)
        rows.append((Cell(name, row.type), *(figures if compared else figures[:-1])))
    updates = any(row.counted_as == "updates" for row in profile.operators)
    notes = (
        *(f"{reason}." for reason in grouped((row.name, row.time_reason or "") for row in profile.operators)),
        *([f"* updates: {profile.methods['updates']}."] if updates else []),
    )
    caption = "Operators, in the order in which rows meet them; times are of a tuple at one instance"
    return table(caption, columns, rows, notes=notes, terminal=True)


def second_weights(profile: OperatorProfile) -> Weights:
    """The weights that the user did not choose."""
    return "cumulative" if profile.weights == "immediate" else "immediate"


def cells(row: ProfiledOperator, first: Weights, second: Weights) -> tuple[str, ...]:
    """An operator's cells: name, selectivity, bytes, median and p99 per tuple, instances, the thesis's instances."""
    time = time_text(row)
    updates = row.counted_as == "updates" and row.selectivity is not None
    return (
        row.name,
        format_digits(row.selectivity) + (UPDATES if updates else ""),
        format_digits(row.tuple_bytes),
        tuple_time(time.median if time else None),
        tuple_time(time.p99 if time else None),
        instances(row, first),
        instances(row, second),
        " + ".join(str(each.instances) for each in row.thesis) or NONE,
    )


def instances(row: ProfiledOperator, weights: Weights) -> str:
    """`8`, or `8 (7-9)` if resampled slices advise other numbers."""
    advised, between = row.advised_instances_by_weights[weights], row.advised_instances_interval[weights]
    spread = f" ({between[0]}-{between[1]})" if between is not None and between[0] < between[1] else ""
    return format_count(advised) + spread


def _instances(profile: OperatorProfile, apply: bool) -> Iterator[Block]:
    """The formula, the instances by the other weights, the setting of the engine, and the thesis's instances."""
    low, high = (round(100 * share) for share in SPREAD)
    by = (
        f"by the formula (eq. 3.4 of the thesis: {FORMULA}), {profile.weights} selectivity, K = {profile.target}; "
        f"in brackets p{low} to p{high} over resampled slices"
    )
    yield Paragraph(by, label="instances", terminal=True)
    second = second_weights(profile)
    others = [f"{row.name} {instances(row, second)}" for row in profile.operators if row.kind not in _ENDS]
    yield Paragraph(f"by {second} selectivity: {', '.join(others)}", terminal=True)
    option, reason = profile.apply.line, profile.apply.reason
    yield Paragraph(f"`{option}` ({reason})" if option else reason, label=f"on {profile.engine}", terminal=apply)
    for row in profile.operators if apply else ():
        if not row.engine_instances.acts:
            yield Paragraph(f"{row.name}: not applicable: {row.engine_instances.reason}", terminal=True)
    if profile.applied is not None:
        yield _applied(profile.applied, profile.input.rate_per_s)
    yield table(
        "Three ways of choosing instances, operators in their order",
        texts("way", "instances, by multiplier"),
        ((PLAN_NAMES[way], _plan(plans or ())) for way, plans in profile.ways),
        terminal=True,
    )
    if profile.thesis:
        published = (
            f"{each.operator.replace('_', '-')} {each.instances} ({', '.join(each.here) or 'none here'})"
            for each in profile.thesis
        )
        yield Paragraph("; ".join(published), label="thesis", terminal=True)


def _applied(applied: AppliedAdvice, rate_per_s: float) -> Paragraph:
    why = f" ({applied.sentence})" if applied.sentence else ""
    trial = f"A trial with it at {format_rate(rate_per_s, 'events/s')}"
    found = f"{labels.VERDICTS[applied.verdict]}{why}; {applied.run}"
    return Paragraph(f"`{change(applied)}`. {trial}: {found}", label="applied")


def _memory(sampled: MemoryDistribution | None) -> tuple[Block, ...]:
    """The distribution, and the processes it belongs to."""
    if sampled is None:
        return (Paragraph("- (no operator was timed)", "none", "memory", terminal=True),)
    figures = ", ".join(f"{name} {format_size(getattr(sampled, name))}" for name in charts.MEMORY)
    kind = f"{sampled.behaviour}, {sampled.level}; {format_count(sampled.samples)} samples"
    said = f"{figures}; {kind}. Of {sampled.of}."
    return Drawing(lambda: charts.memory(sampled)), Paragraph(said, label="memory", terminal=True)


def _methods(profile: OperatorProfile) -> Iterator[Paragraph]:
    """The methods; the terminal shows those that were used."""
    used = {row.time_method for row in profile.operators}
    for name, text in profile.methods.items():
        yield Paragraph(f"{name.replace('_', ' ')}: {text}.", label="method", terminal=name in used)


def _plan(plans: Iterable[ParallelismPlan]) -> str:
    """`x1 1_5_6_3, x2 2_10_12_6`: the instances of all operators for each multiplier."""
    return ", ".join(f"x{each.times} {'_'.join(map(str, each.instances))}" for each in plans) or NO_ADVICE


def change(applied: AppliedAdvice) -> str:
    """`NAME 2 -> 8`."""
    return f"{applied.setting} {applied.before} -> {applied.after}"
