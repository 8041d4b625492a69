"""verification/received_results.py: what the recorder spooled, and the results that are kept of it."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.core.clock import US
from streamgauge.core.units import FAR_FUTURE_US, FAR_PAST_US
from streamgauge.metrics.event_latency import ENGINE_BATCH
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.verification.received_results import ReceivedResults, write_results

TIMES = pa.array([1_000_000, 2_000_000])
ROWS = pa.RecordBatch.from_pydict({"event_time": TIMES, "emission_time": TIMES, "value": pa.array([7, 8])})


def test_results_are_kept_with_times_as_timestamps(tmp_path: Path) -> None:
    """Microseconds since 1970 become timestamps with a zone; other columns stay as they are, and so does the order."""
    received: Any = SimpleNamespace(schema=ROWS.schema, batches=lambda: iter([ROWS, ROWS]))
    write_results(received, tmp_path / "results.parquet")
    kept = pq.read_table(tmp_path / "results.parquet")
    assert kept.schema.types[:2] == [pa.timestamp("us", "UTC")] * 2
    assert kept.column("emission_time").cast(pa.int64()).to_pylist() == TIMES.to_pylist() * 2
    assert kept.column("value").to_pylist() == [7, 8, 7, 8]
    assert [path.name for path in tmp_path.iterdir()] == ["results.parquet"]


def spooled(make: Any, folder: Path, times_us: dict[int, list[int | None]], earlier_trials: bool = True) -> TrialRecord:
    """A trial of one batch a second whose batches gave rows with these event times."""
    record: TrialRecord = make.story().record(earlier_trials=earlier_trials)
    for batch, times in times_us.items():
        table = pa.table({"event_time": pa.array(times, pa.int64())})
        path = folder / f"{batch}.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as spool:
            spool.write_table(table)
        place = next(n for n, commit in enumerate(record.trial_log.commits) if commit.batch == batch)
        record.trial_log.commits[place] = make.commit(
            batch, record.trial_log.commits[place].committed_us, paths=[str(path)]
        )
    return record


@pytest.mark.parametrize("earlier_trials", [False, True])
def test_a_result_without_an_event_time_lies_in_one_slice(make: Any, tmp_path: Path, earlier_trials: bool) -> None:
    """The one of the far past, also where it comes with what an earlier trial left: its time claims nothing of that."""
    start = make.start
    times: dict[int, list[int | None]] = {0: [start, None, start + 5 * US], 1: [None, None], 2: [start + US, start]}
    received = ReceivedResults(spooled(make, tmp_path, times, earlier_trials))
    borders = [FAR_PAST_US, start, start + 5 * US, FAR_FUTURE_US]
    slices = [received.table(low, high).column("event_time").to_pylist() for low, high in pairwise(borders)]
    assert slices == [[None] * 3, [start, start + US, start], [start + 5 * US]]
    assert received.table().num_rows == 7
    assert received.table().column("event_time").null_count == 3


def test_windows_that_an_earlier_trial_left_open_are_not_this_trials(make: Any, tmp_path: Path) -> None:
    """They come with the first batch that read this trial's events, or with the one after it."""
    old, own = make.start - US, make.start + US
    record = spooled(make, tmp_path, {0: [old, own], 1: [old, own]})
    assert ReceivedResults(record).table().column("event_time").to_pylist() == [own, own]
    fresh = spooled(make, tmp_path, {0: [old, own], 1: [old, own]}, earlier_trials=False)
    assert ReceivedResults(fresh).table().num_rows == 4


def test_rows_say_which_engine_batch_gave_them(make: Any, tmp_path: Path) -> None:
    """So updates can be counted by it; of each file, whole or in part."""
    record = spooled(make, tmp_path, {0: [make.start + US], 3: [make.start - US, make.start + US]})
    for low in (FAR_PAST_US, make.start):
        named = [(batch.schema.metadata or {})[ENGINE_BATCH] for batch in ReceivedResults(record).batches(low)]
        assert named == [b"/0", b"/3"]


def test_rows_that_claim_an_earlier_time_in_a_later_batch_are_judged(make: Any, tmp_path: Path) -> None:
    """Windows of an earlier trial emitted again, invented rows, and rows of an outer join that have no time (0)."""
    old, own = make.start - US, make.start + US
    record = spooled(make, tmp_path, {1: [old, own], 2: [old, own], 7: [0, own]})
    assert sorted(ReceivedResults(record).table().column("event_time").to_pylist()) == [0, old, own, own, own]
    assert ReceivedResults(record).table(FAR_PAST_US, make.start).num_rows == 2


@pytest.mark.parametrize(("quiet", "kept"), [(0, 6), (2, 4), (20, 0)])
def test_a_watermark_moves_once_every_stream_has_brought_events(
    make: Any, tmp_path: Path, quiet: int, kept: int
) -> None:
    """So long no window of the earlier trial can close: here the second stream is silent in the first batches."""
    record = spooled(make, tmp_path, {batch: [make.start - US] for batch in range(8)})
    reads = make.story(plan=make.plan(streams=2)).trial_log().deliveries
    record.trial_log.deliveries = [
        [replace(part, events=0) if part.stream == "ads" and part.batch < quiet else part for part in log]
        for log in reads
    ]
    assert sum(batch.num_rows for batch in ReceivedResults(record).batches()) == kept
