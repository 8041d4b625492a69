"""The driver's side of a user job's batch run: Spark's batch mode as the truth for its streaming mode."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamgauge.core.errors import EngineError
from streamgauge.engines.spark.options import defaults, split
from streamgauge.engines.spark.session.environment import environment_of
from streamgauge.engines.spark.session.python_workers import view_of_spark_home
from streamgauge.engines.spark.user_job.batch_main import BatchJob
from streamgauge.engines.spi import BatchAnswer, BatchRequest
from streamgauge.system.child_processes import Child, ChildFailed
from streamgauge.system.machine import cpus

TIMEOUT_S = 3600.0


@contextmanager
def batch_answer(request: BatchRequest) -> Iterator[BatchAnswer]:
    """A process that answers the job by the run's own Spark settings; ended at the end.

    Answers raise EngineError with the engine's, or the user's, own reason.
    """
    own_options, users = split(request.options)
    conf = {
        **defaults(max(2, len(cpus())), local_checkpoint=False),
        "spark.driver.memory": own_options["driver_memory"],
        **users,
    }
    inputs = {name: str(path) for name, path in request.inputs.items()}
    master = f"local[{len(cpus())}]"
    batch_job = BatchJob(request.job, master, conf, inputs, str(request.folder), request.order)
    path = request.folder / "batch.pkl"
    path.write_bytes(pickle.dumps(batch_job))
    environment = environment_of(view_of_spark_home(request.folder / "spark-home"), master)
    module = "streamgauge.engines.spark.user_job.batch_main"
    child = Child("spark batch", module, [str(path)], request.log, None, environment)

    if request.stage is not None:
        request.stage.follow(lambda: child.stage, "starting Spark for the batch run")

    def answer(out: Path, before_us: int | None = None) -> Path:
        try:
            child.ask("answer", TIMEOUT_S, out=str(out), before_us=before_us)
        except ChildFailed as error:
            raise EngineError(f"the job's batch run failed: {error}", str(request.log)) from None
        return out

    try:
        yield answer
    finally:
        child.stop()
