"""A disk that is full, in one sentence: which folder's, how much is free, and the way out."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from streamgauge.errors import FULL_IN_WORDS

WAY_OUT = "free some space, or set TMPDIR=DIR to a folder on a larger disk"
_HEAD = "the disk that holds "


def full_disk(folder: Path | None = None) -> str:
    """The sentence of a folder, by default that of temporary files."""
    where = folder or Path(tempfile.gettempdir())
    return f"{_HEAD}{where} is full{_free(where)}: {WAY_OUT}"


def tells_of_full_disk(reason: str) -> bool:
    """Whether a reason that came from another process is that sentence, or an engine's own words for it."""
    return (_HEAD in reason and WAY_OUT in reason) or FULL_IN_WORDS in reason


def _free(folder: Path) -> str:
    try:
        return f" ({shutil.disk_usage(folder).free / 2**20:.1f} MiB free)"
    except OSError:
        return ""
