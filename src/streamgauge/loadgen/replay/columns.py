"""A user's own data as a stream: the rows of a file, one after the other, and from the beginning again.

Event n of a stream is row n modulo the number of rows, whichever generator makes it, and is due when the plan says: so
the data lie on one continuous time line however often they are repeated. Times within the data are content like any
other, and come again; but a column that is named as the data's time goes on, round by round.

Rules. Columns that the flow reads must be there; of the others nothing is taken. A value that is none of its column's
type is null, and so is one that is not there: both are counted, and what a null means is the application's to say. A
column without any value that can be read is refused, unless its field may be null anyway and it has none at all. Keys
that are texts, or too large for their type, are numbered (`numbered`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.clock import US
from streamgauge.core.errors import InputError, Problem
from streamgauge.core.schema import arrow_type
from streamgauge.loadgen.fields import FieldSpec, Payload, StreamSpec
from streamgauge.loadgen.random.philox import PhiloxBits
from streamgauge.loadgen.replay.files import ColumnsError, Content, File, content, digest, no_value, refuse, rows
from streamgauge.loadgen.replay.key_dictionary import KeyDictionary, numbers

TIMES = {"int": 2**31 - 1, "bigint": 2**63 - 1, "timestamp": 253_402_300_799 * US}
"""Types that a time of the data may have, and the last moment that each of them can say; of timestamps, year 9999."""


@dataclass(frozen=True)
class ReplayedColumn(FieldSpec):
    """A column of a file, in the place of the field `like`; its texts as numbers where there is a `numbering`.

    `step` is by how much the values of a round lie above those of the round before it; 0 for all but a time.
    """

    file: File
    like: FieldSpec
    numbering: KeyDictionary | None = None
    step: int = 0

    @property
    def spark_type(self) -> str:  # type: ignore[override]
        return self.like.spark_type

    @property
    def nullable(self) -> bool:
        return bool(self.values.null_count)

    @property
    def row_bytes(self) -> float:
        return self.values.nbytes / len(self.values)

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        return self.of_events(bits, first, last, 1)

    def of_events(self, bits: PhiloxBits, first: int, last: int, partitions: int) -> pa.Array:
        events = np.arange(first, last) * partitions + bits.partition
        rounds, places = np.divmod(events, len(self.values))
        taken = self.values.take(pa.array(places))
        if not self.step:
            return taken
        moved = pc.add(taken.cast(pa.int64()), pa.array(rounds * self.step))
        return moved.cast(arrow_type(self.spark_type))

    @property
    def values(self) -> pa.Array:
        """One for each row of the file."""
        if self.numbering is not None:
            return numbers(self.file, self.name, self.numbering, self.spark_type)
        return rows(self.file)[self.name]

    def last_round(self) -> int:
        """The last round whose times can be said, from 0."""
        latest = pc.max(self.values.cast(pa.int64())).as_py()
        return int((TIMES[self.spark_type] - latest) // self.step)


@dataclass(frozen=True)
class Absent(FieldSpec):
    """A field that the flow does not read, in a stream whose rows are a file's: null in every event."""

    like: FieldSpec

    @property
    def spark_type(self) -> str:  # type: ignore[override]
        return self.like.spark_type

    @property
    def nullable(self) -> bool:
        return True

    @property
    def row_bytes(self) -> float:
        return self.like.row_bytes

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        return pa.nulls(last - first, arrow_type(self.spark_type))


@dataclass(frozen=True)
class ReplayRequest:
    """A stream whose rows shall be a file's.

    `needed` are the fields that the flow reads, None for all; `time` the one that is the data's time; `known` the
    SHA-256 that the file had when it was first looked at.
    """

    stream: StreamSpec
    path: Path
    needed: tuple[str, ...] | None = None
    time: str | None = None
    known: str | None = None

    @property
    def fields(self) -> tuple[FieldSpec, ...]:
        """The fields that are taken of the file; one at least, since rows must come from somewhere."""
        fields = self.stream.fields
        return tuple(field for field in fields if self.needed is None or field.name in self.needed) or fields[:1]


def recorded(*requests: ReplayRequest) -> tuple[StreamSpec, ...]:
    """The streams with the rows of their files in the place of made ones.

    Text lines go into a stream's only column, which is a text; CSV, JSON and Parquet must have the columns that are
    needed. Compressed by gzip or zstd.

    Raises:
        InputError: a file is not like that, or holds no value of a column.
        DriverError: it has been changed since it was `known`.
    """
    files = [_file(one) for one in requests]
    contents = [_content(one, file) for one, file in zip(requests, files, strict=True)]
    numbered = _numbered(requests, files)
    problems = [
        problem
        for request, content in zip(requests, contents, strict=True)
        for problem in _problems(request, content, numbered)
    ]
    if problems:
        raise InputError(problems)
    return tuple(_stream(one, file, numbered) for one, file in zip(requests, files, strict=True))


def _file(request: ReplayRequest) -> File:
    if request.path.is_dir():
        raise refuse("must be a file", f"{request.path}, which is a folder", "name one file of it")
    if request.known is None and not request.path.is_file():
        raise refuse("must be an existing file", str(request.path), "--set data=FILE, as seen from this folder")
    columns = tuple((field.name, field.spark_type) for field in request.fields)
    return File(str(request.path.resolve()), request.known or digest(request.path), columns)


