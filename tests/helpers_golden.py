"""Whole outputs that stand in files: a change of words is a diff of those, which `make golden` writes anew."""

import os
from pathlib import Path


def assert_golden(path: Path, text: str) -> None:
    """The text is that of the file; with RENEW_GOLDEN=1 the file becomes it."""
    if os.environ.get("RENEW_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), f"{path.name} differs: read the difference, then `make golden`"
