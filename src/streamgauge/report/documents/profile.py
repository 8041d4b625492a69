"""An operator profile as a document: figures, advised instances, memory and methods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from streamgauge.core.formatting import NONE, format_count, format_digits, format_rate, format_size
from streamgauge.report.charts import profile
from streamgauge.report.charts.profile import time_text, tuple_time
from streamgauge.report.document_blocks import (
    Block,
    Cell,
    Column,
    Document,
    Drawing,
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
from streamgauge.stats.parallelism_advice import SPREAD

PLAN_NAMES = {
    "formula": "by the formula, all multiplied",
    "one_each": "one each, all multiplied",
    "source_only": "by the formula, sources multiplied",
}
"""The thesis's three ways of choosing instances as people call them [B §3.5]."""
_ENDS = ("source", "sink")
FORMULA = "each operator's share of all the work, p99 of a tuple times tuples, out of K instances, rounded up"
NO_ADVICE = "- (nothing is advised)"
UPDATES = "*"
"""After a selectivity that counts updates."""

Found = Mapping[str, Any]


def document(found: Found, apply: bool = False) -> Document:
    """The whole; `apply`: in the terminal also the option that is now set, and why others have none."""
    asked = found["input"]
    size = f"{format_count(asked['slices'])} slices of {format_count(asked['slice_events'])} events"
    engine = f"{found['engine']} ({found.get('tuning', 'tuned')})"
    times = Drawing(lambda: profile.times(found["operators"]))
    notes = (Paragraph(note, "note", "note", terminal=True) for note in found["notes"])
    return Document(
        name=found["workload"],
        on=f"characterized on {engine}, {size}, {format_count(asked['warmup_slices'])} more to warm up",
        title=f"{found['workload']}, characterized",
        headline="",
        meta=(f"{found['start_time']} · {found['folder']}",),
        sections=(
            Section(
                "operators", "What each operator does and takes", blocks(times, _operators(found), notes), "Operators"
            ),
            Section("instances", "Instances", tuple(_instances(found, apply)), "Instances"),
            Section("memory-section", "Memory", _memory(found["memory"]), "Memory"),
            Section("methods", "Methods", tuple(_methods(found)), "Methods"),
            Section("environment", "Environment", (environment_table(found["environment"]),), "Environment"),
        ),
    )


def _operators(found: Found) -> Table:
    """Time of a tuple at one instance; instances by both weights; those of the thesis where it has any.

    Narrow enough in the terminal for 80 columns; a name that is too long is folded.
    """
    first, second = found["weights"], second_weights(found)
    compared = any(row["thesis"] for row in found["operators"])
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
    for row in found["operators"]:
        name, *figures = cells(row, first, second)
        rows.append((Cell(name, row["type"]), *(figures if compared else figures[:-1])))
    updates = any(row["counted_as"] == "updates" for row in found["operators"])
    notes = (
        *(f"{reason}." for reason in grouped((row["name"], row["time_reason"] or "") for row in found["operators"])),
        *([f"* updates: {found['methods']['updates']}."] if updates else []),
    )
    caption = "Operators, in the order in which rows meet them; times are of a tuple at one instance"
    return table(caption, columns, rows, notes=notes, terminal=True)


def second_weights(found: Found) -> str:
    """The weights that were not asked for."""
    return next(name for name in ("immediate", "cumulative") if name != found["weights"])


def cells(row: Found, first: str, second: str) -> tuple[str, ...]:
    """An operator's cells: name, selectivity, bytes of a tuple, median and p99 of its time, instances, the thesis's."""
    time = time_text(row) or {}
    updates = row["counted_as"] == "updates" and row["selectivity"] is not None
    return (
        row["name"],
        format_digits(row["selectivity"]) + (UPDATES if updates else ""),
        format_digits(row["tuple_bytes"]),
        tuple_time(time.get("median")),
        tuple_time(time.get("p99")),
        instances(row, first),
        instances(row, second),
        " + ".join(str(each["instances"]) for each in row["thesis"]) or NONE,
    )


