"""A user job's batch run: Spark's batch mode as the truth for its streaming mode.

`batch_answer` is the driver's side. This module is also the process that it starts: the same function, run by Spark in
batch over the whole input.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamgauge.core.errors import EngineError, InputError
from streamgauge.core.schema import EVENT_TIME
from streamgauge.engines.spark.launch import serve_job, spark_process
from streamgauge.engines.spark.options import defaults, split
from streamgauge.engines.spark.session.session import open_session
from streamgauge.engines.spark.user_job.pyspark_job import load
from streamgauge.engines.spi import BatchAnswer, BatchRequest
from streamgauge.system.child_processes import ChildFailed, Handlers, announce
from streamgauge.system.cpu_pinning import cpus
from streamgauge.system.user_code import first_line

TIMEOUT_S = 3600.0


@contextmanager
def batch_answer(request: BatchRequest) -> Iterator[BatchAnswer]:
    """A process that answers the job by the run's own Spark settings; ended at the end.

    Answers raise EngineError with the engine's, or the user's, own reason.
    """
    # Its stage belongs to the driver's process.
    child = spark_process(__name__, replace(request, stage=None), request.folder, request.log, name="spark batch")
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


class BatchAnswerJob:
    """One session; each answer is a Parquet folder."""

    def __init__(self, request: BatchRequest) -> None:
        self._request = request
        self._native = load(request.job)
        self._session: Any = None
        self._answers = 0

    def answer(self, out: str, before_us: int | None = None) -> None:
        """Writes the job's results for the input whose `order` is below `before_us` (None: all input)."""
        if self._session is None:
            announce("starting Spark for the batch run")
            own_options, users = split(self._request.options)
            conf = defaults(max(2, len(cpus())), local_checkpoint=False)
            conf |= {"spark.driver.memory": own_options["driver_memory"], **users}
            self._session = open_session(f"local[{len(cpus())}]", conf, self._request.folder)
        self._answers += 1
        try:
            frames = [self._frame(each.name, before_us) for each in self._request.job.inputs]
            results = self._native.batch(self._session, frames)
            # Spark's default, INT96, would be read in nanoseconds and without a time zone.
            results.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
            announce(f"running the job in batch{f', part {self._answers}' if before_us is not None else ''}")
            results.write.parquet(out)
            announce("comparing every answer")
        except InputError:
            raise
        except Exception as error:
            raise EngineError(self._native.trace_in(str(error)) or first_line(error)) from None

    def _frame(self, stream: str, before_us: int | None) -> Any:
        frame, order = self._session.read.parquet(str(self._request.inputs[stream])), self._request.order
        part = frame if before_us is None else frame.where(f"{order} < {before_us}")
        return part if order == EVENT_TIME else part.drop(order)


def commands_of(request: BatchRequest) -> Handlers:
    return {"answer": BatchAnswerJob(request).answer}


if __name__ == "__main__":
    serve_job(commands_of)
