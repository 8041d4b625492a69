"""Malformed values: wraps any field, and replaces a share of its values with invalid ones."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.errors import Rule, broken, refuse
from streamgauge.core.schema import arrow_type
from streamgauge.loadgen.fields import EventNumbers, FieldSpec
from streamgauge.loadgen.random import PhiloxBits

_OF_COINS = 2**10
"""Added to a field's number for the bits that select malformed values. Streams have fewer fields, and the offsets of
other kinds of field begin at 2**11."""
_NULL_BYTES = 1 / 8


def with_malformed(field: FieldSpec, share: float, *forms: Any) -> FieldSpec:
    """The field with a share of malformed values (0 to 1; for 0 the field itself), see `Malformed`."""
    return Malformed(field.name, field, share, forms) if share else field


@dataclass(frozen=True)
class Malformed(FieldSpec):
    """The field `whole` with a share of its values (above 0, at most 1) replaced by `forms`, equally often.

    A form None is a null. Other fields that depend on this one see the original values of `whole`.
    """

    whole: FieldSpec
    share: float
    forms: tuple[Any, ...]

    def __post_init__(self) -> None:
        is_share = 0 < self.share <= 1
        refuse(
            broken(
                Rule(is_share, f"{self.name}.malformed", "must be a share above 0, up to 1", self.share, "0.001"),
                Rule(self.forms, f"{self.name}.forms", "must be at least one", self.forms, "(None,)"),
            )
        )

    @property
    def sql_type(self) -> str:  # type: ignore[override]
        return self.whole.sql_type

    @property
    def nullable(self) -> bool:
        return self.whole.nullable or None in self.forms

    @property
    def key_kind(self) -> str | None:
        return self.whole.key_kind

    @property
    def row_bytes(self) -> float:
        return self.whole.row_bytes + (_NULL_BYTES if self.nullable and not self.whole.nullable else 0)

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        return self._replaced(self.whole.column(bits, first, last), bits, first, last)

    def of_events(self, bits: PhiloxBits, first: int, last: int, numbers: EventNumbers) -> pa.Array:
        return self._replaced(self.whole.of_events(bits, first, last, numbers), bits, first, last)

    def partition_shares(self, partitions: int) -> npt.NDArray[np.float64] | None:
        """A key that became null may be in any partition. One that became another value would be in a wrong one."""
        return self.whole.partition_shares(partitions) if set(self.forms) == {None} else None

    def partitions_of_rows(self, partitions: int) -> npt.NDArray[np.int16] | None:
        return self.whole.partitions_of_rows(partitions) if set(self.forms) == {None} else None

    def _replaced(self, values: npt.NDArray[Any] | pa.Array, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        column = pa.array(values) if isinstance(values, np.ndarray) else values
        which = self._drawn(bits, first, last)
        if not which.any():
            return column
        for number, form in enumerate(self.forms, 1):
            # This copies texts. replace_with_mask builds them one by one, at three times the cost.
            column = pc.if_else(pa.array(which == number), pa.scalar(form, arrow_type(self.sql_type)), column)
        return column

    def _drawn(self, bits: PhiloxBits, first: int, last: int) -> npt.NDArray[np.int8]:
        """The number of each value's form, from 1; 0 for original values. Shape (last - first,)."""
        which = np.zeros(last - first, np.int8)
        highest = np.uint32(max(round(self.share * 2**32), 1) - 1)
        for part, lanes in replace(bits, field=bits.field + _OF_COINS).blocks(first, last):
            places = np.flatnonzero(lanes <= highest)
            which[places + part.start] = 1 + lanes[places] % len(self.forms)
        return which
