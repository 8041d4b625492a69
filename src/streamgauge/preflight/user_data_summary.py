"""What is said of the user's own data in an input: how much of a file could be taken, and how often it came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamgauge.loadgen.fields import StreamSpec
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.replay.columns import ReplayedColumn, rows_of, taken_of
from streamgauge.loadgen.replay.files import content
from streamgauge.loadgen.replay.key_dictionary import keys
from streamgauge.loadgen.replay.text import LeftOut, in_words
from streamgauge.preflight.user_job import UserJob
from streamgauge.results.run import DataColumn, ReplayedData
from streamgauge.workloads.registry import Workload


def replayed_data(plan: Plan, until_us: int) -> tuple[ReplayedData, ...]:
    """The files in the place of made rows, with what was offered of them before `until_us`."""
    return tuple(
        _data(stream, plan.planned_events(plan.start_us, until_us, number))
        for number, stream in enumerate(plan.streams)
        if taken_of(stream)
    )


def _data(stream: StreamSpec, events: int) -> ReplayedData:
    taken, rows = taken_of(stream), rows_of(stream)
    file = taken[0].file
    return ReplayedData(
        stream=stream.name,
        file=file.path,
        sha256=file.digest,
        rows=rows,
        left_out=content(file).left_out.lines,
        left_out_no_utf8=content(file).left_out.no_utf8,
        rounds=events / rows,
        time=next((field.name for field in taken if field.step), None),
        columns=tuple(map(_column, taken)),
    )


def _column(field: ReplayedColumn) -> DataColumn:
    if field.numbering is not None:
        numbered = len(keys(field.numbering))
        return DataColumn(name=field.name, unreadable=0, empty=field.values.null_count, numbered=numbered)
    wrong = content(field.file).unreadable.get(field.name)
    unreadable = wrong.count if wrong is not None else 0
    return DataColumn(name=field.name, unreadable=unreadable, empty=field.values.null_count - unreadable)


def input_notes(workload: Workload, data: Sequence[ReplayedData]) -> tuple[str, ...]:
    """What is to be known of an input: what an own job's file assumed and fitted, else how much of `data` is in it."""
    return workload.notes if isinstance(workload, UserJob) else notes_of(data)


def notes_of(data: Sequence[ReplayedData]) -> tuple[str, ...]:
    """What `data` says, in words."""
    return tuple(note for one in data for note in _notes(one))


def _notes(data: ReplayedData) -> Iterator[str]:
    if data.left_out:
        yield f"data of {data.stream}: {in_words(LeftOut(data.left_out, data.left_out_no_utf8))}"
    for column in data.columns:
        wrong = [
            *([f"a value that cannot be read: {column.unreadable:,}"] if column.unreadable else []),
            *([f"no value: {column.empty:,}"] if column.empty else []),
        ]
        if wrong:
            null = column.unreadable + column.empty
            yield f"data of {data.stream}: {column.name} is null in {null:,} of {data.rows:,} rows ({'; '.join(wrong)})"
        if column.numbered is not None:
            said = f"{column.numbered:,} keys that are no numbers of its type are numbered by first appearance"
            yield f"data of {data.stream}: {column.name}: {said}"
    if data.rounds > 1:
        how = f"{data.time} goes on from round to round" if data.time else _REPEATED
        rows = "its one row comes" if data.rows == 1 else f"its {data.rows:,} rows come"
        # Never in powers of ten, which 3 digits of a thousand would be.
        times = f"{data.rounds:,.0f}" if data.rounds >= 100 else f"{data.rounds:.3g}"
        yield f"data of {data.stream}: {rows} {times} times; {how}"


_REPEATED = "times that stand in them, if any do, come again in each round (data.time=COLUMN moves a column on)"
