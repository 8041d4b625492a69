"""What the terminal shows, written to a console in memory."""

import io
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from streamgauge.core.errors import InputError, JobError, Problem
from streamgauge.core.trial import TrialSnapshot
from streamgauge.report.terminal import console as console_module
from streamgauge.report.terminal import lines
from streamgauge.report.terminal.console import PLAIN_EVERY_S, InputView, SearchView, SelfTestView, TrialView
from streamgauge.results.run import Result
from tests.unit.report.conftest import made_up_result, made_up_search

SNAPSHOT = TrialSnapshot("measured", 24.0, 60.0, 2e5, 1.9e5, 12_345, 3.1e6)


def plain() -> Console:
    return Console(file=io.StringIO(), force_terminal=False, width=80, highlight=False)


def fancy() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=80, highlight=False, _environ={"TERM": "xterm"})


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def result_text(result: Result, verbose: bool = False) -> str:
    console = plain()
    console_module.show_result(result, verbose, console)
    return written(console)


def refusal_text(error: Exception, options: dict[str, str] | None = None) -> str:
    console = plain()
    lines.show_refusal(error, console, options or {})
    return written(console)


def test_progress_has_a_unit_everywhere() -> None:
    """One line: phase, time, offered, ingested, backlog, latency."""
    console = plain()
    TrialView(console).update(SNAPSHOT)
    assert written(console) == (
        "measured, 24 of 60 s in all   offered 200 k events/s   ingested 190 k events/s   backlog 12.3 k events   "
        "event time p50 3.1 s\n"
    )


CLOSED = """
import sys
from streamgauge.core.output import print_progress
from streamgauge.core.trial import TrialSnapshot
from streamgauge.report.terminal.console import SearchView
sys.stdin.readline()
with SearchView() as view:
    for second in range(3):
        view.trial_progress(TrialSnapshot(f"phase {second}", second, 60.0))
print_progress("this has no reader")
print("went on")
"""


def test_a_closed_stderr_ends_nothing() -> None:
    """`2>&1 | head` closes it in mid-trial: what is measured goes on, stdout stays, and the end is a good one."""
    ends = os.pipe()
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": ends[1], "text": True}
    with subprocess.Popen([sys.executable, "-c", CLOSED], **streams) as child:  # type: ignore[call-overload]
        os.close(ends[0])
        os.close(ends[1])
        message, _ = child.communicate("go on\n")
    assert (message, child.returncode) == ("went on\n", 0)


def test_a_written_input_is_reported_every_few_seconds() -> None:
    """Of what takes longer than that; on a terminal at once, and gone at the end."""
    console, times = plain(), iter([0.0, 1.0, PLAIN_EVERY_S, PLAIN_EVERY_S, PLAIN_EVERY_S + 1])
    with InputView(console, lambda: next(times)) as view:
        for million in (1, 2, 3):
            view.written(million * 10**6, 60 * 10**6)
    assert written(console) == "written 2 M events of 60 M events\n"
    console = fancy()
    with InputView(console) as view:
        view.written(10**6, 60 * 10**6)
        assert "written 1 M events of 60 M events" in written(console)
    assert written(console).endswith("\x1b[2K")


@pytest.mark.parametrize(("times_s", "lines"), [((0, 1, 2, 3), 0), ((0, 6, 7, 8), 2)])
def test_a_written_input_ends_with_all_of_it(times_s: tuple[float, ...], lines: int) -> None:
    """Where a line was shown before; what is written within seconds shows none."""
    console, times = plain(), iter(times_s)
    with InputView(console, lambda: next(times)) as view:
        for events in (500, 800, 1000):
            view.written(events, 1000)
    ends = ["written 500 events of 1 k events", "written 1 k events of 1 k events"]
    assert written(console).splitlines() == ends[:lines]


def test_a_self_test_shows_how_its_trials_stand() -> None:
    """Lines stay; between them the trial that runs, without a terminal every few seconds since the last line."""
    times = iter([0.0, 1.0, 2.0, 2.0 + PLAIN_EVERY_S, 2.0 + PLAIN_EVERY_S])
    console = plain()
    with SelfTestView(console, lambda: next(times)) as view:
        view.trial(SNAPSHOT)
        view.line("holds  a")
        view.trial(SNAPSHOT)
    starts = [line.split("   ")[0] for line in written(console).splitlines()]
    assert starts == ["holds  a", "  measured, 24 of 60 s in all"]
    console = fancy()
    with SelfTestView(console) as view:
        view.trial(SNAPSHOT)
        assert "measured, 24 of 60 s in all" in written(console)
        view.line("holds  a")
    assert written(console).endswith("\x1b[2Kholds  a\n")


