"""A full disk in words: which one, how much is free, what to do."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from streamgauge.system.full_disk import full_disk, tells_of_full_disk


def test_the_sentence_has_the_folder_what_is_free_and_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is known again as text; a folder that is gone has no space to tell."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2**19))
    told = full_disk(tmp_path)
    assert told.startswith(f"the disk that holds {tmp_path} is full (0.5 MiB free): free some space, or set TMPDIR=DIR")
    assert tells_of_full_disk(f"a process of the driver failed: {told}")
    assert tells_of_full_disk("java.io.IOException: No space left on device")
    assert not tells_of_full_disk("the spool could not be written: broken")
    monkeypatch.undo()
    assert "is full: free" in full_disk(tmp_path / "gone")
