"""Numbers keys that are texts, or too large for their type, as 0, 1, 2, ... in the order of first appearance.

A key only identifies a thing, so any number will do. Equal keys get the same number in all columns with the same kind
of key (caller and callee of a call), also in different files.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.schema import arrow_type
from streamgauge.loadgen.replay.files import File, rows


@dataclass(frozen=True)
class KeyDictionary:
    """The columns over which keys are numbered, in this order. Each `File` has one text column."""

    columns: tuple[File, ...]


@lru_cache(maxsize=4)
def keys(numbering: KeyDictionary) -> pa.Array:
    """The distinct keys in the order of their numbers."""
    return pc.unique(pa.chunked_array([_texts(file) for file in numbering.columns])).drop_null()


@lru_cache(maxsize=8)
def numbers(file: File, name: str, numbering: KeyDictionary, kind: str) -> pa.Array:
    """The number of each row's key in a column of a file, as Spark's type `kind`; null for rows without a key."""
    (texts,) = [_texts(each) for each in numbering.columns if (each.path, each.columns[0][0]) == (file.path, name)][:1]
    return pc.index_in(texts, keys(numbering)).cast(arrow_type(kind))


def _texts(file: File) -> pa.Array:
    """The texts of a column, with null for empty ones, quoted or not."""
    ((name, _),) = file.columns
    texts = rows(file)[name]
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
