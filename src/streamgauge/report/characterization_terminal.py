"""A characterization in the terminal: a line an operator, why some have no time, the memory, and what to do with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.report.terminal import console, say, show_result
from streamgauge.stats.instances import SPREAD
from streamgauge.units import NONE, format_count, format_digits, format_size, format_us

WAYS = {
    "formula": "by the formula, all multiplied",
    "one_each": "one each, all multiplied",
    "source_only": "by the formula, sources multiplied",
}
"""The thesis's three ways of choosing instances as people call them [B §3.5]."""
_HEADINGS = ("operator", "selectivity", "bytes", "time/tuple\np50", "\np99", "instances", "thesis")
"""Narrow enough for 80 columns; a name that is too long is folded."""
_ENDS = ("source", "sink")
FORMULA = "each operator's share of all the work, p99 of a tuple times tuples, out of K instances, rounded up"
NO_ADVICE = "- (nothing is advised)"
UPDATES = " (updates)"

Found = Mapping[str, Any]


def show_characterization(found: Found, apply: bool = False, on: Console | None = None) -> None:
    """The whole characterization; `apply`: also the option that is now set, and why others have none."""
    to = on or console()
    asked = found["input"]
    size = f"{format_count(asked['slices'])} slices of {format_count(asked['slice_events'])} events"
    say(to, (f"{found['workload']}   ", "bold"), f"{size}, {format_count(asked['warmup_slices'])} more to warm up")
    say(to, "")
    to.print(_table(found))
    say(to, "")
    for reason, names in reasons(found["operators"]).items():
        say(to, (f"  {', '.join(names)}: {reason}", "dim"))
    for name, text in [*_facts(found), *(_applied(found) if apply else [])]:
        say(to, f"{name:<12}{text}")


def _table(found: Found) -> Table:
    """Time of a tuple at one instance; instances by the weights asked for; those of the thesis where it has any."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    known = any(row["thesis"] for row in found["operators"])
    for place, heading in enumerate(_HEADINGS if known else _HEADINGS[:-1]):
        justify: Literal["left", "right"] = "right" if place else "left"
        table.add_column(heading, justify=justify, no_wrap=bool(place), overflow="fold", vertical="bottom")
    for row in found["operators"]:
        told = cells(row, found["weights"], second_weights(found))
        shown = (*told[:6], *([told[7]] if known else []))
        table.add_row(*(Text(cell.replace(UPDATES, "*")) for cell in shown))
    return table


def second_weights(found: Found) -> str:
    """The weights that were not asked for."""
    return next(name for name in ("immediate", "cumulative") if name != found["weights"])


def cells(row: Found, first: str, second: str) -> tuple[str, ...]:
    """An operator's cells: name, selectivity, bytes of a tuple, median and p99 of its time, instances, the thesis's."""
    time = told_time(row) or {}
    updates = row["counted_as"] == "updates" and row["selectivity"] is not None
    return (
        row["name"],
        _digits(row["selectivity"]) + (UPDATES if updates else ""),
        _digits(row["tuple_bytes"]),
        tuple_time(time.get("median")),
        tuple_time(time.get("p99")),
        instances(row, first),
        instances(row, second),
        " + ".join(str(each["instances"]) for each in row["thesis"]) or NONE,
    )


def told_time(row: Found) -> Found | None:
    """An operator's time; None where it has none, or where it cannot be told from only reading."""
    time = row["time_per_tuple_us"]
    return time if time and time["distinguishable"] else None


def instances(row: Found, weights: str) -> str:
    """`8`, or `8 (7-9)` where other slices would have advised others."""
    advised, between = (row[f"advised_instances_{kind}"][weights] for kind in ("by_weights", "interval"))
    spread = f" ({between[0]}-{between[1]})" if between is not None and between[0] < between[1] else ""
    return format_count(advised) + spread


def tuple_time(us: float | None) -> str:
    """A time of a tuple, below a microsecond in nanoseconds."""
    return f"{format_digits(1000 * us)} ns" if us is not None and us < 1 else format_us(us)


def _digits(value: float | None) -> str:
    return NONE if value is None else format_digits(value)


