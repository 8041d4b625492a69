"""A Spark session in this process: for the stream under test, and for the batch run that answers an own job."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any


def open_session(master: str, conf: dict[str, str], folder: Path) -> Any:
    """A session with this configuration; workers run this very Python. `folder` takes what other machines need."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).appName("streamgauge")
    for name, value in conf.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("WARN")
    if not master.startswith("local"):
        session.sparkContext.addPyFile(_own_code(folder))
    return session


def _own_code(folder: Path) -> str:
    """streamgauge as a zip for executors on other machines."""
    import streamgauge

    package = Path(streamgauge.__file__).parent
    return shutil.make_archive(str(folder / "streamgauge"), "zip", package.parent, package.name)
