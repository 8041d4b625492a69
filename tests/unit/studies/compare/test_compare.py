"""`streamgauge compare`: what it prints where, its exit codes, and every bad input."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamgauge.results.comparison import Comparison
from streamgauge.results.verdict import Verdict
from tests.unit.cli.helpers_commands import call_and_read
from tests.unit.studies.compare.helpers_compare import Make, Three

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """The command with these words: (exit code, stdout, stderr)."""
    return lambda *words: call_and_read(monkeypatch, capsys, "compare", *words)


def test_the_table_goes_to_stdout(call: Call, make_run: Make) -> None:
    """Figures of both sides, the interval, what it says, what is not the same."""
    code, out, err = call(make_run("a", 1), make_run("b", 2, slower=1.3, isolation="pinned"))
    assert (code, err) == (0, "")
    (row,) = [line for line in out.splitlines() if line.startswith("event time p50")]
    assert (row.split()[-1], " to +" in row) == ("worse", True)
    parts = ("95 % interval", "isolation   A shared   B pinned", "one run a side")
    assert [part for part in parts if part not in out] == []


def test_json_is_the_answer_and_nothing_else(call: Call, make_run: Make) -> None:
    """The object comes back as it went; ends without a bound are null, so any JSON reader takes it."""
    code, out, err = call(make_run("a", 1), make_run("b", 2), "--json", "--confidence", "90%")
    assert (code, err) == (0, "")
    comparison = Comparison.model_validate_json(out)
    assert (comparison.confidence, comparison.figures == ()) == (0.9, False)
    assert ("Infinity" in out, "NaN" in out) == (False, False)


@pytest.mark.parametrize(("slower", "code", "state"), [(1.0, 0, "passed"), (1.5, 1, "failed"), (1.2, 3, "unknown")])
def test_a_gate_is_the_exit_code(call: Call, three: Three, slower: float, code: int, state: str) -> None:
    """0 only if it passed; unknown is not passed, and both say why."""
    got, out, _ = call(three("a", 10), three("b", 20, slower=slower), "--fail-if", "p50 +20%")
    assert got == code
    (line,) = [line for line in out.splitlines() if "p50 +20%" in line]
    assert line.startswith(state)
    assert "limit +20 %" in line


def test_html_is_written_beside_the_answer(call: Call, make_run: Make, tmp_path: Path) -> None:
    """One file that needs nothing else; the exit code and the table stay."""
    page = tmp_path / "comparison.html"
    code, out, _ = call(make_run("a", 1), make_run("b", 2), "--html", page)
    assert (code, str(page) in out) == (0, True)
    assert page.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("name", ["series.parquet", "latency.hlog"])
def test_a_missing_file_is_reported(call: Call, make_run: Make, name: str) -> None:
    """Its figures are left out, and nothing says that they were never recorded."""
    a, b = make_run("a", 1), make_run("b", 2)
    (b / name).unlink()
    code, out, _ = call(a, b, "--json")
    assert code == 0
    assert f"B: b: {name} is missing: its figures are left out" in json.loads(out)["warnings"]
    assert "not recorded" not in out


def test_every_bad_word_is_refused(call: Call, make_run: Make, tmp_path: Path) -> None:
    """Exit code 2, the reason on stderr with a way out, nothing on stdout, no traceback."""
    a, b = make_run("a", 1), make_run("b", 2)
    for name in ("text", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "text" / "result.json").write_text("not JSON")
    for words, message in (
        ((a, tmp_path / "nowhere"), f"B: must be there, not '{tmp_path / 'nowhere'}'"),
        ((tmp_path / "empty", b), "A: must hold a result.json, or runs"),
        ((tmp_path / "text", b), "A: result.json must be whole, and this one is damaged"),
        ((f"{a},", b), "A: must be there"),
        (("", b), "A: must be there"),
        ((a, b, "--fail-if", "p99 up"), "must be FIGURE"),
        ((a, b, "--confidence", "much"), "must be a share"),
        ((a, b, "--confidence", "100%"), "--confidence: must be from"),
        ((a, b, "--html", tmp_path / "no" / "page.html"), "--html: must be in an existing folder"),
        ((a, b, "--html", tmp_path), "--html: must be a file"),
    ):
        code, out, err = call(*words)
        assert (code, out) == (2, ""), words
        assert (message in err, "try:" in err, "Traceback" in err) == (True, True, False), words


@pytest.mark.parametrize("verdict", ["invalid", "interrupted"])
def test_a_side_whose_figures_must_not_be_used_has_its_own_code(
    call: Call, make_run: Make, tmp_path: Path, verdict: Any
) -> None:
    """Exit code 4, on either side; but 2 if the request itself cannot be used."""
    sentence = f"{verdict}: the driver starved"
    good, bad = make_run("a", 1), make_run("bad", 3, verdict=Verdict(value=verdict, sentence=sentence))
    for sides in ((good, bad), (bad, good)):
        code, out, err = call(*sides)
        assert (code, out, f"and not {verdict} (the driver starved)" in err) == (4, "", True)
    assert call(bad, tmp_path / "nowhere")[0] == 2
