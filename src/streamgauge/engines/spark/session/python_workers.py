"""What makes Spark's Python workers fast: imports spared by the garbage collector, and a SPARK_HOME without a zip.

Spark puts `python/lib/pyspark.zip` first on its workers' path, and Python compiles modules of a zip again in every
process. That costs seconds for each of six kinds of workers during the first batches. The installed package has
compiled files, so the view of Spark's home omits the zip.
"""

import gc
import os
import sys
from pathlib import Path

VARIABLE, UNCHANGED = "STREAMGAUGE_PYTHON_WORKERS", "spark"
"""The variable by which workers know that they are to be left as Spark has them, and its value then."""
WORKERS_NOTICE = (
    "what a worker has imported is frozen: Spark looks through all of a worker's objects for rings after every task"
)
"""Listed among the settings in force."""
_frozen_modules = 0
HOME_NOTICE = "a view without pyspark.zip: Python workers of this JVM import the package beside the interpreter"
"""Listed among the settings in force."""


def freeze_gc() -> None:
    """Excludes imported modules from garbage collection. Call it in a worker before every task.

    Spark runs a full collection after every task. PySpark, pandas and Arrow are 77,000 objects, which cost 100 ms in
    each of six workers of every batch. PySpark imports pandas during the first task, so it is frozen with the second.
    """
    global _frozen_modules
    if len(sys.modules) != _frozen_modules and os.environ.get(VARIABLE) != UNCHANGED:
        _frozen_modules = len(sys.modules)
        gc.freeze()


def view_of_spark_home(at: Path) -> Path:
    """Creates a folder of links to the installed Spark without its `python` folder. Returns it."""
    from streamgauge.system.java import installed_spark_home  # not in workers, which import this module too

    at.mkdir(parents=True, exist_ok=True)
    for entry in installed_spark_home().iterdir():
        if entry.name not in ("python", "__pycache__") and entry.suffix != ".py":
            link = at / entry.name
            if not link.exists():
                link.symlink_to(entry)
    return at
