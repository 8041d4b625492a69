"""A comparison in the terminal: what failed stands first, and the table fits 80 columns."""

import io

from rich.console import Console

from streamgauge.report.documents.comparison import document
from streamgauge.report.terminal.console import show
from streamgauge.results.comparison import ComparedRun, ComparedSide, Comparison, Difference

WIDEST = ("event_time", "processing_time", "closing_delay", "match_time")


def figure(label: str, reason: str = "", **more: object) -> Difference:
    values = {
        "name": label.replace(" ", "_"), "label": label, "unit": "us", "better": "lower", "a": 1.23e6, "b": 1.37e6,
        "difference": 0.113, "low": -0.102, "high": 0.248, "method": "runs", "says": "no_difference", "reason": reason,
    }  # fmt: skip
    return Difference.model_validate(values | more)


def side(name: str, *failed: str) -> ComparedSide:
    runs = [ComparedRun(run_id=f"{name}{n}", folder="f", engine="spark", start_time="t", verdict="sustained",
                        failed=why) for n, why in enumerate(failed)]  # fmt: skip
    return ComparedSide(given=name, runs=tuple(runs))


def lines_of(*figures: Difference, a: ComparedSide, b: ComparedSide) -> list[str]:
    comparison = Comparison(workload="w", kind="run", confidence=0.95, a=a, b=b, figures=figures)
    file = io.StringIO()
    show(document(comparison), on=Console(file=file, force_terminal=False, width=80, highlight=False))
    return file.getvalue().splitlines()


def shown(a: ComparedSide, b: ComparedSide) -> list[str]:
    reason = "one run a side gives no interval: repeat the runs"
    figures = [figure(f"{kind.replace('_', ' ')} p99.9", reason if kind in WIDEST[2:] else "") for kind in WIDEST]
    figures.append(figure("ingested", unit="events/s", a=1.54e6, b=2.41e6, better="higher", says="better"))
    return lines_of(*figures, a=a, b=b)


def row_of(lines: list[str], label: str) -> str:
    return next(line for line in lines if line.startswith(f"{label} "))


def test_every_row_is_one_line_of_80_columns() -> None:
    """Label, both sides, the difference, its interval and what it says; nothing is folded, nothing cut."""
    lines = shown(side("A", ""), side("B", ""))
    assert lines[0] == "w on spark: B is better in 1 of 5 figures"
    row = row_of(lines, "closing delay p99.9")
    assert " ".join(row.split()) == "closing delay p99.9 1.23 s 1.37 s +11.3 % -10.2 % to +24.8 % none shown"
    assert "1.54 M/s  2.41 M/s" in row_of(lines, "ingested")
    assert max(len(line) for line in lines[: lines.index(row) + 3]) <= 80


def test_percentiles_over_runs_are_called_what_they_are() -> None:
    """The table has no room for it in every row, so it stands below, once; without such a figure it does not."""
    figures = [figure(f"{kind}, mean of the runs' p99.9") for kind in ("processing time", "closing delay")]
    both = {"a": side("A", "", ""), "b": side("B", "", "")}
    lines = lines_of(*figures, **both)
    assert "+24.8" in row_of(lines, "closing delay p99.9")
    assert sum("mean of the runs' p99" in line for line in lines) == 1
    assert not any("mean of the runs" in line for line in shown(**both))