def test_what_a_phase_waits_for_is_never_cut_off() -> None:
    """A note comes before the figures; where nothing is offered there are none. What is unknown is a dash, never 0."""
    progress = console_module.progress
    starting = TrialSnapshot("start", 12.2, 0.0, note="starting spark and 2 generators")
    assert progress(starting) == "start 12 s   starting spark and 2 generators"
    assert progress(TrialSnapshot("start", 0.0, 0.0)) == "start 0 s"
    comparing = replace(SNAPSHOT, phase="verification", elapsed_s=63.0, note="comparing every answer")
    assert progress(comparing) == "verification 63 s   comparing every answer"
    assert progress(TrialSnapshot("drain", 0.0, 0.0, note="draining the backlog")) == "drain   draining the backlog"
    ended = progress(replace(SNAPSHOT, ends_early=True, note="the queue was full"))
    assert ended.startswith("measured, 24 s, ends early   the queue was full   offered 200 k events/s")
    longer = progress(replace(SNAPSHOT, note="extended")).split("   ")
    assert longer[:3] == ["measured, 24 of 60 s in all", "extended", "offered 200 k events/s"]
    unknown = progress(TrialSnapshot("warm-up", 0.0, 60.0)).split("   ")[1:]
    assert [part.rsplit(" ", 1)[1] for part in unknown] == ["-"] * 4


def test_plain_lines_come_every_few_seconds() -> None:
    """Without a terminal there is a line per five seconds of the run, and at once for a new phase or note."""
    console = plain()
    with TrialView(console) as view:
        for second in range(11):
            view.update(replace(SNAPSHOT, elapsed_s=float(second)))
        view.update(replace(SNAPSHOT, elapsed_s=10.5, phase="tail"))
        view.update(replace(SNAPSHOT, elapsed_s=10.6, phase="tail", note="draining"))
    starts = [line.split("   ")[0] for line in written(console).splitlines()]
    reported = [("measured", 0), ("measured", 5), ("measured", 10), ("tail", 10), ("tail", 11)]
    assert starts == [f"{phase}, {second} of 60 s in all" for phase, second in reported]


def test_terminal_line_is_rewritten_and_fits() -> None:
    """On a terminal the line is replaced in place, never wider than it, and gone at the end."""
    console = fancy()
    with TrialView(console) as view:
        view.update(SNAPSHOT)
        view.update(replace(SNAPSHOT, elapsed_s=25.0))
    text = written(console)
    assert "measured, 25 of 60 s in all" in text
    assert "\x1b[2K" in text
    assert "event time p50 3.1 s" not in text


def test_search_table_lines_up() -> None:
    """Every cell begins under its column's name."""
    console = plain()
    result = made_up_search()
    assert result.search is not None
    with SearchView(console) as view:
        view.header("word_count   spark")
        for trial in result.search.trials:
            view.trial(trial)
    console_module.show_result(result, False, console)
    lines = written(console).splitlines()
    names = next(line for line in lines if "offered" in line)
    third = next(line for line in lines if line.startswith("  3"))
    for name, cell in (
        ("offered", "1.64 M/s"),
        ("verdict", "not sustained"),
        ("backlog", "+4.1 %/s"),
        ("why", "backlog gr"),
    ):
        assert third.index(cell) == names.index(name)
    assert "sustained   1.54 M events/s   (1.54 M holds, 1.64 M does not)   6 min 12 s" in lines
    assert any(line.startswith("  1      overload     not judged ") for line in lines)
    assert any(line.startswith("at 95 %") and "undecided   p50" in line for line in lines)


@pytest.mark.parametrize(("roles", "cpu"), [
    (("sut", "driver", "sut_part"), "system under test 146 %   driver 9 %   of"),
    (("sut", "driver", "broker"), "system under test 146 %   driver 9 %   broker 117 %   of"),
    ((None, "driver", None), "system under test -   driver 9 %   of"),
], ids=["parts", "broker", "attached"])  # fmt: skip
def test_the_cpu_line(roles: tuple[str | None, ...], cpu: str) -> None:
    """Parts of the system are in no sum; a broker stands beside both; that of a program that ran already is unknown."""
    uses = zip(made_up_result().processes, roles, strict=True)
    processes = tuple(use.model_copy(update={"role": role}) for use, role in uses if role)
    assert cpu in result_text(made_up_result(processes=processes))


def test_refusal_lists_all_problems() -> None:
    """Every problem with its way out, then that nothing was started; brackets are text. Of a user job, the engine had
    to be started to look at it.
    """
    problems = [Problem("slide", "must be at most 8s", "9s", "--set slide=8s"), Problem("rate", "x", "[red]", "y")]
    assert refusal_text(InputError(problems)) == (
        "error: slide: must be at most 8s\n  got: 9s\n  try: --set slide=8s\n"
        "error: rate: x\n  got: [red]\n  try: y\nnothing was started\n"
    )
    assert refusal_text(JobError(problems[0])).endswith("nothing was measured\n")


@pytest.mark.parametrize(("value", "coloured"), [("1", False), ("", True)])
def test_no_color_is_plain(monkeypatch: pytest.MonkeyPatch, value: str, coloured: bool) -> None:
    """NO_COLOR takes every style away; empty, it does not count."""
    monkeypatch.setenv("NO_COLOR", value)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("FORCE_COLOR", "1")
    console = lines.console()
    assert console.file is not sys.stdout  # progress never mixes with the result object there
    console.file = io.StringIO()
    lines.show_refusal(InputError(Problem("a", "b", "c", "d")), console)
    assert ("\x1b" in written(console)) is coloured
