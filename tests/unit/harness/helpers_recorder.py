"""What the tests of the recorder share: its address, results to send, and rows not yet committed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa

from streamgauge.core.schema import EVENT_TIME
from streamgauge.harness.recorder_process import Ledger, Recorder
from streamgauge.transports.memory import client

TOKEN = "a-token"


def rows_staged(ledger: Ledger) -> int:
    """What came and was neither accepted nor ignored."""
    return sum(staged.rows for staged in ledger._staged.values())


@dataclass
class Served:
    recorder: Recorder
    spool: Path
    attempts: Iterator[int] = field(default_factory=count)

    @property
    def location(self) -> str:
        return str(self.recorder.listen()["location"])

    def send(
        self, batch: int, batches: list[pa.RecordBatch], partition: int = 0, attempt: int = 0, sink: str = "out"
    ) -> int:
        address = {"query": "q", "batch": batch, "partition": partition, "attempt": attempt, "sink": sink}
        return client.send_results(self.location, TOKEN, address, iter(batches))

    def recorded(self, batch: int, *batches: pa.RecordBatch) -> dict[str, Any]:
        """The one commit that is reported, after these results were sent and committed."""
        self.send(batch, list(batches))
        assert self.commit(batch, [[0, 0]])
        (commit,) = self.recorder.status()["commits"]
        return cast(dict[str, Any], commit)

    def commit(self, batch: int, accepted: list[list[int]], *sinks: str) -> bool:
        requested = {"query": "q", "batch": batch, "accepted": accepted, "sinks": sinks or ["out"]}
        return bool(client.act(self.location, TOKEN, "commit", **requested))


def results(first: int, rows: int) -> pa.RecordBatch:
    times = np.arange(first, first + rows, dtype=np.int64)
    return pa.record_batch({"revenue": times * 2, EVENT_TIME: times})
