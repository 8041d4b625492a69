"""Usual patterns of keyed processes, on whole batches: keys as numbers, groups of equal ones, the last values of each
key, state as bytes.

They work on NumPy arrays over all keys of an instance; nothing loops over rows, and only `KeyDictionary` over
distinct keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def save(**arrays: pa.Array | NDArray[Any]) -> bytes:
    """Arrays of any length and type as bytes, for a snapshot."""
    columns = {name: array if isinstance(array, pa.Array) else pa.array(array) for name, array in arrays.items()}
    rows = [pa.LargeListArray.from_arrays(pa.array([0, len(one)], pa.int64()), one) for one in columns.values()]
    batch = pa.RecordBatch.from_arrays(rows, names=list(columns))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def load(state: bytes) -> dict[str, pa.Array]:
    """The inverse of `save`."""
    batch = pa.ipc.open_stream(state).read_next_batch()
    return {name: batch.column(name).flatten() for name in batch.schema.names}


class KeyDictionary:
    """Keys of any type as 0, 1, 2, ... in the order of their first meeting; null and NaN are keys as any other."""

    def __init__(self, type_: pa.DataType) -> None:
        self._type, self._codes = type_, dict[Any, int]()

    def of(self, keys: pa.Array) -> Ints:
        """The code of each key, shape (len(keys),)."""
        encoded = pc.dictionary_encode(keys, null_encoding="encode")
        met = [self._codes.setdefault(_one_nan(key), len(self._codes)) for key in encoded.dictionary.to_pylist()]
        return np.array(met, np.int64)[encoded.indices.to_numpy()]

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def keys(self) -> pa.Array:
        """The keys in the order of their codes."""
        return pa.array(list(self._codes), self._type)

    def restore(self, keys: pa.Array) -> None:
        self._codes = {_one_nan(key): code for code, key in enumerate(keys.to_pylist())}


def _one_nan(key: Any) -> Any:
    """The same object for every NaN, which equals nothing, itself neither."""
    return key if key == key else math.nan


class RowKeyDictionary:
    """Keys of several columns as 0, 1, 2, ...: the `KeyDictionary` of each column, then of pairs of their numbers."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._columns = [KeyDictionary(type_) for type_ in types]
        self._pairs = [KeyDictionary(pa.int64()) for _ in types[1:]]

    def of(self, columns: Sequence[pa.Array]) -> Ints:
        """The code of each row, of columns of one length."""
        found, *others = (book.of(column) for book, column in zip(self._columns, columns, strict=True))
        for book, codes in zip(self._pairs, others, strict=True):
            found = book.of(pa.array(found << 32 | codes))
        return found

    def __len__(self) -> int:
        return len((*self._columns, *self._pairs)[-1])

    @property
    def state(self) -> dict[str, pa.Array]:
        """For `save`."""
        return {f"keys_{number}": book.keys for number, book in enumerate((*self._columns, *self._pairs))}

    def restore(self, saved: Mapping[str, pa.Array]) -> None:
        """From what `load` gives; columns of others may be among it."""
        for number, book in enumerate((*self._columns, *self._pairs)):
            book.restore(saved[f"keys_{number}"])


def valid_mask(keys: pa.Array) -> Bools:
    """Which of these are no nulls."""
    found: Bools = pc.is_valid(keys).to_numpy(zero_copy_only=False)
    return found


def group_by_key(codes: Ints) -> Ints:
    """The order that brings equal codes together and keeps the order within each, shape (len(codes),)."""
    # A stable sort of 16-bit numbers is a radix sort, ten times faster than one of 64 bits.
    small = len(codes) > 0 and codes.max() < 2**15
    return np.argsort(codes.astype(np.int16) if small else codes, kind="stable")


def group_starts(*columns: NDArray[Any]) -> Bools:
    """Which of rows that are sorted by `columns` begin a group of equal ones: the first row, and those that differ from
    the one before in any column.
    """
    new = np.zeros(len(columns[0]), np.bool_)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


def groups(*columns: NDArray[Any]) -> tuple[Ints, Ints]:
    """Of rows that are sorted by `columns`: the first row of each group of equal ones, and the group of each row."""
    new = group_starts(*columns)
    return np.flatnonzero(new), np.cumsum(new) - 1


@dataclass(frozen=True)
class GroupedWindows:
    """Kept and new events by key, each key's oldest first, and where the windows by count are among them.

    `order` brings them there (kept ones were before new ones), and `codes` are their keys. Of each new event: the
    window `first:at + 1` of which it is the last, and its `place` among the new ones of its key, from 1. `kept` are
    those that the next windows need.
    """

    order: Ints
    codes: Ints
    at: Ints
    first: Ints
    place: Ints
    kept: Bools


