"""A Spark in the process of the tests, for those that need no run around it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def local_spark(cores: int = 1, **more: str) -> Iterator[Any]:
    """A session of its own, ended at the end. Its JVM is not: it is that of every later session in this process too,
    and starts Python workers as the first one said. So all of them say the same, the interpreter of the tests.
    """
    from pyspark.sql import SparkSession

    settings = {"ui.enabled": "false", "sql.session.timeZone": "UTC", "sql.shuffle.partitions": str(cores), **more}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master(f"local[{cores}]")
        for name, value in settings.items():
            builder = builder.config(f"spark.{name}", value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        try:
            yield session
        finally:
            session.stop()
