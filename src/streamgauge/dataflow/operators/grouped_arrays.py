"""Helpers for keyed processes: keys as codes, groups of equal keys, the last values of each key, state as bytes.

All work on NumPy arrays over all keys of an instance. No helper loops over rows; `KeyDictionary` loops over distinct
keys.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamgauge.core.arrays import Bools, Floats, Int64s


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
    """Codes 0, 1, 2, ... for keys of any type, in order of first appearance. Null and NaN are keys too."""

    def __init__(self, type_: pa.DataType) -> None:
        self._type, self._codes = type_, dict[Any, int]()

    def encode(self, keys: pa.Array) -> Int64s:
        """The code of each key, shape (len(keys),)."""
        encoded = pc.dictionary_encode(keys, null_encoding="encode")
        codes = [self._codes.setdefault(_one_nan(key), len(self._codes)) for key in encoded.dictionary.to_pylist()]
        return np.array(codes, np.int64)[encoded.indices.to_numpy()]

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def keys(self) -> pa.Array:
        """The keys in the order of their codes."""
        return pa.array(list(self._codes), self._type)

    def restore(self, keys: pa.Array) -> None:
        self._codes = {_one_nan(key): code for code, key in enumerate(keys.to_pylist())}

    def __getstate__(self) -> tuple[pa.DataType, pa.Array]:
        return self._type, self.keys

    def __setstate__(self, state: tuple[pa.DataType, pa.Array]) -> None:
        self._type, keys = state
        self.restore(keys)  # a pickled NaN would be another key than the next one


def _one_nan(key: Any) -> Any:
    """One object for every NaN, because NaN does not equal itself."""
    return key if key == key else math.nan


class RowKeyDictionary:
    """Codes for keys of several columns: a `KeyDictionary` per column, then one per pair of codes."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._columns = [KeyDictionary(type_) for type_ in types]
        self._pairs = [KeyDictionary(pa.int64()) for _ in types[1:]]

    def encode(self, columns: Sequence[pa.Array]) -> Int64s:
        """The code of each row, shape (rows,); all columns have the same length."""
        row_codes, *rest = (book.encode(column) for book, column in zip(self._columns, columns, strict=True))
        for book, codes in zip(self._pairs, rest, strict=True):
            row_codes = book.encode(pa.array(row_codes << 32 | codes))
        return row_codes

    def __len__(self) -> int:
        return len((*self._columns, *self._pairs)[-1])


def valid_mask(keys: pa.Array) -> Bools:
    """Which of these are no nulls."""
    return np.asarray(pc.is_valid(keys).to_numpy(zero_copy_only=False))


def group_by_key(codes: Int64s) -> Int64s:
    """The order that brings equal codes together and keeps the order within each, shape (len(codes),)."""
    # A stable sort of 16-bit numbers is a radix sort, ten times faster than one of 64 bits.
    small = len(codes) > 0 and codes.max() < 2**15
    return np.argsort(codes.astype(np.int16) if small else codes, kind="stable")


def group_starts(*columns: NDArray[Any]) -> Bools:
    """Mask of the rows that start a group of equal rows, shape (rows,). The rows are sorted by `columns`."""
    new = np.zeros(len(columns[0]), np.bool_)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


def groups(*columns: NDArray[Any]) -> tuple[Int64s, Int64s]:
    """(first row of each group, group of each row), for rows sorted by `columns`."""
    new = group_starts(*columns)
    return np.flatnonzero(new), np.cumsum(new) - 1


@dataclass(frozen=True)
class GroupedWindows:
    """Stored and new events sorted by key, oldest first, and the count windows among them.

    - `order`: the permutation from (stored, new) to this order. `codes`: the key codes in it.
    - `first`, `at`: for each new event, the window `first:at + 1` that it ends.
    - `ordinal`: its number among the new events of its key, from 1.
    - `retained`: mask of the events that later windows need.
    """

    order: Int64s
    codes: Int64s
    at: Int64s
    first: Int64s
    ordinal: Int64s
    retained: Bools


def group_windows(old: Int64s, new: Int64s, size: int) -> GroupedWindows:
    """Count windows of at most `size` events. `old` and `new` are key codes of stored and new events in time order."""
    codes = np.concatenate((old, new))
    order = group_by_key(codes)
    codes = codes[order]
    positions = np.empty(len(order), np.int64)
    positions[order] = np.arange(len(order))
    at = positions[len(old) :]
    starts, group = groups(codes)
    ends = np.append(starts, len(codes))[1:]
    of_old = np.bincount(old, minlength=int(codes[-1]) + 1 if len(codes) else 0)
    ordinal = at - starts[group[at]] - of_old[new] + 1
    retained = ends[group] - np.arange(len(codes)) <= size
    return GroupedWindows(order, codes, at, np.maximum(starts[group[at]], at - size + 1), ordinal, retained)


