"""Whole numbers as decimal text of one width, blanks before them, four digits at a time out of a table.

Arrow's way, a text for each number that is padded and joined to others, takes several times as long.
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
    """Texts of all groups, as numbers of 32 bits: those after other digits, then those that a number begins with, of
    which zero is written as `zero`.
    """
    within = (f"{number:0{GROUP}d}" for number in range(_SIZE))
    first = (f"{number:{GROUP}d}" for number in range(1, _SIZE))
    return np.frombuffer("".join((*within, zero.rjust(GROUP), *first)).encode(), np.uint32)


_LAST, _BEFORE = _table("0"), _table("")


def write_numbers(numbers: Numbers, rows: Bytes, place: int, width: int) -> None:
    """Writes each number into its row's bytes from `place` to `place + width`, which are blank and hold the longest."""
    end = place + width
    for texts in _groups(numbers):
        begin = max(place, end - GROUP)
        if end - begin == GROUP:
            _words(rows, begin)[:] = texts
        else:
            rows[:, begin:end] = texts.view(np.uint8).reshape(len(rows), GROUP)[:, begin - end :]
        end = begin


def _groups(numbers: Numbers) -> Iterator[npt.NDArray[np.uint32]]:
    """The text of each number's last four digits, of the four before, and so on to the first of the longest."""
    table = _LAST
    while len(numbers) and (table is _LAST or numbers.any()):
        left = numbers // np.uint64(_SIZE)
        group = (numbers - left * np.uint64(_SIZE)).astype(np.intp)
        yield table[group + _SIZE * (left == 0)]
        numbers, table = left, _BEFORE


def _words(rows: Bytes, begin: int) -> npt.NDArray[np.uint32]:
    """Each row's four bytes from `begin`, as a number that can be set at once."""
    return np.ndarray((len(rows),), np.uint32, rows.data, begin, (rows.strides[0],))
