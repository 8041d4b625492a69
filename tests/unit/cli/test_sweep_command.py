"""`streamgauge sweep`: its options, refusals and exit codes. No engine is started."""

from pathlib import Path

import pytest

from streamgauge.results.matrix import MatrixPlan, MatrixResult
from streamgauge.studies.matrix import cells
from tests.unit.cli.helpers_commands import Invoke, assert_one_refusal
from tests.unit.studies.matrix.helpers_matrix import queue

WORDS = ("sweep", "identity", "--engine", "known", "--warmup", "1s", "--duration", "4s")


def test_the_answer_stands_in_the_terminal_and_on_a_page(
    stand: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke
) -> None:
    """Each load with its latency, the knee and its rule; a load beyond 100 % may fail."""
    monkeypatch.setattr(cells, "perform", queue(8000)[0])
    done = invoke(*WORDS)
    assert done.returncode == 0
    assert "11 of 11 loads: 10 sustained, 1 not sustained; knee at 50 % with 4 k/s and p99 20 ms" in done.stdout
    assert "Kleinrock 1979" in done.stdout
    assert "sweep: 100 % is not known" in done.stderr
    assert "sweep: 100 % is 8 k/s, found by a quick search" in done.stderr
    (folder,) = (stand / "runs").iterdir()
    again = invoke("report", str(folder))
    assert (again.returncode, again.stdout.strip()) == (0, str(folder / "report.html"))


def test_page_json_table_and_terminal_agree(stand: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
    monkeypatch.setattr(cells, "perform", queue(8000)[0])
    done = invoke(*WORDS, "--of", "8k", "--loads", "50%,75%", "--json", "--quiet")
    result = MatrixResult.model_validate_json(done.stdout)
    folder = Path(result.folder)
    assert (done.returncode, done.stderr, [row.event_time_p99_us for row in result.cells]) == (0, "", [2e4, 4e4])
    shown = invoke("experiment", "--resume", result.folder)
    page, table = (folder / "report.html").read_text(), (folder / "cells.csv").read_text()
    for number, load, rate, p99 in ((1, "50 %", "4000", "20 ms"), (2, "75 %", "6000", "40 ms")):
        assert f"{number},{float(load.removesuffix(' %')) / 100:g},{rate}" in table
        for text in (page, shown.stdout):
            assert [text.count(one) > 0 for one in (load, rate, p99)] == [True] * 3
    assert "knee not known" in page
    assert "knee not known" in shown.stdout


def test_the_figures_of_a_sweep_that_was_refused_no_rate(monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
    """Its search says why, and decides the exit code."""
    monkeypatch.setattr(cells, "perform", queue(8000, "not_sustained")[0])
    done = invoke(*WORDS)
    assert (done.returncode, "100 % is not known: found so" in done.stdout) == (1, True)
    assert "streamgauge sweep --resume runs/" in done.stdout


def test_a_dry_run_lists_loads_and_minutes(stand: Path, invoke: Invoke) -> None:
    """For people and for programs; nothing is written."""
    text, document = invoke(*WORDS, "--dry-run"), invoke(*WORDS, "--of", "1k", "--dry-run", "--json")
    assert (text.returncode, text.stderr) == (0, "")
    assert "11 cells, about " in text.stdout
    assert "of them for a search first" in text.stdout
    assert "110 %" in text.stdout
    plan = MatrixPlan.model_validate_json(document.stdout)
    assert [cell.settings["load.rate"] for cell in plan.cells] == pytest.approx([100 * n for n in range(1, 12)])
    assert list(stand.iterdir()) == []


def test_a_file_declares_a_sweep(stand: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
    """As `--print-toml` prints it; an experiment file runs the same."""
    monkeypatch.setattr(cells, "perform", queue(8000)[0])
    printed = invoke(*WORDS, "--of", "8k", "--loads", "20%..40%", "--print-toml")
    (stand / "sweep.toml").write_text(printed.stdout)
    assert invoke("experiment", "sweep.toml", "--print-toml").stdout == printed.stdout
    result = MatrixResult.model_validate_json(invoke("experiment", "sweep.toml", "--json").stdout)
    assert (result.sweep and result.sweep.loads, result.sweep and result.sweep.knee) == ((0.2, 0.3, 0.4), 0.4)


@pytest.mark.parametrize(
    ("words", "setting"),
    [
        (("--loads", "some"), "--loads"),
        (("--loads", "110%..10%"), "--loads"),
        (("--loads", "50%,50%"), "--loads"),
        (("--loads", "10..110"), "--loads"),
        (("--loads", ""), "--loads"),
        (("--loads", "0%,10%"), "--loads"),
        (("--of", "fast"), "--of"),
        (("--of", "0"), "--of"),
        (("--rate", "5k"), "--rate"),
        (("--of", "1k", "--duration", "0s"), "--duration"),
        (("--resume", "missing"), "--resume"),
    ],
)
def test_bad_input_is_one_message(stand: Path, invoke: Invoke, words: tuple[str, ...], setting: str) -> None:
    """And nothing is written."""
    assert_one_refusal(invoke(*WORDS, *words), setting)
    assert list(stand.iterdir()) == []


def test_options_that_are_wrong_are_refused_with_the_ones_of_the_sweep(stand: Path, invoke: Invoke) -> None:
    """`--loads` and `--of` are options of other commands too; in a file they are lines of its own section."""
    assert "try: --loads 10%..110%" in invoke(*WORDS, "--loads", "9000%").stderr
    assert "try: --of" in invoke(*WORDS, "--rate", "5k").stderr
    assert "try: --loads 10%..110%" in invoke(*WORDS, "--loads").stderr
    for line, way_out in (('loads = "no"', 'loads = "10%..110%"'), ('of = "no"', 'of = "200k"')):
        (stand / "sweep.toml").write_text(f'command = "sweep"\nworkload = "identity"\n[sweep]\n{line}\n')
        assert f"try: {way_out} below [sweep]" in invoke("experiment", "sweep.toml").stderr
