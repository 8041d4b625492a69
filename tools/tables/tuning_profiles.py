"""The measured tuning profiles as tables and a picture, from docs/results/data/tuning-profiles.csv.

`python -m bench.studies.tuning_profiles` makes that file. A search that it lacks is shown as not measured yet, and so
is every search if there is no file.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path

WORKLOADS = ("windowed_aggregation", "windowed_join", "word_count")
TRANSPORTS = {"memory": "in memory", "kafka": "Kafka"}
PROFILES = ("idiomatic", "tuned")
NEEDED = (
    "workload", "transport", "tuning", "sustained_per_s", "high_per_s", "high_verdict", "p50_us", "p99_us",
    "latency_at_per_s", "limit", "tolerance", "seconds", "date", "commit", "machine", "command",
)  # fmt: skip
"""The columns of the file; the study's `HEAD` has the same."""
NOT_YET = "not measured yet"

Row = Mapping[str, str]
Cell = tuple[str, str, str]


def searches(file: Path) -> dict[Cell, Row]:
    """The searches of a file, empty if there is none; ValueError where one is unknown, double or not whole."""
    if not file.exists():
        return {}
    with file.open(newline="", encoding="utf-8") as lines:
        reader = csv.DictReader(lines)
        rows = list(reader)
    if tuple(reader.fieldnames or ()) != NEEDED:
        raise ValueError(f"{file.name}: must have the columns {', '.join(NEEDED)}: make it again by the study")
    found: dict[Cell, Row] = {}
    for number, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise ValueError(f"{file.name}, line {number}: must have {len(NEEDED)} cells, as the head has")
        cell = (row["workload"], row["transport"], row["tuning"])
        if cell not in product(WORKLOADS, TRANSPORTS, PROFILES):
            raise ValueError(f"{file.name}, line {number}: is no search of the study: {' '.join(cell)}")
        if cell in found:
            raise ValueError(f"{file.name}, line {number}: must have one row for {' '.join(cell)}")
        found[cell] = row
    return found


def measured(file: Path) -> str:
    """Both profiles side by side, as bars and in a table, and below them how each search was made."""
    found = searches(file)
    head = ("workload", "transport", "`idiomatic`", "`tuned`", "tuned / idiomatic")
    rows = []
    for workload, transport in product(WORKLOADS, TRANSPORTS):
        plain, tuned = (found.get((workload, transport, profile)) for profile in PROFILES)
        rows.append((f"`{workload}`", TRANSPORTS[transport], _rate(plain), _rate(tuned), _ratio(plain, tuned)))
    return "\n\n".join([*filter(None, [picture(found)]), _table(head, rows), *([_made(found)] if found else [])])


COLOURS = {"idiomatic": "#3a7fc4", "tuned": "#d79a2b", "text": "#7d8794"}
"""They can be read on light and on dark pages."""
LABELS_PX, BARS_PX, PAIR_PX, BAR_PX = 230, 480, 62, 18


def picture(found: Mapping[Cell, Row]) -> str:
    """A pair of bars for each workload and transport, as inline SVG; empty before both profiles of one are measured.

    Rates of workloads differ by powers of ten, so each pair has its own scale: its longer bar fills the width.
    """
    pairs = [
        (f"{workload.replace('_', ' ')}, {TRANSPORTS[transport]}", [float(row["sustained_per_s"] or 0) for row in rows])
        for workload, transport in product(WORKLOADS, TRANSPORTS)
        if len(rows := [found[cell] for name in PROFILES if (cell := (workload, transport, name)) in found]) == 2
    ]
    parts = [
        _pair(label, rates, number * PAIR_PX) for number, (label, rates) in enumerate(pairs) if any(rates)
    ]  # fmt: skip
    if not parts:
        return ""
    width, height = LABELS_PX + BARS_PX + 130, len(pairs) * PAIR_PX
    words = "The sustained rate of both profiles, a pair of bars for each workload and transport; each pair is to scale"
    style = f'font-family="system-ui, sans-serif" font-size="14" fill="{COLOURS["text"]}" style="max-width:100%"'
    size = f'viewBox="0 0 {width} {height}" width="{width}"'
    return "\n".join((f'<figure><svg {size} {style} role="img" aria-label="{words}">', *parts, "</svg></figure>"))


def _pair(label: str, rates: list[float], y: int) -> str:
    from streamgauge.core.formatting import format_rate

    bars = [f'<text x="0" y="{y + 30}">{label}</text>']
    for number, (profile, rate) in enumerate(zip(PROFILES, rates, strict=True)):
        top, long = y + 6 + number * (BAR_PX + 4), round(BARS_PX * rate / max(rates))
        bars.append(
            f'<rect x="{LABELS_PX}" y="{top}" width="{long}" height="{BAR_PX}" fill="{COLOURS[profile]}"/>'
            f'<text x="{LABELS_PX + long + 6}" y="{top + 14}">{profile} {format_rate(rate)}</text>'
        )
    return "\n".join(bars)


def _made(found: Mapping[Cell, Row]) -> str:
    from streamgauge.core.formatting import format_rate

    rows = []
    for (workload, transport, profile), row in sorted(found.items(), key=lambda item: _order(item[0])):
        verdict = row["high_verdict"].replace("_", " ")
        above = f"{format_rate(float(row['high_per_s']))} {verdict}".strip() if row["high_per_s"] else "-"
        who = f"`{workload}`, {TRANSPORTS[transport]}, `{profile}`"
        command = f"`{row['command']}`" if row["command"] else "-"
        rows.append((who, above, f"{float(row['tolerance']):.0%}", row["date"], row["commit"], command))
    head = ("search", "next rate up", "tolerance", "date", "commit", "command")
    return _table(head, rows)


def _order(cell: Cell) -> tuple[int, ...]:
    return tuple(list(names).index(name) for names, name in zip((WORKLOADS, TRANSPORTS, PROFILES), cell, strict=True))


def _rate(row: Row | None) -> str:
    from streamgauge.core.formatting import format_rate

    if row is None:
        return NOT_YET
    return format_rate(float(row["sustained_per_s"])) if row["sustained_per_s"] else "no rate held"


def _ratio(plain: Row | None, tuned: Row | None) -> str:
    """How many times as much `tuned` sustains; figures of two machines are not compared."""
    if plain is None or tuned is None or plain["machine"] != tuned["machine"]:
        return "-"
    rates = [float(row["sustained_per_s"] or 0) for row in (plain, tuned)]
    return f"{rates[1] / rates[0]:.2f}" if all(rates) else "-"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
