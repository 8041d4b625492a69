"""The base of processors over the last values of each key."""

from typing import ClassVar

import pyarrow as pa

from streamgauge.dataflow.operators.api import StateInAttributes
from streamgauge.dataflow.operators.grouped_arrays import KeyDictionary, Recent


class OverLastValues(StateInAttributes):
    """Keeps the last `window` values of each key."""

    key: ClassVar[str]
    """The column of the keys."""

    def __init__(self, window: int) -> None:
        self._recent = Recent(window)

    def open(self, schema: pa.Schema) -> None:
        self._keys = KeyDictionary(schema.field(self.key).type)
