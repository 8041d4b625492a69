"""Summary of the user's data in an input: readable rows, and how often the input repeats them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamgauge.loadgen.fields import StreamSpec
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.replay.columns import ReplayedColumn, keys, replayed_columns, rows_of
from streamgauge.loadgen.replay.files import content
from streamgauge.loadgen.replay.text import LeftOut, in_words
from streamgauge.preflight.user_job import UserJob
from streamgauge.results.run import DataColumn, ReplayedData
from streamgauge.workloads.registry import Workload


def replayed_data(plan: Plan, until_us: int) -> tuple[ReplayedData, ...]:
    """The replayed files, with the rows offered before `until_us`."""
    return tuple(
        _data(stream, plan.planned_events(plan.start_us, until_us, number))
        for number, stream in enumerate(plan.streams)
        if replayed_columns(stream)
    )


def _data(stream: StreamSpec, events: int) -> ReplayedData:
    taken, rows = replayed_columns(stream), rows_of(stream)
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
    """Notes on an input: a user job's assumptions and fits, else the summary of `data`."""
    return workload.notes if isinstance(workload, UserJob) else notes_of(data)


def notes_of(data: Sequence[ReplayedData]) -> tuple[str, ...]:
    """`data` in sentences."""
    return tuple(note for one in data for note in _notes(one))


def _notes(data: ReplayedData) -> Iterator[str]:
    if data.left_out:
        yield f"data of {data.stream}: {in_words(LeftOut(data.left_out, data.left_out_no_utf8))}"
    for column in data.columns:
        wrong = [
            *([f"unreadable value: {column.unreadable:,}"] if column.unreadable else []),
            *([f"no value: {column.empty:,}"] if column.empty else []),
        ]
        if wrong:
            null = column.unreadable + column.empty
            yield f"data of {data.stream}: {column.name} is null in {null:,} of {data.rows:,} rows ({'; '.join(wrong)})"
        if column.numbered is not None:
            numbered = f"{column.numbered:,} keys that are not numbers of its type are numbered by first appearance"
            yield f"data of {data.stream}: {column.name}: {numbered}"
    if data.rounds > 1:
        how = f"{data.time} continues from round to round" if data.time else _REPEATED
        rows = "its one row comes" if data.rows == 1 else f"its {data.rows:,} rows come"
        # %.3g would print a thousand as a power of ten.
        times = f"{data.rounds:,.0f}" if data.rounds >= 100 else f"{data.rounds:.3g}"
        yield f"data of {data.stream}: {rows} {times} times; {how}"


_REPEATED = "times in the rows repeat in each round (data.time=COLUMN makes a time column continue)"
