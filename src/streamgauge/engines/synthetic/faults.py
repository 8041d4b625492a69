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
        self.held: list[pa.Table] = []
        """Late rows. Empty it when they have reached the recorder."""
        self.planted_us: list[int] = []

    def apply(self, results: pa.Table) -> pa.Table:
        """The results for the recorder."""
        numbers = np.arange(self._seen + 1, self._seen + 1 + results.num_rows)
        self._seen += results.num_rows
        chosen = numbers % self._every == 0
        if self._fault == "none" or not chosen.any():
            return results
        others, hit = results.filter(pa.array(~chosen)), results.filter(pa.array(chosen))
        self.planted_us += hit.column(EVENT_TIME).to_pylist()
        match self._fault:
            case "drop":
                return others
            case "late":
                self.held.append(hit)
                return others
            case "double":
                return pa.concat_tables([results, hit])
            case "alter":
                return pa.concat_tables([others, self._altered(hit)])
            case "untime":
                return pa.concat_tables([others, hit.drop_columns(EVENT_TIME)], promote_options="default")
        # No window starts one microsecond past a multiple of its slide.
        name, by = (WINDOW_START, 1) if WINDOW_START in hit.column_names else (EVENT_ID, FAR_ID)
        return pa.concat_tables([results, _moved(hit, name, by)])

    def _altered(self, rows: pa.Table) -> pa.Table:
        fixed = {*LINEAGE, WINDOW_START, WINDOW_END, *self._keys}
        name = [each.name for each in rows.schema if each.name not in fixed and _is_number(each.type)][-1]
        return _moved(rows, name, 1)


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def _moved(rows: pa.Table, name: str, by: int) -> pa.Table:
    """The rows with `by` added to a column (to a timestamp: microseconds)."""
    field, column = rows.schema.field(name), rows.column(name)
    plain = column.cast(pa.int64()) if pa.types.is_timestamp(field.type) else column
    moved = pa.array(plain.to_numpy() + by).cast(field.type)
    return rows.set_column(rows.column_names.index(name), field, moved)
