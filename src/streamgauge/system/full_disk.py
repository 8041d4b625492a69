"""A disk that is full, in one sentence: which folder's, how much is free, and the way out."""

from __future__ import annotations

import errno
import shutil
import tempfile
from pathlib import Path

WAY_OUT = "free some space, or set TMPDIR=DIR to a folder on a larger disk"
_CODES = (errno.ENOSPC, errno.EDQUOT)
_SYSTEMS_WORDS = "No space left on device"
_HEAD = "the disk that holds "


def is_full(error: BaseException) -> bool:
    """Whether an error says that a disk is full; DuckDB's has no number, and says it in words."""
    return getattr(error, "errno", None) in _CODES or _SYSTEMS_WORDS in str(error)


def full_disk(folder: Path | None = None) -> str:
    """The sentence of a folder, by default that of temporary files."""
    where = folder or Path(tempfile.gettempdir())
    return f"{_HEAD}{where} is full{_free(where)}: {WAY_OUT}"


def tells_of_full_disk(reason: str) -> bool:
    """Whether a reason that came from another process is that sentence, or an engine's own words for it."""
    return (_HEAD in reason and WAY_OUT in reason) or _SYSTEMS_WORDS in reason


def _free(folder: Path) -> str:
    try:
        return f" ({shutil.disk_usage(folder).free / 2**20:.1f} MiB free)"
    except OSError:
        return ""