def instances(row: Found, weights: str) -> str:
    """`8`, or `8 (7-9)` where other slices would have advised others."""
    advised, between = (row[f"advised_instances_{kind}"][weights] for kind in ("by_weights", "interval"))
    spread = f" ({between[0]}-{between[1]})" if between is not None and between[0] < between[1] else ""
    return format_count(advised) + spread


def _instances(found: Found, apply: bool) -> Iterator[Block]:
    """How instances were given, and those by the other weights; what Spark is told; the thesis's own."""
    low, high = (round(100 * share) for share in SPREAD)
    by = (
        f"by the formula (eq. 3.4 of the thesis: {FORMULA}), {found['weights']} selectivity, K = {found['target']}; "
        f"in brackets p{low} to p{high} over resampled slices"
    )
    yield Paragraph(by, label="instances", terminal=True)
    second = second_weights(found)
    others = [f"{row['name']} {instances(row, second)}" for row in found["operators"] if row["kind"] not in _ENDS]
    yield Paragraph(f"by {second} selectivity: {', '.join(others)}", terminal=True)
    line, reason = found["apply"]["line"], found["apply"]["reason"]
    yield Paragraph(f"`{line}` ({reason})" if line else reason, label="on Spark", terminal=apply)
    for row in found["operators"] if apply else ():
        if not row["instances_on_spark"]["acts"]:
            yield Paragraph(f"{row['name']}: not applicable: {row['instances_on_spark']['reason']}", terminal=True)
    if found["applied"]:
        yield _applied(found)
    columns = texts("way", "instances, by multiplier")
    yield table("Three ways of choosing instances, operators in their order", columns, _plans(found), terminal=True)
    for line in _thesis(found):
        yield Paragraph(line, label="thesis", terminal=True)


def _applied(found: Found) -> Paragraph:
    applied = found["applied"]
    why = f" ({applied['sentence']})" if applied["sentence"] else ""
    verdict = f"{labels.VERDICTS[applied['verdict']]}{why}; {applied['run']}"
    rate = format_rate(found["input"]["rate_per_s"], "events/s")
    return Paragraph(f"`{change(applied)}`. A trial with it at {rate}: {verdict}", label="applied")


def _memory(sampled: Found | None) -> tuple[Block, ...]:
    """The distribution, and whose memory that is."""
    if sampled is None:
        return (Paragraph("- (no operator was timed)", "none", "memory", terminal=True),)
    figures = ", ".join(f"{name} {format_size(sampled[name])}" for name in ("min", "p50", "p95", "max"))
    kind = f"{sampled['behaviour']}, {sampled['level']}; {format_count(sampled['samples'])} samples"
    said = Paragraph(f"{figures}; {kind}. Of {sampled['of']}.", label="memory", terminal=True)
    return blocks(Drawing(lambda: profile.memory(sampled)), said)


def _methods(found: Found) -> Iterator[Paragraph]:
    """In the terminal those that were used."""
    used = {row["time_method"] for row in found["operators"]}
    for name, text in found["methods"].items():
        yield Paragraph(f"{name.replace('_', ' ')}: {text}.", label="method", terminal=name in used)


def _plans(found: Found) -> list[tuple[str, str]]:
    """(way, `x1 1_5_6_3, x2 2_10_12_6`: its instances for each multiplier, operators in their order)."""
    return [
        (
            PLAN_NAMES[way],
            ", ".join(f"x{each['times']} {_vector(each['instances'])}" for each in plans or ()) or NO_ADVICE,
        )
        for way, plans in found["ways"].items()
    ]


def _vector(instances: Iterable[int]) -> str:
    """Instances of all operators as one word."""
    return "_".join(map(str, instances))


def _thesis(found: Found) -> list[str]:
    """The thesis's row with what its operators are here; nothing where it has none."""
    rows = found["thesis"]
    if not rows:
        return []
    told = [
        f"{each['operator'].replace('_', '-')} {each['instances']} ({', '.join(each['here']) or 'none here'})"
        for each in rows
    ]
    return ["; ".join(told)]


def change(applied: Found) -> str:
    """`spark.sql.shuffle.partitions 2 -> 8`."""
    return f"{applied['setting']} {applied['before']} -> {applied['after']}"
