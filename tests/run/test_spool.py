"""run/spool.py: what the recorder spooled, and the results that are kept of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.run.spool import keep_results

ROWS = pa.RecordBatch.from_pydict({"event_time": pa.array([1_000_000, 2_000_000]), "value": pa.array([7, 8])})


def received(*batches: pa.RecordBatch | Exception) -> Any:
    """Stands for the spool: hands out the batches, and fails where one is an error."""

    def handed() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if isinstance(batch, Exception):
                raise batch
            yield batch

    return SimpleNamespace(schema=ROWS.schema, batches=handed)


def test_results_are_kept_with_times_as_timestamps(tmp_path: Path) -> None:
    """Microseconds since 1970 become timestamps with a zone; other columns stay as they are, and so does the order."""
    keep_results(received(ROWS, ROWS), tmp_path / "results.parquet")
    kept = pq.read_table(tmp_path / "results.parquet")
    assert kept.schema.field("event_time").type == pa.timestamp("us", "UTC")
    assert kept.column("value").to_pylist() == [7, 8, 7, 8]
    assert [path.name for path in tmp_path.iterdir()] == ["results.parquet"]


def test_results_that_could_not_be_kept_whole_are_not_there(tmp_path: Path) -> None:
    """A file that a full disk cut short would be read as all there was."""
    with pytest.raises(OSError, match="no space"):
        keep_results(received(ROWS, OSError("no space")), tmp_path / "results.parquet")
    assert list(tmp_path.iterdir()) == []
