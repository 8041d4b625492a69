"""tools/refusals.py: what is recorded of a refusal, and what a comparison reports."""

import csv
import json
from pathlib import Path

import pytest

from tools import refusals

BROKEN = ("set data", "must name a file", "str")


@pytest.mark.parametrize(
    ("rule", "got", "expected"),
    [
        (
            "5m is not a rate; 5M is 5 million events a second",
            "5m",
            "VALUE is not a rate; NM is N million events a second",
        ),
        ("must be below 1,024.5 on 2\n cores", 3000, "must be below N on N cores"),
        ("/tmp/a-1/b.csv is not a file", None, "PATH is not a file"),
        ("must be 1 or 2", "a", "must be N or N"),
    ],
)
def test_what_differs_between_runs_is_left_out(rule: str, got: object, expected: str) -> None:
    """Values, paths and numbers."""
    assert refusals.normalised("rate", rule, got) == ("rate", expected, type(got).__name__)


def test_a_refusal_that_vanished_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By its exit code too, unless it has a reason; a new one is only reported."""
    monkeypatch.setattr(refusals, "KNOWN", tmp_path / "known.csv")
    monkeypatch.setattr(refusals, "VANISHED", reasons := tmp_path / "vanished.csv")
    reasons.write_text("setting,rule,value,reason\n")
    raw, empty = tmp_path / "raw", tmp_path / "empty"
    raw.write_text((json.dumps(BROKEN) + "\n") * 2)
    empty.touch()
    assert refusals.main(str(raw), "--write") == 0
    assert refusals.main(str(raw)) == 0
    assert capsys.readouterr().out == ""
    assert refusals.main(str(empty)) == 1
    assert capsys.readouterr().out == "vanished: set data: must name a file: str\n"
    reasons.write_text(f"setting,rule,value,reason\n{','.join(BROKEN)},files have gone\n")
    assert (refusals.main(str(empty)), capsys.readouterr().out) == (0, "")
    assert refusals.main(str(empty), "--write") == 0
    assert refusals.main(str(raw)) == 0
    assert capsys.readouterr().out == "new: set data: must name a file: str\n"


def test_each_refusal_that_is_gone_has_a_reason() -> None:
    """And none of them is refused again."""
    rows = list(csv.reader(refusals.VANISHED.read_text().splitlines()))
    assert all(len(row) == 4 and row[3] for row in rows)
    assert not refusals.listed(refusals.VANISHED) & refusals.listed(refusals.KNOWN)
