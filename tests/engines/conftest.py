"""What the tests on a real Spark share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streamgauge.engines.spark.engine import SparkEngine
from streamgauge.system.children import Child

START_S = 120.0

Restart = Callable[[SparkEngine], None]


@pytest.fixture
def restart() -> Restart:
    """Kills a started Spark, and starts its queries again from the checkpoints that they left."""

    def kill_and_start(engine: SparkEngine) -> None:
        assert engine._child is not None
        assert engine._scratch is not None
        engine._child.kill()
        private, log = engine._scratch.path, engine._child.log
        environment = {"SPARK_HOME": str(private / "spark-home")}
        job = [str(private / "job.pkl")]
        engine._child = Child("spark", "streamgauge.engines.spark.main", job, log, None, environment)
        engine._child.ask("start", START_S)

    return kill_and_start
