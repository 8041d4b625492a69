"""trial/interrupted.py: how late the results of a stopped trial were, as far as there was time to count them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.core.clock import US
from streamgauge.core.formatting import format_count
from streamgauge.core.schema import EVENT_TIME
from streamgauge.dataflow.nodes import Flow
from streamgauge.trial import interrupted as module
from streamgauge.trial.interrupted import (
    NO_TIME,
    NONE_CAME,
    NOT_STORED,
    NOTHING_COMPARED,
    UNVERIFIED,
    Budget,
    latencies_without_verification,
)
from tests.unit.helpers_answers import PURCHASES, ROWS, START, WINDOWS, Case

BOTH = Flow((*PURCHASES.where("price > 50").sink("dear").sinks, *WINDOWS.sinks))


def looks(number: int) -> Budget:
    """A budget that is spent after so many looks at it, whatever the clock says; the first look is at its making."""
    now = iter([0.0] * (number + 1))
    return Budget(1.0, lambda: next(now, 2.0))


def enough() -> Budget:
    return Budget(1.0, lambda: 0.0)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "runs", "a", "b", datetime.now(UTC))


def by_second(trial: Case, sink: str = "") -> list[Any]:
    """The right answers, a table for each second of event time."""
    rows = trial.answer(sink)
    seconds = (rows.column(EVENT_TIME).to_numpy() - START) // US
    return [rows.filter(seconds == second) for second in range(20)]


@pytest.mark.parametrize("flow", [ROWS, WINDOWS], ids=lambda flow: flow.sink.name)
def test_what_came_in_the_span_is_counted(case: Callable[..., Case], make: Any, flow: Flow) -> None:
    """Of the span alone, each with the latency it had; nothing says that anything was compared."""
    trial = case(flow, drained=False, interrupted=True)
    trial.receive(make, **{flow.sink.name: by_second(trial)})
    found = latencies_without_verification(trial.resolved, trial.record, None, enough())
    (sink,) = found.sinks.sinks
    spans, times = trial.record.spans, trial.answer().column(EVENT_TIME).to_numpy()
    latency = sink.latencies.latencies.event_time_us
    assert latency is not None
    assert latency.count == ((times >= spans.measured_from_us) & (times < spans.measured_to_us)).sum()
    assert latency.lower_bounds == 0
    assert latency.min is not None
    assert latency.min >= 0.99 * US  # the histogram keeps three digits; each came a second after it was due
    assert sink.rows == len(times)
    assert sink.latencies.latencies.notes[0] == UNVERIFIED
    assert (sink.verification.judged, sink.verification.sentence) == (False, NOTHING_COMPARED)
    assert (found.sinks.verification.judged, found.warnings) == (False, ())


def test_counting_ends_when_its_time_is_over(case: Callable[..., Case], make: Any) -> None:
    """Somebody waits: what was counted until then stands, and the note says how much of what came that is."""
    trial = case(ROWS, drained=False, interrupted=True)
    tables = by_second(trial)
    trial.receive(make, rows=tables)
    # A batch is committed 2 s after its second begins, so that of second 3 is the first one after the warm-up.
    came = sum(table.num_rows for table in tables[3:])
    found = latencies_without_verification(trial.resolved, trial.record, None, looks(5))
    (sink,) = found.sinks.sinks
    latency = sink.latencies.latencies.event_time_us
    assert latency is not None
    assert 0 < latency.count < came
    (message,) = [note for note in sink.latencies.latencies.notes if note.startswith("counted: ")]
    assert f" of {format_count(came)} results" in message


def test_a_sink_without_results_of_the_span_has_no_latency_and_says_so(case: Callable[..., Case], make: Any) -> None:
    """Its note is the reason; the other sink's figures stand, and are the ones that are shown."""
    trial = case(BOTH, drained=False, interrupted=True)
    trial.receive(make, dear=by_second(trial, "dear"), windows=[])
    dear, windows = latencies_without_verification(trial.resolved, trial.record, None, enough()).sinks.sinks
    assert (dear.name, windows.name) == ("dear", "windows")
    assert dear.latencies.latencies.event_time_us is not None
    assert windows.latencies.latencies.event_time_us is None
    assert windows.latencies.latencies.notes == (NONE_CAME,)
    assert windows.rows == 0


def test_results_are_kept_whole(case: Callable[..., Case], make: Any, folder: RunFolder) -> None:
    """With those of warm-up and tail, a file for each of several sinks, where any came."""
    trial = case(BOTH, drained=False, interrupted=True)
    trial.receive(make, dear=by_second(trial, "dear"), windows=[])
    found = latencies_without_verification(trial.resolved, trial.record, folder, enough())
    assert found.warnings == ()
    assert [path.name for path in folder.path.glob("results*")] == ["results-dear.parquet"]
    kept = pq.read_table(folder.path / "results-dear.parquet")
    assert kept.num_rows == trial.answer("dear").num_rows


def test_results_that_there_was_no_time_to_keep_are_not_there_in_part(
    case: Callable[..., Case], make: Any, folder: RunFolder
) -> None:
    """A part would be taken for all there was; a warning says that they lack."""
    trial = case(ROWS, drained=False, interrupted=True)
    tables = by_second(trial)
    trial.receive(make, rows=tables)
    counting = 3 + sum(table.num_rows > 0 for table in tables)
    found = latencies_without_verification(trial.resolved, trial.record, folder, looks(counting))
    assert found.warnings == (NOT_STORED + NO_TIME,)
    assert list(folder.path.glob("*results*")) == []


def test_a_full_disk_takes_nothing_but_the_results(
    case: Callable[..., Case], make: Any, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The latencies stand, and a warning says why there is no file."""

    def full(*_: Any) -> bool:
        raise OSError("no space left")

    monkeypatch.setattr(module, "write_results", full)
    trial = case(ROWS, drained=False, interrupted=True)
    trial.receive(make, rows=by_second(trial))
    found = latencies_without_verification(trial.resolved, trial.record, folder, enough())
    assert found.warnings == (f"{NOT_STORED}no space left",)
    assert found.sinks.slowest.latencies.effective_count


def test_a_spool_that_cannot_be_read_leaves_the_reason(case: Callable[..., Case], make: Any) -> None:
    """No latency then, and no end of the run without its figures."""
    trial = case(ROWS, drained=False, interrupted=True)
    trial.receive(make, rows=by_second(trial))
    for path in trial.folder.glob("*.arrow"):
        path.unlink()
    (sink,) = latencies_without_verification(trial.resolved, trial.record, None, enough()).sinks.sinks
    (note,) = sink.latencies.latencies.notes
    assert note.startswith("not counted: ")
    assert sink.latencies.latencies.event_time_us is None


def test_each_sink_has_an_even_part_of_the_time_that_is_left() -> None:
    """Else the first of many results would leave nothing to the others."""
    now_s = [10.0]
    budget = Budget(6.0, lambda: now_s[0])
    first = budget.share(3)
    assert not first.spent()
    now_s[0] = 12.0
    assert first.spent()
    assert not budget.share(2).spent()
    now_s[0] = 16.0
    assert budget.spent()
    assert budget.share(1).spent()
