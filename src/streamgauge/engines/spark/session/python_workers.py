"""What our code does to the Python workers of Spark that run it."""

from __future__ import annotations

import gc
import os

VARIABLE, UNCHANGED = "STREAMGAUGE_PYTHON_WORKERS", "spark"
"""The variable by which workers know that they are to be left as Spark has them, and its value then."""
NOTICE = (
    "what a worker has imported is frozen: Spark looks through all of a worker's objects for rings after every task"
)
"""How it stands among the settings in force."""
_settled = False


def freeze_gc() -> None:
    """Called in a worker when what it works with is imported; frees that from Python's collector, once.

    Spark has it look through every object after every task. PySpark, pandas and Arrow are 77,000 objects and
    100 ms, in each of six workers of every batch; those that a task leaves are a few.
    """
    global _settled
    if not _settled and os.environ.get(VARIABLE) != UNCHANGED:
        _settled = True
        gc.freeze()
