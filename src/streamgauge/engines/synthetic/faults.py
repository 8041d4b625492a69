"""Plants faults in results between the engine and the recorder.

Every `every`-th result gets the fault. `planted_us` has the event time of each affected row.
"""

import numpy as np
import pyarrow as pa

from streamgauge.core.schema import EVENT_ID, EVENT_TIME, LINEAGE, WINDOW_END, WINDOW_START

FAR_ID = 2**42
"""Added to an event's id, it gives an id that no event has."""


class Faults:
    """Applies one kind of fault. It does not change the columns `keys`."""

    def __init__(self, fault: str, every: int, keys: tuple[str, ...] = ()) -> None:
        self._fault, self._every, self._keys = fault, every, keys
        self._seen = 0
        self._held: list[pa.Table] = []
        self.planted_us: list[int] = []

    def apply(self, results: pa.Table) -> pa.Table:
        """The results for the recorder."""
        chosen = self._choose(results)
        if chosen is not None:
            self.planted_us += results.column(EVENT_TIME).filter(chosen).to_pylist()
            results = self._injected(results, chosen)
        return results

    def held(self) -> pa.Table:
        """The rows held back until `released` is called."""
        return pa.concat_tables(self._held)

    def released(self) -> None:
        """Call it when the rows held back have reached the recorder."""
        self._held = []

    @property
    def holds(self) -> bool:
        return bool(self._held)

    def _choose(self, results: pa.Table) -> pa.Array | None:
        numbers = np.arange(self._seen + 1, self._seen + 1 + results.num_rows)
        self._seen += results.num_rows
        chosen = numbers % self._every == 0
        return pa.array(chosen) if self._fault != "none" and chosen.any() else None

    def _injected(self, results: pa.Table, chosen: pa.Array) -> pa.Table:
        others = pa.array(~chosen.to_numpy(zero_copy_only=False))
        match self._fault:
            case "drop":
                return results.filter(others)
            case "late":
                self._held.append(results.filter(chosen))
                return results.filter(others)
            case "double":
                return pa.concat_tables([results, results.filter(chosen)])
            case "alter":
                return pa.concat_tables([results.filter(others), self._altered(results.filter(chosen))])
            case "untime":
                return pa.concat_tables([results.filter(others), _without_event_time(results.filter(chosen))])
        return pa.concat_tables([results, self._invented(results.filter(chosen))])

    def _altered(self, rows: pa.Table) -> pa.Table:
        fixed = {*LINEAGE, WINDOW_START, WINDOW_END, *self._keys}
        name = [each.name for each in rows.schema if each.name not in fixed and _is_number(each.type)][-1]
        return _moved(rows, name, 1)

    def _invented(self, rows: pa.Table) -> pa.Table:
        # No window starts one microsecond past a multiple of its slide.
        windowed = WINDOW_START in rows.column_names
        return _moved(rows, WINDOW_START, 1) if windowed else _moved(rows, EVENT_ID, FAR_ID)


def _without_event_time(rows: pa.Table) -> pa.Table:
    index = rows.schema.get_field_index(EVENT_TIME)
    field = rows.schema.field(index)
    return rows.set_column(index, field, pa.nulls(rows.num_rows, field.type))


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def _moved(rows: pa.Table, name: str, by: int) -> pa.Table:
    """The rows with `by` added to a column (to a timestamp: microseconds)."""
    index = rows.schema.get_field_index(name)
    field = rows.schema.field(index)
    is_timestamp = pa.types.is_timestamp(field.type)
    column = rows.column(index).cast(pa.int64()) if is_timestamp else rows.column(index)
    moved = pa.array(column.to_numpy() + by).cast(field.type)
    return rows.set_column(index, field, moved)
