"""What an own job gives for its whole input: by its reference, else by the function itself in batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamgauge.events import quote
from streamgauge.flow.nodes import NativeJob
from streamgauge.run import reference
from streamgauge.run.own_job import OwnJob
from streamgauge.run.ready import Ready
from streamgauge.studies.materialise import JobRows


def job_rows(ready: Ready, private: Path) -> JobRows:
    """How the rows of this job are computed; `private` takes files on the way."""
    workload = ready.workload
    assert isinstance(workload, OwnJob)
    if workload.description.reference is not None:
        return lambda connection, _, tables: reference.answer(
            connection,
            workload.path,
            workload.description,
            {name: f"SELECT * FROM {quote(table)}" for name, table in tables.items()},
        )
    return lambda connection, job, tables: _in_batch(connection, job, tables, ready.experiment.options, private)


def _in_batch(connection: Any, job: NativeJob, tables: dict[str, str], options: dict[str, str], private: Path) -> Any:
    from streamgauge.engines.spark.answer import answers_in_batch

    inputs = {name: private / f"{name}.parquet" for name in tables}
    for name, table in tables.items():
        connection.table(quote(table)).write_parquet(str(inputs[name]))
    with answers_in_batch(job, inputs, options, private, private / "batch.log") as answer:
        return connection.read_parquet(str(answer(private / "answer") / "*.parquet"))
