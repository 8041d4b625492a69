"""Counts the rows of operators, if requested, so that a failure ends the counting and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from streamgauge.core.engine_reports import OperatorCounts
from streamgauge.engines.spark.error_message import error_message
from streamgauge.engines.spark.observe.row_counts import RowCounters


class RowCounting:
    """The probes of a session, or None. An error ends the counting, but neither a query nor its status."""

    def __init__(self, probes: RowCounters | None = None) -> None:
        self.probes = probes
        self._handles: dict[str, Any] = {}
        self._ended = ""

    def started(self, query: str, handle: Any) -> None:
        """Registers a started query."""
        self._handles[query] = handle
        if self.probes is not None:
            self.probes.started(query, handle)

    def keep_up(self) -> None:
        """Reads what Spark would evict soon."""
        self._guarded(RowCounters.keep_up)

    def batch_written(self, query: str, batch: int) -> None:
        """Counts a batch that Spark's driver wrote, once its query is registered."""
        if query in self._handles:
            self._guarded(RowCounters.count_in, query, self._handles[query], batch)

    def take(self) -> OperatorCounts:
        """The counts since the last call."""
        self._guarded(RowCounters.read)
        return OperatorCounts(self.probes.take() if self.probes is not None else [], self._ended)

    def _guarded(self, count: Callable[..., None], *arguments: Any) -> None:
        if self.probes is None or self._ended:
            return
        try:
            count(self.probes, *arguments)
        except Exception as error:
            self._ended = error_message(str(error))
            print(f"streamgauge: stopped counting rows of operators: {error}", file=sys.stderr, flush=True)
