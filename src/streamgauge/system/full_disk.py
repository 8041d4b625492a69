"""The message about a full disk: the folder, the free space and the way out."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

WAY_OUT = "free some space, or set TMPDIR=DIR to a folder on a larger disk"


def full_disk(folder: Path | None = None) -> str:
    """The message for a folder; the default is the folder for temporary files."""
    where = folder or Path(tempfile.gettempdir())
    return f"the disk that holds {where} is full{_free(where)}: {WAY_OUT}"


def _free(folder: Path) -> str:
    try:
        return f" ({shutil.disk_usage(folder).free / 2**20:.1f} MiB free)"
    except OSError:
        return ""
