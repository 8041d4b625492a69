"""Jars: kept once they were resolved, the first set that can be had, and a clear word where none can."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from streamgauge.core.errors import MachineError
from streamgauge.system import jars
from streamgauge.system.jars import LIST, JarSet, resolved

EXACT, OLDER = JarSet("exact", ("a:b:2",), ("c:d",)), JarSet("older", ("a:b:1",))


def ivy(there: dict[str, list[str]], calls: list[str]) -> object:
    """What Spark's Ivy does with a repository that has these jars of these sets."""

    def run(wanted: JarSet, work: Path) -> None:
        calls.append(wanted.name)
        if wanted.name not in there:
            raise jars._Unresolved("unresolved dependency: not found")
        (work / "jars").mkdir()
        for name in there[wanted.name]:
            (work / "jars" / name).write_text(name)

    return run


def test_they_are_resolved_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time nobody is asked; a jar that is gone since is resolved again."""
    calls: list[str] = []
    monkeypatch.setattr(jars, "_run_ivy", ivy({"exact": ["b.jar", "a.jar"]}, calls))
    first = resolved([[EXACT], [OLDER]], tmp_path)
    assert [path.name for path in first] == ["a.jar", "b.jar"]
    assert resolved([[EXACT], [OLDER]], tmp_path) == first
    assert calls == ["exact"]
    first[0].unlink()
    assert resolved([[EXACT], [OLDER]], tmp_path) == first
    assert calls == ["exact", "exact"]
    assert [path.name for path in tmp_path.iterdir()] == ["exact"]


def test_the_next_set_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And where that is there already, no repository is asked for the first."""
    calls: list[str] = []
    monkeypatch.setattr(jars, "_run_ivy", ivy({"older": ["a.jar"]}, calls))
    assert [path.name for path in resolved([[EXACT], [OLDER]], tmp_path)] == ["a.jar"]
    assert calls == ["exact", "older"]
    resolved([[EXACT], [OLDER]], tmp_path)
    assert calls == ["exact", "older"]


def test_a_choice_may_be_several_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, or it is none; what one of them has brought is kept for another time."""
    calls: list[str] = []
    monkeypatch.setattr(jars, "_run_ivy", ivy({"exact": ["a.jar"], "older": ["b.jar"]}, calls))
    found = resolved([[EXACT, JarSet("none", ("x:y:1",))], [EXACT, OLDER]], tmp_path)
    assert [path.name for path in found] == ["a.jar", "b.jar"]
    assert calls == ["exact", "none", "older"]


def test_where_none_can_be_had_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With each set's reason and the way out; nothing is left that looks like jars."""
    monkeypatch.setattr(jars, "_run_ivy", ivy({"older": []}, []))
    with pytest.raises(MachineError) as caught:
        resolved([[EXACT], [OLDER]], tmp_path)
    said = str(caught.value)
    assert "a:b:2: unresolved dependency: not found" in said
    assert "a:b:1: Ivy reported no error and returned no jars" in said
    assert f"copy {tmp_path}" in said
    assert list(tmp_path.iterdir()) == []


def test_one_that_was_cut_off_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its list, which is written last, is not there, or half."""
    calls: list[str] = []
    monkeypatch.setattr(jars, "_run_ivy", ivy({"exact": ["a.jar"]}, calls))
    (tmp_path / "exact").mkdir()
    (tmp_path / "exact" / "a.jar").touch()
    resolved([[EXACT]], tmp_path)
    (tmp_path / "exact" / LIST).write_text(json.dumps(["a.jar"])[:-1])
    resolved([[EXACT]], tmp_path)
    assert calls == ["exact", "exact"]


def test_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where the system's convention says."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert jars.cache() == tmp_path / "streamgauge" / "jars"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert jars.cache() == Path(os.path.expanduser("~")) / ".cache" / "streamgauge" / "jars"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("a\n\t\t:: a#b;2: not found\n\t:::::\nlast", "a#b;2: not found"),
        ("Host h not found. url=https://h/a.jar\n\t\t:: a#b;2: not found\nlast", "a#b;2: not found"),
        ("a\n last words \n\n", "last words"),
        ("", ""),
    ],
)
def test_ivys_own_words(said: str, reason: str) -> None:
    """Of a page of them, the line that tells."""
    assert jars._reason(said) == reason


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the variable to set; it is the machine's lack, no defect."""

    def refuses(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(jars.tempfile, "TemporaryDirectory", refuses)
    with pytest.raises(MachineError, match=r"Permission denied\)\n  set XDG_CACHE_HOME") as refused:
        resolved([[EXACT], [OLDER]], tmp_path / "cache")
    assert str(tmp_path / "cache") in str(refused.value)


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in containers that run under any number."""

    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(jars.Path, "home", unknown)
    with pytest.raises(MachineError, match="set XDG_CACHE_HOME"):
        jars.cache()
