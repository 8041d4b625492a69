"""A user's data as a stream: the rows of a file in order, and again from the beginning.

Event n of a stream is row n modulo the number of rows, for any number of partitions. The plan sets event times, so
repeated data still have continuous event times. Times within the data are ordinary content and repeat. The column
that the user names as the data's time continues instead, round by round.

Rules:

- The file must have the columns that the flow reads. Other columns are not read.
- Values of a wrong type and missing values are null, and counted. The application decides what a null means.
- A column without any readable value is refused, unless it is empty and its field is nullable.
- Keys that are texts, or too large for their type, are numbered 0, 1, 2, ... in the order of first appearance. A key
  only identifies a thing, so any number will do. Equal keys get the same number in all columns with the same kind of
  key (caller and callee of a call), also in different files.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.clock import US
from streamgauge.core.errors import InputError, Problem, refuse, require
from streamgauge.core.schema import arrow_type
from streamgauge.loadgen.fields import EventNumbers, FieldSpec, Payload, StreamSpec, column_of_one_partition
from streamgauge.loadgen.random import Partitions, PhiloxBits, key_texts, partitions_of
from streamgauge.loadgen.replay.files import ColumnsError, Content, File, content, digest, no_value, require_data

Numbering = tuple[File, ...]
"""The columns over which keys are numbered, in this order. Each `File` has one text column."""
Numberings = Mapping[str | None, Numbering]
"""By kind of key; a field that is no key has none."""


@lru_cache(maxsize=4)
def keys(numbering: Numbering) -> pa.Array:
    """The distinct keys in the order of their numbers."""
    return pc.unique(pa.chunked_array([_texts(file) for file in numbering])).drop_null()


@lru_cache(maxsize=8)
def numbers(file: File, name: str, numbering: Numbering, kind: str) -> pa.Array:
    """The number of each row's key in a column of a file, as SQL type `kind`; null for rows without a key."""
    (texts,) = [_texts(each) for each in numbering if (each.path, each.columns[0][0]) == (file.path, name)][:1]
    return pc.index_in(texts, keys(numbering)).cast(arrow_type(kind))


def _texts(file: File) -> pa.Array:
    """The texts of a column, with null for empty ones, quoted or not."""
    ((name, _),) = file.columns
    texts = content(file).columns[name]
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


TIMES = {"int": 2**31 - 1, "bigint": 2**63 - 1, "timestamp": 253_402_300_799 * US}
"""Types of the data's time, with the latest time of each; for timestamps, the year 9999."""


