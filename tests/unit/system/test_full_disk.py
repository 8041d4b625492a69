"""A full disk in words: which one, how much is free, what to do."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from streamgauge.system.full_disk import full_disk


def test_the_sentence_has_the_folder_what_is_free_and_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is gone has no space to tell."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2**19))
    told = full_disk(tmp_path)
    assert told.startswith(f"the disk that holds {tmp_path} is full (0.5 MiB free): free some space, or set TMPDIR=DIR")
    monkeypatch.undo()
    assert "is full: free" in full_disk(tmp_path / "gone")