def reasons(rows: Iterable[Found]) -> dict[str, list[str]]:
    """Each reason for a missing figure once, with the operators it holds for."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row["time_reason"]:
            found.setdefault(row["time_reason"], []).append(row["name"])
    return found


def _facts(found: Found) -> list[tuple[str, str]]:
    used = {row["time_method"] for row in found["operators"] if row["time_method"]}
    facts = [("method", f"{name.replace('_', ' ')}: {text}") for name, text in found["methods"].items() if name in used]
    if any(row["counted_as"] == "updates" for row in found["operators"]):
        facts.append(("method", f"* updates: {found['methods']['updates']}"))
    facts += _advice(found)
    facts += [("", f"{way}: {instances_}") for way, instances_ in ways(found)]
    facts += [("thesis", line) for line in thesis(found)]
    facts += memory(found["memory"])
    facts += [("note", note) for note in found["notes"]]
    return [*facts, ("report", f"{found['folder']}/report.html")]


def _advice(found: Found) -> list[tuple[str, str]]:
    """How instances were given, and those by the other weights."""
    low, high = (round(100 * share) for share in SPREAD)
    by = (
        f"by the formula (eq. 3.4 of the thesis: {FORMULA}), {found['weights']} selectivity, K = {found['target']}; "
        f"in brackets p{low} to p{high} over resampled slices"
    )
    second = second_weights(found)
    others = [f"{row['name']} {instances(row, second)}" for row in found["operators"] if row["kind"] not in _ENDS]
    return [("instances", by), ("", f"by {second} selectivity: {', '.join(others)}")]


def ways(found: Found) -> list[tuple[str, str]]:
    """(way, `x1 1_5_6_3, x2 2_10_12_6`: its instances for each multiplier, operators in their order)."""
    return [
        (WAYS[way], ", ".join(f"x{each['times']} {_vector(each['instances'])}" for each in plans or ()) or NO_ADVICE)
        for way, plans in found["ways"].items()
    ]


def _vector(instances: Iterable[int]) -> str:
    """Instances of all operators as one word."""
    return "_".join(map(str, instances))


def thesis(found: Found) -> list[str]:
    """The thesis's row with what its operators are here; nothing where it has none."""
    rows = found["thesis"]
    if not rows:
        return []
    told = [
        f"{each['operator'].replace('_', '-')} {each['instances']} ({', '.join(each['here']) or 'none here'})"
        for each in rows
    ]
    return ["; ".join(told)]


def memory(sampled: Found | None) -> list[tuple[str, str]]:
    """The distribution in a line, and below it whose memory that is."""
    if sampled is None:
        return [("memory", NONE)]
    figures = "   ".join(f"{name} {format_size(sampled[name])}" for name in ("min", "p50", "p95", "max"))
    kind = f"{sampled['behaviour']}, {sampled['level']}   (spark, {format_count(sampled['samples'])} samples)"
    return [("memory", f"{figures}   {kind}"), ("", f"of {sampled['of']}")]


def show_applied(applied: Found, on: Console | None = None) -> None:
    """What was set, how to ask for the trial with it again, and then its result as that of every trial."""
    to = on or console()
    say(to, "")
    say(to, f"{'applied':<12}{change(applied)}; streamgauge experiment {applied['experiment']} runs it again")
    show_result(RunFolder.open(applied["run"]).read_result(), verbose=False, on=to)


def change(applied: Found) -> str:
    """`spark.sql.shuffle.partitions 2 -> 8`."""
    return f"{applied['setting']} {applied['before']} -> {applied['after']}"


def _applied(found: Found) -> list[tuple[str, str]]:
    """The option that a trial is now run with, then each operator without a choice of its own."""
    asked = found["apply"]
    lines = [("apply", f"{asked['line']}   ({asked['reason']})" if asked["line"] else asked["reason"])]
    for row in found["operators"]:
        on_spark = row["instances_on_spark"]
        if not on_spark["acts"]:
            lines.append(("", f"{row['name']}: not applicable: {on_spark['reason']}"))
    return lines
