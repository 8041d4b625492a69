"""Runs one program in its own process. It is not in `__main__`, which a spawned process cannot import."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Any


def run_one(module: str) -> list[dict[str, Any]]:
    """The rows of one program; what it prints goes to stderr."""
    with contextlib.redirect_stdout(sys.stderr):
        rows: list[dict[str, Any]] = importlib.import_module(module).main()
    return rows


def run_in_own_process(module: str) -> list[dict[str, Any]]:
    """`run_one` in a new process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(run_one, module).result()