@dataclass(frozen=True)
class ReplayedColumn(FieldSpec):
    """A column of a file that replaces the field `like`. With a `numbering`, its texts become numbers.

    `step` is the difference between the values of two successive rounds; 0 except for the data's time.
    """

    file: File
    like: FieldSpec
    numbering: Numbering | None = None
    step: int = 0

    @property
    def sql_type(self) -> str:  # type: ignore[override]
        return self.like.sql_type

    @property
    def nullable(self) -> bool:
        return bool(self.values.null_count)

    @property
    def row_bytes(self) -> float:
        return self.values.nbytes / len(self.values)

    column = column_of_one_partition

    def of_events(self, bits: PhiloxBits, first: int, last: int, numbers: EventNumbers) -> pa.Array:
        rounds, places = np.divmod(numbers(), len(self.values))
        taken = self.values.take(pa.array(places))
        if not self.step:
            return taken
        return pc.add(taken.cast(pa.int64()), pa.array(rounds * self.step)).cast(arrow_type(self.sql_type))

    def partitions_of_rows(self, partitions: int) -> Partitions:
        texts = key_texts(self.values)
        turns = (np.arange(len(texts)) % partitions).astype(np.int16)
        return np.where(texts.is_null(), turns, partitions_of(texts, partitions))

    @property
    def values(self) -> pa.Array:
        """The values, one per row of the file."""
        if self.numbering is not None:
            return numbers(self.file, self.name, self.numbering, self.sql_type)
        return content(self.file).columns[self.name]

    def last_round(self) -> int:
        """The last round (from 0) whose times fit the type."""
        return int((TIMES[self.sql_type] - pc.max(self.values.cast(pa.int64())).as_py()) // self.step)


@dataclass(frozen=True)
class Absent(FieldSpec):
    """A field that the flow does not read, in a replayed stream: null in every event."""

    like: FieldSpec

    @property
    def sql_type(self) -> str:  # type: ignore[override]
        return self.like.sql_type

    @property
    def nullable(self) -> bool:
        return True

    @property
    def row_bytes(self) -> float:
        return self.like.row_bytes

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        return pa.nulls(last - first, arrow_type(self.sql_type))


@dataclass(frozen=True)
class ReplayRequest:
    """A stream and the file to replay in it.

    - `needed`: the fields that the flow reads; None for all.
    - `time`: the field that is the data's time.
    - `digest`: the file's SHA-256 when it was first read.
    """

    stream: StreamSpec
    path: Path
    needed: tuple[str, ...] | None = None
    time: str | None = None
    digest: str | None = None

    @property
    def fields(self) -> tuple[FieldSpec, ...]:
        """The fields that are read from the file; at least one, because the file provides the rows."""
        fields = self.stream.fields
        return tuple(field for field in fields if self.needed is None or field.name in self.needed) or fields[:1]


def recorded(*requests: ReplayRequest) -> tuple[StreamSpec, ...]:
    """The streams with the rows of their files instead of generated ones.

    Text lines fill a stream's only column, which must be a text. CSV, JSON and Parquet files must have the needed
    columns. Files may be compressed by gzip or zstd.

    Raises:
        InputError: a file breaks these rules, or has no value in a column.
        DriverError: it has changed since its `digest` was taken.
    """
    files = [_file(one) for one in requests]
    contents = [_content(one, file) for one, file in zip(requests, files, strict=True)]
    numbered = _numbered(requests, files)
    pairs = zip(requests, contents, strict=True)
    refuse([problem for request, content in pairs for problem in _problems(request, content, numbered)])
    return tuple(_stream(one, file, numbered) for one, file in zip(requests, files, strict=True))


def _file(request: ReplayRequest) -> File:
    is_folder, is_there = request.path.is_dir(), request.digest is not None or request.path.is_file()
    require_data(not is_folder, "must be a file", f"{request.path}, which is a folder", "name one file of it")
    require_data(is_there, "must be an existing file", str(request.path), "--set data=FILE, as seen from this folder")
    columns = tuple((field.name, field.sql_type) for field in request.fields)
    return File(str(request.path.resolve()), request.digest or digest(request.path), columns)


def _content(request: ReplayRequest, file: File) -> Content:
    """The content of a file. For missing keys, the error also proposes a constant column."""
    try:
        return content(file)
    except ColumnsError as error:
        keys = [field.name for field in request.fields if field.name in error.missing and field.key_kind is not None]
        if not keys:
            raise
        (problem,) = error.problems
        constant = f"or add {' and '.join(keys)} with one value, such as 0, in every row, where all rows are of one"
        raise InputError(replace(problem, way_out=f"{problem.way_out}; {constant}")) from None


def _numbered(requests: Sequence[ReplayRequest], files: Sequence[File]) -> Numberings:
    """Kind of key to the numbering of its keys over all its columns, for kinds with keys that are no numbers."""
    columns: dict[str, list[File]] = {}
    not_numeric: set[str] = set()
    for one, file in zip(requests, files, strict=True):
        for field in one.fields:
            if (kind := field.key_kind) is None or field.sql_type not in ("int", "bigint"):
                continue
            columns.setdefault(kind, []).append(replace(file, columns=((field.name, "string"),)))
            not_numeric |= {kind} if _are_no_numbers(content(file), field.name) else set()
    return {kind: tuple(columns[kind]) for kind in not_numeric}


def _are_no_numbers(content: Content, name: str) -> bool:
    """Whether at least half of the keys are no numbers, or some are numbers that are too large."""
    wrong = content.unreadable.get(name)
    return wrong is not None and (bool(wrong.large) or 2 * wrong.count >= content.values(name))


def _problems(request: ReplayRequest, content: Content, numbered: Numberings) -> Iterator[Problem]:
    for field in request.fields:
        column, wrong = content.columns[field.name], content.unreadable.get(field.name)
        if numbered.get(field.key_kind) is not None or column.null_count < len(column):
            continue
        if wrong is not None:
            yield no_value(field.name, field.sql_type, wrong)
        elif not field.nullable:
            rule = f"must have a value in some row of {field.name}, which is what the workload looks at"
            yield Problem("set data", rule, f"{len(column):,} rows without one", "another file")
    if request.time is not None:
        yield from _time_problems(request, request.time)


def _time_problems(request: ReplayRequest, time: str) -> Iterator[Problem]:
    kinds = {
        field.name: "a key" if field.key_kind and field.sql_type != "string" else field.sql_type
        for field in request.stream.fields
    }
    kind = kinds.get(time)
    if kind is None:
        rule, got = f"must be a field of stream {request.stream.name}", f"{time}, and there are {', '.join(kinds)}"
    elif kind == "string":
        rule = "must be a column of numbers or timestamps: a time inside of a text is not moved"
        got = f"{time}, which is a text"
    elif kind not in TIMES:
        rule, got = "must be a column of whole numbers or timestamps that says a time", f"{time}, which is {kind}"
    elif time not in [field.name for field in request.fields]:
        rule, got = "must be a column that the workload reads", time
    else:
        return
    yield Problem("set data.time", rule, got, "leave --set data.time out: the column then repeats with the file")


def _stream(request: ReplayRequest, file: File, numbered: Numberings) -> StreamSpec:
    taken = {
        field.name: ReplayedColumn(field.name, file, field, numbered.get(field.key_kind)) for field in request.fields
    }
    if request.time is not None:
        taken[request.time] = replace(taken[request.time], step=_step(taken[request.time].values))
    fields = tuple(
        # Payload bytes have no meaning, so a file need not have them.
        taken.get(field.name) or (field if isinstance(field, Payload) else Absent(field.name, field))
        for field in request.stream.fields
    )
    return replace(request.stream, fields=fields, key=request.stream.key if request.stream.key in taken else None)


def _step(times: pa.Array) -> int:
    """The span of a file's times plus one mean step, so the first row of a round follows the last one evenly."""
    if times.null_count == len(times):
        return 0
    low, high = pc.min_max(times.cast(pa.int64())).as_py().values()
    span, steps = int(high - low), max(len(times) - times.null_count - 1, 1)
    return span + max(1, round(span / steps))


def replayed_columns(stream: StreamSpec) -> tuple[ReplayedColumn, ...]:
    """The fields of a stream that are columns of a file; empty for generated streams."""
    return tuple(field for field in stream.fields if isinstance(field, ReplayedColumn))


def rows_of(stream: StreamSpec) -> int:
    """The number of rows in the file of a replayed stream."""
    return len(replayed_columns(stream)[0].values)


def require_times(stream: StreamSpec, events: int) -> None:
    """Raises InputError if the data's time exceeds its type within `events` of a replayed stream."""
    for field in replayed_columns(stream):
        rounds = -(-events // rows_of(stream))
        last = field.last_round() if field.step else rounds
        require(
            rounds - 1 <= last,
            "set data.time",
            f"must be a time that {field.sql_type} can say in all {rounds:,} rounds through the file",
            f"{field.name}, which goes on by {field.step:,} a round, for {last + 1:,} rounds",
            "a longer file, a shorter run, or leave --set data.time out",
        )
