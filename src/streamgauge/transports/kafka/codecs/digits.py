"""Integers as decimal text of fixed width, padded with spaces, four digits at a time from a table.

Arrow's casts and padding take several times as long.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.uint64]

GROUP = 4
_SIZE = 10**GROUP


def _table(zero: str) -> npt.NDArray[np.uint32]:
    """The texts of all groups of four digits as 32-bit integers, shape (20000,).

    First the groups after other digits, then the leading groups, in which zero is written as `zero`.
    """
    within = (f"{number:0{GROUP}d}" for number in range(_SIZE))
    first = (f"{number:{GROUP}d}" for number in range(1, _SIZE))
    return np.frombuffer("".join((*within, zero.rjust(GROUP), *first)).encode(), np.uint32)


_LAST, _BEFORE = _table("0"), _table("")


def write_numbers(numbers: Numbers, rows: Bytes, position: int, width: int) -> None:
    """Writes each number into its row's bytes from `position` to `position + width`, which are blank."""
    end = position + width
    for texts in _groups(numbers):
        begin = max(position, end - GROUP)
        if end - begin == GROUP:
            _words(rows, begin)[:] = texts
        else:
            rows[:, begin:end] = texts.view(np.uint8).reshape(len(rows), GROUP)[:, begin - end :]
        end = begin


def _groups(numbers: Numbers) -> Iterator[npt.NDArray[np.uint32]]:
    """The texts of each number's last four digits, of the four before, and so on, shape (rows,) each."""
    table = _LAST
    while len(numbers) and (table is _LAST or numbers.any()):
        quotients = numbers // np.uint64(_SIZE)
        group = (numbers - quotients * np.uint64(_SIZE)).astype(np.intp)
        yield table[group + _SIZE * (quotients == 0)]
        numbers, table = quotients, _BEFORE


def _words(rows: Bytes, begin: int) -> npt.NDArray[np.uint32]:
    """A view of each row's four bytes from `begin` as 32-bit integers, shape (rows,)."""
    return np.ndarray((len(rows),), np.uint32, rows.data, begin, (rows.strides[0],))
