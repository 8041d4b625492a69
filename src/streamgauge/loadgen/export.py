"""Writes the planned input as Parquet files, so that users can check results with their own tools.

Layout: DIR/<stream>/part-<partition>.parquet; columns: the fields, `event_time` (timestamp, us, UTC), `event_id`.
A file gets its name only when it is complete.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.core.errors import InputError, Interrupted, MachineError, Problem, is_full, require
from streamgauge.core.schema import EVENT_ID, EVENT_TIME, arrow_type
from streamgauge.loadgen.plan import BATCH_BYTES_MAX, Plan

Progress = Callable[[int, int], None]
ROWS_MAX = 262_144
"""The most rows of a batch; large rows have smaller batches."""


def write_input(plan: Plan, out: Path, from_us: int, to_us: int, progress: Progress | None = None) -> dict[str, int]:
    """Writes all events with from_us <= event time < to_us. Returns rows by stream name.

    Removes the files of an earlier input first. Memory holds one batch at a time. `progress(rows written, all rows)` is
    called after each batch.

    Raises:
        InputError: the folder cannot be written, or has parts of another input.
        MachineError: the disk is full.
        Interrupted: the user stopped it.
    """
    report = _counting(progress, plan.planned_events(from_us, to_us))
    try:
        _refuse_others(plan, out)
        for spec in plan.streams:
            with _explained(out):
                (out / spec.name).mkdir(parents=True, exist_ok=True)
        for path in existing_parts(plan, out):
            with _explained(path):
                path.unlink()
        rows = {}
        for stream, spec in enumerate(plan.streams):
            parts = range(plan.partitions)
            rows[spec.name] = sum(_write_part(plan, out, stream, part, (from_us, to_us), report) for part in parts)
        return rows
    except KeyboardInterrupt:
        raise Interrupted(
            f"the input in {out} is incomplete because writing it was interrupted\n"
            "  run the same command again: it writes every part anew"
        ) from None


def existing_parts(plan: Plan, out: Path) -> list[Path]:
    """The files of an earlier input, which this one replaces."""
    with _explained(out):
        return [path for path in _parts(plan, out) if path.exists()]


def _parts(plan: Plan, out: Path) -> list[Path]:
    return [_part(plan, out, stream, part) for stream in range(len(plan.streams)) for part in range(plan.partitions)]


def _part(plan: Plan, out: Path, stream: int, partition: int) -> Path:
    return out / plan.streams[stream].name / f"part-{partition}.parquet"


def _refuse_others(plan: Plan, out: Path) -> None:
    """Refuses a folder with other streams, or more partitions, which would mix with those of this input."""
    others = sorted({*out.glob("*/part-*.parquet")} - {*_parts(plan, out)})
    rule = f"{out} must not hold parts of another input"
    require(not others, "out", rule, "".join(map(str, others[:1])), "a new folder")


def _counting(progress: Progress | None, total: int) -> Callable[[int], None]:
    """A function that receives the rows of a batch and reports the sum to `progress`."""
    done = 0

    def report(rows: int) -> None:
        nonlocal done
        done += rows
        if progress is not None:
            progress(done, total)

    return report


def _write_part(
    plan: Plan, out: Path, stream: int, partition: int, span_us: tuple[int, int], report: Callable[[int], None]
) -> int:
    """Writes one partition's file. Returns its rows."""
    fields = plan.streams[stream].schema.to_arrow()
    schema = fields.append(pa.field(EVENT_TIME, arrow_type("timestamp"))).append(pa.field(EVENT_ID, pa.int64()))
    rows = max(min(ROWS_MAX, int(BATCH_BYTES_MAX / plan.streams[stream].row_bytes)), 1)
    first, last = (plan.count_before(stream, partition, t_us) for t_us in span_us)
    path = _part(plan, out, stream, partition)
    partial = path.with_name(path.name + ".partial")
    try:
        with _explained(path):
            with pq.ParquetWriter(partial, schema) as writer:
                for start in range(first, last, rows):
                    batch = plan.batch(stream, partition, start, min(start + rows, last), schema.names)
                    writer.write_batch(batch.cast(schema))
                    report(batch.num_rows)
            os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)  # exists only after an error or Ctrl-C
    return max(last - first, 0)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turns errors of the system at this path into those of the option."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise MachineError(
                f"out: the disk of {path} is full; free some space, or write less with --duration or --rate"
            ) from None
        rule = f"must be a folder that can be written ({error.strerror or error})"
        raise InputError(Problem("out", rule, str(path), "another --out")) from None
