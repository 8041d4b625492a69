"""What the driver makes of the SUT process's answers."""

from __future__ import annotations

import json
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.core.engine_reports import BatchProgress
from streamgauge.engines.spark.engine import DSTREAM, MICRO_BATCH, REAL_TIME, ExecutionMode, SparkEngine
from streamgauge.engines.spark.session.reports import DStreamProgress, progress_of
from streamgauge.system.child_processes import ChildFailed

DSTREAM_INFO = SimpleNamespace(
    outputOperationInfos=lambda: {0: SimpleNamespace(startTime=lambda: 1010, endTime=lambda: 1250)},
)


def engine_that_answers(mode: ExecutionMode, ask: Any) -> SparkEngine:
    engine = SparkEngine(mode=mode)
    engine._child = SimpleNamespace(ask=ask)  # type: ignore[assignment]
    return engine


def test_a_dstream_batch_has_the_times_of_its_output() -> None:
    """To the microsecond; its one step is the processing of the data."""
    progress = progress_of("q", 4, DSTREAM_INFO, [(0, 3, 1010, 2)])
    assert progress == DStreamProgress(
        query="q", batch=4, start_us=1_010_000, end_us=1_250_000, steps_us={"add_batch": 240_000},
        blocks=[(0, 3, 1010, 2)],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "progress"),
    [
        (MICRO_BATCH, BatchProgress("q", 4, 1000, 2000, {"add_batch": 600})),
        (REAL_TIME, BatchProgress("", 4, 1000)),
        (DSTREAM, progress_of("q", 4, DSTREAM_INFO, [[0, 3, 1010, 2]])),
    ],
)
def test_progress_arrives_as_it_was_sent(mode: ExecutionMode, progress: BatchProgress) -> None:
    """The SUT process answers in JSON."""
    engine = engine_that_answers(mode, lambda *_: json.loads(json.dumps([asdict(progress)])))
    assert engine.batch_progress() == [progress]


def test_a_process_that_does_not_answer_has_no_progress() -> None:
    """No verdict depends on it."""

    def ask(*_: Any) -> Any:
        raise ChildFailed("ended")

    assert engine_that_answers(MICRO_BATCH, ask).batch_progress() == []
