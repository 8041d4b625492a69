"""The base of processors over the last values of each key."""

from typing import ClassVar

import pyarrow as pa

from streamgauge.dataflow.operators.api import Processor
from streamgauge.dataflow.operators.grouped_arrays import KeyDictionary, Recent, load, save


class OverLastValues(Processor):
    """Keeps the last `window` values of each key; its state is the keys and these values."""

    key: ClassVar[str]
    """The column of the keys."""

    def __init__(self, window: int) -> None:
        self._recent = Recent(window)

    def open(self, schema: pa.Schema) -> None:
        self._keys = KeyDictionary(schema.field(self.key).type)

    def snapshot(self) -> bytes:
        return save(keys=self._keys.keys, **self._recent.state)

    def restore(self, state: bytes) -> None:
        saved = load(state)
        self._keys.restore(saved.pop("keys"))
        self._recent.restore(**saved)
