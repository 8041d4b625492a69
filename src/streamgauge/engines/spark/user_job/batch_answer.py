"""The driver's side of a user job's batch run: Spark's batch mode as the truth for its streaming mode."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamgauge.core.errors import EngineError
from streamgauge.core.lineage_columns import EVENT_TIME
from streamgauge.core.progress_step import Stage
from streamgauge.dataflow.nodes import UserJobNode
from streamgauge.engines.spark.options import defaults, split
from streamgauge.engines.spark.session.environment import environment_of
from streamgauge.engines.spark.session.spark_home import view_of_spark_home
from streamgauge.engines.spark.user_job.batch_main import BatchJob
from streamgauge.engines.spi import BatchAnswer
from streamgauge.system.child_processes import Child, ChildFailed
from streamgauge.system.machine import cpus

TIMEOUT_S = 3600.0


@contextmanager
def batch_answer(
    job: UserJobNode,
    inputs: dict[str, Path],
    options: dict[str, str],
    folder: Path,
    log: Path,
    stage: Stage | None = None,
    order: str = EVENT_TIME,
) -> Iterator[BatchAnswer]:
    """A process that answers `job` over Parquet files, by the run's own Spark settings; ended at the end.

    `order`: the column by which parts of the input are taken. `stage` says what that process does. Answers raise
    EngineError with the engine's, or the user's, own reason.
    """
    own_options, users = split(options)
    conf = {
        **defaults(max(2, len(cpus())), local_checkpoint=False),
        "spark.driver.memory": own_options["driver_memory"],
        **users,
    }
    batch_job = BatchJob(
        job, f"local[{len(cpus())}]", conf, {name: str(path) for name, path in inputs.items()}, str(folder),
        order,
    )  # fmt: skip
    path = folder / "batch.pkl"
    path.write_bytes(pickle.dumps(batch_job))
    environment = environment_of(view_of_spark_home(folder / "spark-home"), batch_job.master)
    child = Child("spark batch", "streamgauge.engines.spark.user_job.batch_main", [str(path)], log, None, environment)

    if stage is not None:
        stage.follow(lambda: child.stage, "starting Spark for the batch run")

    def answer(out: Path, before_us: int | None = None) -> Path:
        try:
            child.ask("answer", TIMEOUT_S, out=str(out), before_us=before_us)
        except ChildFailed as error:
            raise EngineError(f"the job's batch run failed: {error}", str(log)) from None
        return out

    try:
        yield answer
    finally:
        child.stop()