def sliding_reduce(
    take: Callable[[Any, Any], Any], values: NDArray[Any], first: Int64s, end: Int64s, identity: float
) -> NDArray[Any]:
    """Reduces `values[first:end]` of each window with `take` (such as `np.add`), whose identity element is `identity`.

    Each window is a union of spans of 1, 2, 4, ... values. Values outside a window never affect it, unlike differences
    of running sums, where a large value would leave rounding errors in later windows.
    """
    length, at = end - first, end - 1
    reduced = np.full(len(length), identity, values.dtype)
    spans, step, longest = values, 1, int(length.max(initial=0))
    with np.errstate(over="ignore", invalid="ignore"):
        while step <= longest:
            with_step = np.flatnonzero(length & step)
            reduced[with_step] = take(reduced[with_step], spans[at[with_step]])
            at[with_step] -= step
            if 2 * step <= longest:
                longer = np.empty_like(spans)
                longer[:step] = spans[:step]
                longer[step:] = take(spans[step:], spans[:-step])
                spans = longer
            step *= 2
    return reduced


def last_sums_sql(relation: str, by: str, sums: Mapping[str, str], size: int) -> str:
    """DuckDB SQL for the sums that `Windows.sums` gives, over the last `size` rows with equal `by`.

    Adds to each row of `relation` (which has `_row`) the column `counted`, the number of rows in its window, and one
    sum per name in `sums` (name to expression). DuckDB's `sum` adds in an unspecified order. This query adds spans of
    1, 2, 4, ... rows from the last row backwards, so both results are equal to the last bit.
    A span that would start before the key's first row is null, and belongs to no window.
    """
    over = f"OVER (PARTITION BY {by} ORDER BY _row)"
    initial = "".join(f", ({value})::DOUBLE AS span_of_{name}, 0e0 AS {name}" for name, value in sums.items())
    query, step = f"SELECT *, least(row_number() {over}, {size}) AS counted{initial} FROM {relation}", 1
    while step <= size:
        before, bit_set = f"counted & {step - 1}", f"counted & {step} > 0"
        columns = ", ".join(
            f"CASE WHEN {bit_set} THEN {name} + lag(span_of_{name}, {before}) {over} ELSE {name} END AS {name},"
            f" span_of_{name} + lag(span_of_{name}, {step}) {over} AS span_of_{name}"
            for name in sums
        )
        query, step = f"SELECT * REPLACE ({columns}) FROM ({query})", 2 * step
    return query


@dataclass(frozen=True)
class Windows:
    """For each new value, the window of its key's last values that it ends: `values[first:end]`."""

    values: Floats
    first: Int64s
    end: Int64s

    @property
    def counts(self) -> Int64s:
        return self.end - self.first

    @property
    def sums(self) -> Floats:
        """Sums per window, independent of where batches end. `last_sums_sql` gives the same values."""
        return sliding_reduce(np.add, self.values, self.first, self.end, 0.0)


class Recent:
    """Count windows over the last `size` finite values of each key."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._codes, self._values = np.empty(0, np.int64), np.empty(0, np.float64)

    def add(self, codes: Int64s, values: Floats) -> Windows:
        """Adds new values, oldest first. Returns the window that ends at each of them (inclusive)."""
        windows = group_windows(self._codes, codes, self._size)
        values = np.concatenate((self._values, values))[windows.order]
        self._codes, self._values = windows.codes[windows.retained], values[windows.retained]
        return Windows(values, windows.first, windows.at + 1)


def counts_so_far(before: Int64s, keys: int, codes: Int64s, order: Int64s, counts: Bools) -> tuple[Int64s, Int64s]:
    """The counting rows of each of `keys` keys in total, and for each row those of its key so far.

    `before`: the totals before the batch, for the keys known then; `order` groups equal `codes`.
    """
    before = np.concatenate((before, np.zeros(keys - len(before), np.int64)))
    sorted_codes, sorted_counts = codes[order], counts[order].astype(np.int64)
    cumulative = np.cumsum(sorted_counts)
    starts, key_of = groups(sorted_codes)
    of_others = (cumulative - sorted_counts)[starts][key_of]
    so_far = np.empty(len(order), np.int64)
    so_far[order] = before[sorted_codes] + cumulative - of_others
    return before + np.bincount(codes[counts], minlength=keys), so_far