def _content(request: ReplayRequest, file: File) -> Content:
    """InputError as `content` has it; of a missing key it says how all rows can have the same."""
    try:
        return content(file)
    except ColumnsError as error:
        keys = [field.name for field in request.fields if field.name in error.missing and field.tells_apart is not None]
        if not keys:
            raise
        (problem,) = error.problems
        constant = f"or add {' and '.join(keys)} with one value, such as 0, in every row, where all rows are of one"
        raise InputError(replace(problem, way_out=f"{problem.way_out}; {constant}")) from None


def _numbered(requests: Sequence[ReplayRequest], files: Sequence[File]) -> dict[str, KeyDictionary]:
    """What keys tell apart, where they cannot stay what they are, to how its keys are numbered in all columns of it."""
    columns: dict[str, list[File]] = {}
    unlike: set[str] = set()
    for one, file in zip(requests, files, strict=True):
        for field in one.fields:
            if (what := field.tells_apart) is None or field.spark_type not in ("int", "bigint"):
                continue
            columns.setdefault(what, []).append(replace(file, columns=((field.name, "string"),)))
            unlike |= {what} if _are_no_numbers(content(file), field.name) else set()
    return {what: KeyDictionary(tuple(columns[what])) for what in unlike}


def _are_no_numbers(content: Content, name: str) -> bool:
    """Whether keys are names of things: half of them or more are no numbers, or some are numbers that are too large."""
    wrong = content.unreadable.get(name)
    return wrong is not None and (bool(wrong.large) or 2 * wrong.count >= content.values(name))


def _numbering(field: FieldSpec, numbered: Mapping[str, KeyDictionary]) -> KeyDictionary | None:
    return numbered.get(field.tells_apart) if field.tells_apart is not None else None


def _problems(request: ReplayRequest, content: Content, numbered: Mapping[str, KeyDictionary]) -> Iterator[Problem]:
    for field in request.fields:
        column, wrong = content.columns[field.name], content.unreadable.get(field.name)
        if _numbering(field, numbered) is not None or column.null_count < len(column):
            continue
        if wrong is not None:
            yield no_value(field.name, field.spark_type, wrong)
        elif not field.nullable:
            rule = f"must have a value in some row of {field.name}, which is what the workload looks at"
            yield Problem("set data", rule, f"{len(column):,} rows without one", "another file")
    if request.time is not None:
        yield from _time_problems(request, request.time)


def _time_problems(request: ReplayRequest, time: str) -> Iterator[Problem]:
    setting, way_out = "set data.time", "leave data.time out: what it names comes again with each round"
    kinds = {field.name: field for field in request.stream.fields}
    moved = [name for name, field in kinds.items() if field.spark_type in TIMES and field.tells_apart is None]
    if time not in kinds:
        got = f"{time}, and there are {', '.join(kinds)}"
        yield Problem(setting, f"must be a field of stream {request.stream.name}", got, way_out)
    elif kinds[time].spark_type == "string":
        rule = "must be a column of numbers or timestamps: a time inside of a text is not moved"
        yield Problem(setting, rule, f"{time}, which is a text", way_out)
    elif time not in moved:
        what = "a key" if kinds[time].tells_apart is not None else kinds[time].spark_type
        rule = "must be a column of whole numbers or timestamps that says a time"
        yield Problem(setting, rule, f"{time}, which is {what}", way_out)
    elif time not in [field.name for field in request.fields]:
        yield Problem(setting, "must be a column that the workload reads", time, way_out)


def _stream(request: ReplayRequest, file: File, numbered: Mapping[str, KeyDictionary]) -> StreamSpec:
    taken = {
        field.name: ReplayedColumn(field.name, file, field, _numbering(field, numbered)) for field in request.fields
    }
    if request.time is not None:
        taken[request.time] = replace(taken[request.time], step=_step(taken[request.time].values))
    fields = tuple(
        # A payload is there to be carried, and no file says what is in it.
        taken.get(field.name) or (field if isinstance(field, Payload) else Absent(field.name, field))
        for field in request.stream.fields
    )
    return StreamSpec(request.stream.name, fields, request.stream.share)


def _step(times: pa.Array) -> int:
    """The span of a file's times and one mean step: so its first row follows its last one as others follow theirs."""
    if times.null_count == len(times):
        return 0
    low, high = pc.min_max(times.cast(pa.int64())).as_py().values()
    span, steps = int(high - low), max(len(times) - times.null_count - 1, 1)
    return span + max(1, round(span / steps))


def taken_of(stream: StreamSpec) -> tuple[ReplayedColumn, ...]:
    """The fields of a stream that are columns of a file; none of a stream whose rows are made."""
    return tuple(field for field in stream.fields if isinstance(field, ReplayedColumn))


def rows_of(stream: StreamSpec) -> int:
    """How many rows the file of a replayed stream has."""
    return len(taken_of(stream)[0].values)


def require_times(stream: StreamSpec, events: int) -> None:
    """InputError where the data's time would leave its type before all `events` of a replayed stream are made."""
    for field in taken_of(stream):
        rounds = -(-events // rows_of(stream))
        if field.step and rounds - 1 > (last := field.last_round()):
            rule = f"must be a time that {field.spark_type} can say in all {rounds:,} rounds through the file"
            got = f"{field.name}, which goes on by {field.step:,} a round, for {last + 1:,} rounds"
            raise InputError(
                Problem("set data.time", rule, got, "a longer file, a shorter run, or leave data.time out")
            )
