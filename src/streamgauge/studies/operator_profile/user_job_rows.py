"""Computes the rows of a user job for its whole input: by its reference, else by the function in batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamgauge.core.schema import quote
from streamgauge.dataflow.nodes import UserJobNode
from streamgauge.engines.registry import entry
from streamgauge.engines.spi import BatchRequest
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.studies.operator_profile.operator_io import UserJobRows
from streamgauge.user_workloads.user_workload import user_workload


def user_job_rows(resolved: ResolvedExperiment, private: Path) -> UserJobRows:
    """A function that computes the rows of this job; `private` is a folder for temporary files."""
    workload, sink = user_workload(resolved.workload), resolved.flow.sink.name
    if workload.described(sink).reference is not None:
        return lambda connection, _, tables: workload.answer(
            connection, sink, {name: f"SELECT * FROM {quote(table)}" for name, table in tables.items()}
        )
    return lambda connection, job, tables: _in_batch(connection, job, tables, resolved, private)


def _in_batch(
    connection: Any, job: UserJobNode, tables: dict[str, str], resolved: ResolvedExperiment, private: Path
) -> Any:
    inputs = {name: private / f"{name}.parquet" for name in tables}
    for name, table in tables.items():
        connection.table(quote(table)).write_parquet(str(inputs[name]))
    plugin, options = entry(resolved.engine.name), resolved.experiment.options
    with plugin.batch_answer(BatchRequest(job, inputs, options, private, private / "batch.log")) as answer:
        return connection.read_parquet(str(answer(private / "answer") / "*.parquet"))
