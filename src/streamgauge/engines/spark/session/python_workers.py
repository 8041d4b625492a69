"""Set-up of Spark's Python workers."""

from __future__ import annotations

import gc
import os

VARIABLE, UNCHANGED = "STREAMGAUGE_PYTHON_WORKERS", "spark"
"""The variable by which workers know that they are to be left as Spark has them, and its value then."""
NOTICE = (
    "what a worker has imported is frozen: Spark looks through all of a worker's objects for rings after every task"
)
"""Listed among the settings in force."""
_is_frozen = False


def freeze_gc() -> None:
    """Excludes imported modules from garbage collection, once. Call it in a worker after its imports.

    Spark runs a full collection after every task. PySpark, pandas and Arrow are 77,000 objects, which cost 100 ms in
    each of six workers of every batch.
    """
    global _is_frozen
    if not _is_frozen and os.environ.get(VARIABLE) != UNCHANGED:
        _is_frozen = True
        gc.freeze()
