"""The planned input as files: content, bounds, refusals."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.core.clock import US
from streamgauge.core.errors import Interrupted, MachineError
from streamgauge.loadgen import export
from streamgauge.loadgen.export import existing_parts, write_input
from streamgauge.loadgen.fields import Integer, Key, StreamSpec, Text
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from tests.unit.helpers_refusals import assert_refused, problem_of

START = 1_700_000_000_000_000


def plan_of(partitions: int = 2, seed: int = 1) -> Plan:
    streams = (
        StreamSpec("purchases", (Key("user_id", 50), Integer("price", 1, 9)), 0.8),
        StreamSpec("lines", (Text("text", 3),), 0.2),
    )
    return Plan(streams, parse_profile("constant", 1000.0, 10.0), START, 10.0, partitions, seed)


def test_files_hold_the_planned_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each partition's file holds its rows of the span in order, written batch by batch; rows are counted by stream."""
    monkeypatch.setattr(export, "ROWS_MAX", 100)
    plan, low, high = plan_of(), START + US, START + 3 * US
    assert write_input(plan, tmp_path / "new", low, high) == {"purchases": 1600, "lines": 400}
    for stream, spec in enumerate(plan.streams):
        for partition in range(2):
            table = pq.read_table(tmp_path / "new" / spec.name / f"part-{partition}.parquet", partitioning=None)
            first, last = (plan.count_before(stream, partition, t_us) for t_us in (low, high))
            names = [*spec.schema.names, "event_time", "event_id"]
            expected = pa.Table.from_batches([plan.batch(stream, partition, first, last, names)])
            assert table.schema.field("event_time").type == pa.timestamp("us", "UTC")
            assert table.cast(expected.schema).equals(expected)


def test_progress_counts_to_the_whole(tmp_path: Path) -> None:
    """Progress rises, and ends at the number of rows in all."""
    seen: list[tuple[int, int]] = []
    write_input(plan_of(), tmp_path, START, START + US, lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (1000, 1000)


def test_an_empty_span_gives_readable_files(tmp_path: Path) -> None:
    """A span without events gives files without rows."""
    assert write_input(plan_of(), tmp_path, START - US, START) == {"purchases": 0, "lines": 0}
    assert pq.read_table(tmp_path / "lines" / "part-0.parquet").num_rows == 0


@pytest.mark.parametrize("part", ["purchases/part-2.parquet", "ads/part-0.parquet"])
def test_parts_of_another_input_are_not_mixed_in(tmp_path: Path, part: str) -> None:
    """A folder that holds parts beyond this plan's partitions, or other streams, is refused, and left as it is."""
    (tmp_path / part).parent.mkdir()
    (tmp_path / part).touch()
    assert_refused(part, write_input, plan_of(partitions=2), tmp_path, START, START + US)
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.parquet")] == [part]


def stop_after(rows: int) -> Callable[[int, int], None]:
    def stop(done: int, total: int) -> None:
        if done > rows:
            raise KeyboardInterrupt

    return stop


def test_an_input_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    """All of its files, before one is written: whoever stops it has no mixture of two rates or seeds."""
    write_input(plan_of(seed=2), tmp_path, START, START + US)
    assert len(existing_parts(plan_of(), tmp_path)) == 4
    with pytest.raises(Interrupted):
        write_input(plan_of(), tmp_path, START, START + US, stop_after(0))
    assert list(tmp_path.rglob("*.parquet")) == []


def test_a_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    """A file where the folder should be is refused by name, with a way out."""
    (tmp_path / "file").write_text("in the way")
    assert problem_of(write_input, plan_of(), tmp_path / "file", START, START + US).setting == "out"


def test_an_input_that_was_stopped_is_called_incomplete(tmp_path: Path) -> None:
    """Its earlier parts look whole; of the one that was being written nothing stays."""
    with pytest.raises(Interrupted, match="is incomplete"):
        write_input(plan_of(), tmp_path, START, START + US, stop_after(400))
    assert [path.name for path in tmp_path.rglob("part-*")] == ["part-0.parquet"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_a_full_disk_is_an_error_of_the_machine(tmp_path: Path) -> None:
    """A full disk is an error of the machine, and leaves no half file."""
    (tmp_path / "purchases").mkdir()
    partial = tmp_path / "purchases" / "part-0.parquet.partial"
    partial.symlink_to("/dev/full")
    with pytest.raises(MachineError, match="full"):
        write_input(plan_of(), tmp_path, START, START + US)
    assert not partial.is_symlink()
    assert not partial.with_suffix("").exists()
