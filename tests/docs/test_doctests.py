"""Examples in docstrings say what is so."""

import doctest
import importlib
from pathlib import Path

import pytest

import streamgauge

ROOT = Path(streamgauge.__file__).parent
SHOWING = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py") if ">>> " in path.read_text())
"""The modules that have an example."""


@pytest.mark.parametrize("path", SHOWING, ids=str)
def test_examples_give_what_they_show(path: Path) -> None:
    """Each as if it were typed in, in its module."""
    failed, attempted = doctest.testmod(importlib.import_module(".".join(("streamgauge", *path.with_suffix("").parts))))
    assert (failed, attempted > 0) == (0, True)
