"""One program in a process of its own. A module beside `__main__`, because a spawned process cannot import that one."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Any


def run_one(name: str) -> list[dict[str, Any]]:
    """The rows of one program; what it prints goes to stderr."""
    with contextlib.redirect_stdout(sys.stderr):
        rows: list[dict[str, Any]] = importlib.import_module(f"bench.{name}").main()
    return rows


def run_apart(name: str) -> list[dict[str, Any]]:
    """`run_one` in a new process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(run_one, name).result()
