"""What our code does to Spark's Python workers."""

from __future__ import annotations

import subprocess
import sys

import pytest

from streamgauge.engines.spark.io import flight_source
from streamgauge.engines.spark.io.flight_source import BatchWriter, Range, Reader, StreamWriter
from streamgauge.engines.spark.session.python_workers import UNCHANGED, VARIABLE

_WRITING = {"location": "grpc://127.0.0.1:1", "token": "t", "query": "q0", "sinks": "[]", "batch": "0"}
_READING = {"stream": "s", "token": "t", "locations": "[]", "query": "q0", "reader": "0", "frontier": "common"}
_PROCESS = """
import gc
from streamgauge.engines.spark.session.python_workers import freeze_gc
ring = []
ring.append(ring)
freeze_gc()
frozen = gc.get_freeze_count()
later = [[]]
later.append(later)
freeze_gc()
print(frozen, gc.get_freeze_count())
"""


def test_what_is_imported_is_frozen_and_what_comes_later_is_not() -> None:
    """A process is settled once: what tasks leave must be found by the collector."""
    done = subprocess.run([sys.executable, "-c", _PROCESS], capture_output=True, text=True, check=True)
    first, second = map(int, done.stdout.split())
    assert first == second > 1000


def test_workers_that_are_left_to_spark_are_not_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """They know by a variable, which they inherit."""
    monkeypatch.setenv(VARIABLE, UNCHANGED)
    done = subprocess.run([sys.executable, "-c", _PROCESS], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "0"]


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Grows by one whenever a worker is settled."""
    calls: list[bool] = []
    monkeypatch.setattr(flight_source, "freeze_gc", lambda: calls.append(True))
    return calls


@pytest.mark.parametrize("kind", [StreamWriter, BatchWriter])
def test_a_worker_that_makes_a_writer_is_settled(kind: type[StreamWriter | BatchWriter], settled: list[bool]) -> None:
    """Spark has one to plan each batch's writing, and one to commit it."""
    kind(_WRITING)
    assert settled


def test_a_worker_that_reads_is_settled(settled: list[bool]) -> None:
    """The reader itself comes to it pickled, made elsewhere."""
    reader = Reader({**_READING, "columns": "[]"})
    assert not settled
    reader.read(Range("grpc://127.0.0.1:1", 0, 1))
    assert settled
