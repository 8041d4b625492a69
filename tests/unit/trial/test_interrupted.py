"""trial/interrupted.py: how late the results of a stopped trial were, as far as there was time to count them."""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

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
    NOTHING_COMPARED,
    UNVERIFIED,
    latencies_without_verification,
)
from tests.unit.helpers_answers import PURCHASES, ROWS, START, WINDOWS, Case

BOTH = Flow((*PURCHASES.where("price > 50").sink("dear").sinks, *WINDOWS.sinks))


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Ends the time after so many looks at the clock. Each sink takes one for its part, and one for each batch."""

    def limited(number: int) -> None:
        now = iter([0.0] * number)
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(now, 2.0)))

    return limited


@pytest.fixture
def trial(case: Callable[..., Case]) -> Case:
    """Stopped, of rows alone."""
    return case(ROWS, drained=False, interrupted=True)


@pytest.fixture
def two_sinks(case: Callable[..., Case], make: Any) -> Case:
    """Stopped, with no result of windows."""
    trial = case(BOTH, drained=False, interrupted=True)
    trial.receive(make, dear=by_second(trial, "dear"), windows=[])
    return trial


def counted(trial: Case, folder: RunFolder | None = None, until_s: float = math.inf) -> Any:
    """What there was time to count; `Any`, because figures may be None."""
    return latencies_without_verification(trial.resolved, trial.record, folder, until_s)


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
    result, warnings = counted(trial)
    (sink,) = result.sinks
    spans, times = trial.record.spans, trial.answer().column(EVENT_TIME).to_numpy()
    latency, in_span = sink.latencies.latencies.event_time_us, (times >= spans.measured_from_us)
    in_span &= times < spans.measured_to_us
    assert (latency.count, latency.lower_bounds, sink.rows) == (in_span.sum(), 0, len(times))
    assert latency.min >= 0.99 * US  # the histogram has three digits; each came a second after it was due
    assert sink.latencies.latencies.notes[0] == UNVERIFIED
    assert (sink.verification.judged, sink.verification.sentence) == (False, NOTHING_COMPARED)
    assert (result.verification.judged, warnings) == (False, ())


def test_counting_ends_when_its_time_is_over(trial: Case, make: Any, looks: Callable[[int], None]) -> None:
    """A user waits: what was counted until then stands, and the note says how much of what came that is."""
    tables = by_second(trial)
    trial.receive(make, rows=tables)
    # A batch is committed 2 s after its second begins, so that of second 3 is the first one after the warm-up.
    came = sum(table.num_rows for table in tables[3:])
    looks(5)
    result, _ = counted(trial, until_s=1.0)
    (sink,) = result.sinks
    latencies = sink.latencies.latencies
    assert 0 < latencies.event_time_us.count < came
    (note,) = [note for note in latencies.notes if note.startswith("counted: ")]
    assert f" of {format_count(came)} results" in note


def test_a_sink_without_results_of_the_span_has_no_latency_and_says_so(two_sinks: Case) -> None:
    """Its note is the reason; the other sink's figures stand, and are the ones that are shown."""
    result, _ = counted(two_sinks)
    dear, windows = result.sinks
    assert (dear.name, windows.name, windows.rows) == ("dear", "windows", 0)
    latencies = windows.latencies.latencies
    assert (latencies.event_time_us, latencies.notes) == (None, (NONE_CAME,))
    assert dear.latencies.latencies.event_time_us is not None


def test_results_are_stored_whole(two_sinks: Case, folder: RunFolder) -> None:
    """With those of warm-up and tail, a file for each of several sinks, where any came."""
    _, warnings = counted(two_sinks, folder)
    assert warnings == ()
    assert [path.name for path in folder.path.glob("results*")] == ["results-dear.parquet"]
    assert pq.read_table(folder.path / "results-dear.parquet").num_rows == two_sinks.answer("dear").num_rows


def test_results_that_there_was_no_time_to_store_are_not_there_in_part(
    trial: Case, make: Any, folder: RunFolder, looks: Callable[[int], None]
) -> None:
    """A part would be taken for all there was; a warning says that they lack."""
    tables = by_second(trial)
    trial.receive(make, rows=tables)
    looks(3 + sum(table.num_rows > 0 for table in tables))
    _, warnings = counted(trial, folder, 1.0)
    assert [one.facts for one in warnings] == [{"reason": NO_TIME}]
    assert list(folder.path.glob("*results*")) == []


def test_a_full_disk_takes_nothing_but_the_results(
    trial: Case, make: Any, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The latencies stand, and a warning says why there is no file."""
    monkeypatch.setattr(module, "write_results", Mock(side_effect=OSError("no space left")))
    trial.receive(make, rows=by_second(trial))
    result, warnings = counted(trial, folder)
    assert [one.facts for one in warnings] == [{"reason": "no space left"}]
    assert result.slowest.latencies.effective_count


def test_a_spool_that_cannot_be_read_leaves_the_reason(trial: Case, make: Any) -> None:
    """No latency then, and no end of the run without its figures."""
    trial.receive(make, rows=by_second(trial))
    for path in trial.folder.glob("*.arrow"):
        path.unlink()
    result, _ = counted(trial)
    (sink,) = result.sinks
    (note,) = sink.latencies.latencies.notes
    assert note.startswith("not counted: ")
    assert sink.latencies.latencies.event_time_us is None


def test_each_sink_has_an_even_part_of_the_time_that_is_left(two_sinks: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the first of many results would leave nothing to the others."""
    now, ends = iter([10.0, 12.0]), list[float]()

    def counted_until(*given: Any) -> Any:
        ends.append(given[-1])
        return Mock()

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(now)))
    monkeypatch.setattr(module, "_counted", counted_until)
    counted(two_sinks, until_s=16.0)
    assert ends == [13.0, 16.0]
