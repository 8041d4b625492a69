"""Keys that are texts, or numbers too large for their type, as 0, 1, 2, ... in the order of their first appearance.

A key only tells things apart, so which number it has is nobody's concern, as long as equal ones have the same in every
column that says the same (the caller and the callee of a call), in whichever file it is.
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
    """The columns, each a file's only one and a text, through which keys are numbered, one column after the other."""

    columns: tuple[File, ...]


@lru_cache(maxsize=4)
def keys(numbering: KeyDictionary) -> pa.Array:
    """The different keys in the order of their numbers."""
    return pc.unique(pa.chunked_array([_texts(file) for file in numbering.columns])).drop_null()


@lru_cache(maxsize=8)
def numbers(file: File, name: str, numbering: KeyDictionary, kind: str) -> pa.Array:
    """The number of each row's key in a column of a file, as Spark's type `kind`; null where it has none."""
    (texts,) = [_texts(each) for each in numbering.columns if (each.path, each.columns[0][0]) == (file.path, name)][:1]
    return pc.index_in(texts, keys(numbering)).cast(arrow_type(kind))


def _texts(file: File) -> pa.Array:
    """An empty key is none, whether it stands in quotes or not."""
    ((name, _),) = file.columns
    texts = rows(file)[name]
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
