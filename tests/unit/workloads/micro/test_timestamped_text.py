"""Stamped text: what is in a record comes out of it, less what is subtracted."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from streamgauge.core.errors import InputError
from streamgauge.engines.duckdb_oracle.engine import Oracle
from streamgauge.workloads import registry
from tests.unit.helpers_duckdb import duckdb_session

WORKLOAD = registry.get("stamped_text")


def times(records: list[str | None], zero_us: int) -> list[tuple[int | None, int | None]]:
    events = pa.table({"record": pa.array(records, pa.string()), "event_time": pa.array(range(len(records)))})
    flow = WORKLOAD.build(WORKLOAD.read({"zero_us": zero_us}), 1000.0).flow
    found: Any = Oracle().answer(flow, {"records": events}, duckdb_session()).to_arrow_table()
    return list(zip(found.column("id").to_pylist(), found.column("since_us").to_pylist(), strict=True))


def test_a_time_is_subtracted() -> None:
    """Worked out by hand; what is no record gives nulls, and stays one row."""
    records = ["0000000007,000000007000,abc", "", "no record of any kind at all", None]
    assert times(records, 1000) == [(7, 6000), (None, None), (None, None), (None, None)]


def test_records_have_the_size_asked_for() -> None:
    """And at least what they must hold."""
    ((stream,)) = WORKLOAD.build(WORKLOAD.read({"record_bytes": "100"}), 1000.0).streams
    assert stream.fields[0].row_bytes == 104
    with pytest.raises(InputError, match="record_bytes"):
        WORKLOAD.read({"record_bytes": 23})
