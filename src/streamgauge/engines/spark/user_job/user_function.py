"""A user job's function while it runs: its current line is reported, and a query that it starts itself is refused."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql.streaming import DataStreamWriter, StreamingQueryManager

from streamgauge.core.errors import JobError
from streamgauge.engines.spark.session.session import RUNNING, UP
from streamgauge.system.child_processes import announce
from streamgauge.system.user_code import NO_QUERY, WITHOUT_SINK, own_frames

REPORT_S = 1.0
_QUERY_CALLS = (
    (DataStreamWriter, "start"), (DataStreamWriter, "toTable"), (StreamingQueryManager, "awaitAnyTermination"),
)  # fmt: skip


@contextmanager
def reported(path: Path, name: str) -> Iterator[None]:
    """Announces every second which line of the user's function runs in this thread."""
    thread, over = threading.get_ident(), threading.Event()

    def report() -> None:
        while True:
            line = next(iter(own_frames(sys._current_frames().get(thread), path)[-1:]), None)
            where = f": {Path(line.filename).name}, line {line.lineno}: {line.line}" if line is not None else ""
            announce(f"{RUNNING}: {name}(){where}")
            if over.wait(REPORT_S):
                return

    reporter = threading.Thread(target=report, name="reporter", daemon=True)
    reporter.start()
    try:
        yield
    finally:
        over.set()
        reporter.join()
        announce(UP)


@contextmanager
def no_query(path: Path, refusal: Callable[[str, object, str], JobError]) -> Iterator[None]:
    """Refuses a query at the line that starts it, because waiting for its end would never return.

    `refusal` builds an error from rule, value and way out. It is raised even if the function handles it.
    """
    refused: list[JobError] = []

    def refuse(*_: Any, **__: Any) -> None:
        frames = own_frames(sys._getframe(), path)
        lines = "".join(traceback.format_list(frames)).rstrip()
        refused.append(refusal(NO_QUERY, frames[-1].line if frames else "a query", f"{WITHOUT_SINK}:\n{lines}"))
        raise refused[-1]

    calls = [getattr(owner, method) for owner, method in _QUERY_CALLS]
    for owner, method in _QUERY_CALLS:
        setattr(owner, method, refuse)
    try:
        yield
    finally:
        for (owner, method), call in zip(_QUERY_CALLS, calls, strict=True):
            setattr(owner, method, call)
        if refused:
            raise refused[0] from None