def group_windows(old: Ints, new: Ints, size: int) -> GroupedWindows:
    """Events by key: `old` and `new` are their keys' codes, in order of time; windows are of `size` events at most."""
    codes = np.concatenate((old, new))
    order = group_by_key(codes)
    codes = codes[order]
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    at = places[len(old) :]
    starts, group = groups(codes)
    ends = np.append(starts, len(codes))[1:]
    of_old = np.bincount(old, minlength=int(codes[-1]) + 1 if len(codes) else 0)
    place = at - starts[group[at]] - of_old[new] + 1
    kept = ends[group] - np.arange(len(codes)) <= size
    return GroupedWindows(order, codes, at, np.maximum(starts[group[at]], at - size + 1), place, kept)


def sliding_reduce(
    take: Callable[[Any, Any], Any], values: NDArray[Any], first: Ints, end: Ints, nothing: float
) -> NDArray[Any]:
    """`take` (such as `np.add`) over `values[first:end]` of each window; `nothing` is what it changes nothing with.

    By spans of 1, 2, 4, ... values that end at each place, of which a window is a few: what lies outside a window never
    touches it, so that it does not matter what came before, and no large value is left in later windows.
    """
    length, at = end - first, end - 1
    found = np.full(len(length), nothing, values.dtype)
    spans, step, longest = values, 1, int(length.max(initial=0))
    with np.errstate(over="ignore", invalid="ignore"):
        while step <= longest:
            some = np.flatnonzero(length & step)
            found[some] = take(found[some], spans[at[some]])
            at[some] -= step
            if 2 * step <= longest:
                longer = np.empty_like(spans)
                longer[:step] = spans[:step]
                longer[step:] = take(spans[step:], spans[:-step])
                spans = longer
            step *= 2
    return found


def last_sums_sql(relation: str, by: str, sums: Mapping[str, str], size: int) -> str:
    """DuckDB SQL: the rows of a relation with `_row`, `counted`, how many of the last `size` rows with equal `by` there
    are up to this one, and for each name in `sums` the sum that `Windows.sums` gives of an expression over those.

    DuckDB's own `sum` over such a window adds up in an order of its own. This one adds up as `over` does, so that both
    are the same to the last bit and whatever is decided by them is: of `counted` rows, spans of 1, 2, 4, ... from the
    last row on. The span of a step that reaches beyond the first row of its key is null, and of no window.
    """
    lately = f"OVER (PARTITION BY {by} ORDER BY _row)"
    begun = "".join(f", ({value})::DOUBLE AS span_of_{name}, 0e0 AS {name}" for name, value in sums.items())
    query, step = f"SELECT *, least(row_number() {lately}, {size}) AS counted{begun} FROM {relation}", 1
    while step <= size:
        before, more = f"counted & {step - 1}", f"counted & {step} > 0"
        columns = ", ".join(
            f"CASE WHEN {more} THEN {name} + lag(span_of_{name}, {before}) {lately} ELSE {name} END AS {name},"
            f" span_of_{name} + lag(span_of_{name}, {step}) {lately} AS span_of_{name}"
            for name in sums
        )
        query, step = f"SELECT * REPLACE ({columns}) FROM ({query})", 2 * step
    return query


@dataclass(frozen=True)
class Windows:
    """Of each new value, the window of its key's last values that it ends: `values[first:end]`."""

    values: Floats
    first: Ints
    end: Ints

    @property
    def counts(self) -> Ints:
        return self.end - self.first

    @property
    def sums(self) -> Floats:
        """Each of its own window's values alone, wherever batches end; `last_sums_sql` gives the same ones."""
        return sliding_reduce(np.add, self.values, self.first, self.end, 0.0)


class Recent:
    """The last `size` finite values of each key: windows by count."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._codes, self._values = np.empty(0, np.int64), np.empty(0, np.float64)

    def add(self, codes: Ints, values: Floats) -> Windows:
        """Takes new values, oldest first; gives the window that ends at each of them (it included)."""
        windows = group_windows(self._codes, codes, self._size)
        values = np.concatenate((self._values, values))[windows.order]
        self._codes, self._values = windows.codes[windows.kept], values[windows.kept]
        return Windows(values, windows.first, windows.at + 1)

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """For `save`: the code of each kept value, and the values."""
        return {"codes": self._codes, "values": self._values}

    def restore(self, codes: pa.Array, values: pa.Array) -> None:
        self._codes, self._values = codes.to_numpy(), values.to_numpy()
