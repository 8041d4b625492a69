"""User jobs on Spark: the user's function instead of a lowering, validated before anything is measured.

Workers find the user's module and its neighbours by PYTHONPATH, which the JVM passes to them.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import DataStreamWriter, StreamingQueryManager
from pyspark.sql.types import LongType, StructType, TimestampType

from streamgauge.core.clock import repeated
from streamgauge.core.errors import JobError, Problem, refuse
from streamgauge.core.schema import EMISSION_TIME, EVENT_TIME, WINDOW_END, WINDOW_START
from streamgauge.dataflow.nodes import UserJobNode
from streamgauge.engines.spark.lowering.columns import column
from streamgauge.engines.spark.session.masters import is_local
from streamgauge.engines.spark.session.session import RUNNING, UP
from streamgauge.engines.spark.user_job import result_types
from streamgauge.engines.spark.user_job.error_advice import advice_for
from streamgauge.system.child_processes import announce
from streamgauge.system.user_code import (
    NO_QUERY,
    ONE_RESULT,
    WITHOUT_SINK,
    first_line,
    import_file,
    own_frames,
    own_trace_in,
    place_of,
    user_errors,
)

WINDOW = "window"
"""Spark's name for a window column, which is split into window_start and window_end."""
REPORT_S = 1.0
_QUERY_CALLS = (
    (DataStreamWriter, "start"), (DataStreamWriter, "toTable"), (StreamingQueryManager, "awaitAnyTermination"),
)  # fmt: skip
_PER_BATCH = {
    "FlatMapGroupsInPandas": "groupBy(...).applyInPandas(...)",
    "FlatMapGroupsInArrow": "groupBy(...).applyInArrow(...)",
}
_VARYING = {
    "CurrentTimestamp": "current_timestamp()", "CurrentTimestampLike": "current_timestamp()", "Now": "now()",
    "CurrentDate": "current_date()", "CurDateExpressionBuilder": "curdate()", "CurrentTime": "current_time()",
    "LocalTimestamp": "localtimestamp()", "Uuid": "uuid()", "Rand": "rand()", "Randn": "randn()",
    "RandStr": "randstr()", "Uniform": "uniform()", "Shuffle": "shuffle()",
    "MonotonicallyIncreasingID": "monotonically_increasing_id()", "SparkPartitionID": "spark_partition_id()",
}  # fmt: skip
"""Expressions whose values differ from run to run, even with a seed, by their class in Spark."""
_CONDITION = "a condition"


def load(job: UserJobNode) -> PySparkJob:
    """The job with its function, imported by path. Call it before the JVM starts."""
    root = place_of(Path(job.path))[0]
    sys.argv = [job.path]  # what the function parses are not the arguments of this process
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    return PySparkJob(job, getattr(import_file(Path(job.path)), job.name))


@dataclass(frozen=True)
class PySparkJob:
    """A user job and its function."""

    job: UserJobNode
    function: Callable[[SparkSession, dict[str, DataFrame]], DataFrame]

    def streaming(self, session: SparkSession, frames: Sequence[DataFrame], folder: Path) -> DataFrame:
        """The results for the sink; `frames` are the inputs from the transport.

        Files for executors on other machines go to `folder`. Raises JobError if the function fails or its result
        cannot be measured.
        """
        if not is_local(session.sparkContext.master):
            _ship(session, Path(self.job.path), folder)
        result = self._call_function(session, frames)
        from_inputs = 'make the result from inputs["..."], which are streams; spark.read, spark.range give batch frames'
        self._require(result.isStreaming, "must return a streaming DataFrame", "a batch DataFrame", from_inputs)
        checked = self._checked(_plain_windows(result))
        self._require_streamable(checked)
        if self.job.reference is None:
            self._try_batch(session, frames)
        return checked

    def _require_streamable(self, result: DataFrame) -> None:
        """Raises JobError for what Spark streams without an error, and which cannot give the results of a batch run."""
        nodes: list[dict[str, Any]] = json.loads(result._jdf.queryExecution().analyzed().toJSON())
        per_batch = next((call for node in nodes if (call := _PER_BATCH.get(_class(node)))), "")
        rule = "must not give groups to a function that Spark calls anew in each micro-batch, for its rows alone"
        way_out = "transformWithStateInPandas, which keeps state for each key, or groupBy(...).agg(...)"
        self._require(not per_batch, rule, per_batch, way_out)
        varying = [pair for node in nodes for field in node.values() for pair in _varying(field)]
        columns = ", ".join(dict.fromkeys(name for name, _ in varying))
        calls = ", ".join(dict.fromkeys(call for _, call in varying))
        rule = f"must give the same results again, as the batch run is its truth without a reference: {columns}"
        way_out = f'leave {columns} out, or give @job a reference that leaves it out: reference="SELECT ..."'
        self._require(self.job.reference is not None or not varying, rule, calls, way_out)

    def require_types(self, frame: DataFrame, is_carried: Callable[[str], bool]) -> None:
        """Raises JobError for the first column whose type the transport cannot carry."""
        for field in frame.schema:
            kind, name = field.dataType.simpleString(), field.name
            rule = f"must have results that a message can carry, unlike {name}"
            way_out = f"make it a text, as by F.to_json, or plain columns in place of {name}; or --transport memory"
            self._require(is_carried(kind), rule, kind, way_out)

    def batch(self, session: SparkSession, frames: Sequence[DataFrame]) -> DataFrame:
        """The expected results, from batch frames."""
        return self._checked(_plain_windows(self._call_function(session, frames)))

    def trace_in(self, text: str) -> str | None:
        """The user's lines in an engine's error, if the user's code raised it."""
        return own_trace_in(text, Path(self.job.path))

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """Turns Spark's refusal of the query (output mode, operator) into a JobError."""
        try:
            yield
        except AnalysisException as error:
            way_out = self._advice(error) or f"change what Spark names there; the function: {self._place}"
            raise self._refuse("must be a query that Spark can stream", first_line(error), way_out) from None

    def _call_function(self, session: SparkSession, frames: Sequence[DataFrame]) -> DataFrame:
        """Calls the function. Raises JobError unless it returns a DataFrame."""
        inputs = {
            source.name: frame.withColumn(time, F.timestamp_micros(EVENT_TIME))
            for source, frame, time in zip(self.job.inputs, frames, self.job.times, strict=True)
        }
        path, rule = Path(self.job.path), f"{self.job.name}() must run without an error"
        with user_errors(path, rule, self._advice), reported(path, self.job.name), no_query(path, self._refuse):
            result = self.function(session, inputs)
        way_out = WITHOUT_SINK if isinstance(result, DataStreamWriter) else f"end {self.job.name}() with return"
        way_out = ONE_RESULT if isinstance(result, dict | tuple | list | set) else way_out
        self._require(isinstance(result, DataFrame), "must return a DataFrame", type(result).__name__, way_out)
        return result

    def _advice(self, error: BaseException) -> str | None:
        """The way out of a window or a watermark on event_time, which is a number, and of errors that Spark names."""
        text, time = str(error), self.job.times[0]
        if isinstance(error, AnalysisException) and EVENT_TIME in text and "TIMESTAMP" in text and '"BIGINT"' in text:
            return f'F.window("{time}", ...), withWatermark("{time}", ...): event_time is the same, as a number'
        return advice_for(error, time) if isinstance(error, PySparkException) else None

    def _checked(self, result: DataFrame) -> DataFrame:
        names = [name.lower() for name in result.columns]
        twice = sorted({name for name in names if names.count(name) > 1})
        self._require(not twice, "must give each column once", twice, "drop or rename one of them")
        rule = f"must have no column {EMISSION_TIME}, which the recorder adds"
        self._require(EMISSION_TIME not in names, rule, result.columns, "rename it")
        rule = "must keep event_time, which results need for their latency and their place in the trial"
        self._require(EVENT_TIME in result.columns, rule, result.columns, _LINE_TO_ADD)
        kind = result.schema[EVENT_TIME].dataType
        rule = "must keep event_time as it is (bigint, microseconds)"
        self._require(isinstance(kind, LongType | TimestampType), rule, kind.simpleString(), _LINE_TO_ADD)
        reference = dict(self.job.reference or ())
        lacking = [name for name in (*self.job.keys, *reference) if name not in result.columns]
        rule = f"must give the columns that its keys and its reference name: {', '.join(lacking)}"
        to_add = f"add {''.join(lacking[:1])} to the result, or take it out of @job"
        self._require(not lacking, rule, result.columns, to_add)
        refuse(list(result_types.problems(self._who, result.schema, self.job.keys, reference)), JobError)
        time = F.unix_micros(F.col(EVENT_TIME)) if isinstance(kind, TimestampType) else F.col(EVENT_TIME)
        # Rows of an outer join may have none. 0 lies in no measured span, and verification counts such rows.
        return result.withColumn(EVENT_TIME, F.coalesce(time, F.lit(0)))

    def _try_batch(self, session: SparkSession, frames: Sequence[DataFrame]) -> None:
        """Without a reference the truth is the batch run, so check now that Spark can plan it."""
        empty = [session.createDataFrame([], frame.schema) for frame in frames]
        reason: object = None
        try:
            self.batch(session, empty)._jdf.queryExecution().executedPlan()
        except JobError as error:
            reason = error.problems[0].got
        except Exception as error:
            reason = first_line(error)
        rule = "must also run in batch, because without a reference the batch run is its truth"
        way_out = 'in @job: reference="SELECT ..." (DuckDB SQL over tables named as the streams)'
        self._require(reason is None, rule, reason, way_out)

    def _require(self, holds: object, rule: str, got: object, way_out: str) -> None:
        if not holds:
            raise self._refuse(rule, got, way_out)

    def _refuse(self, rule: str, got: object, way_out: str) -> JobError:
        return JobError(Problem(self._who, rule, str(got), way_out))

    @property
    def _place(self) -> str:
        """Where the function is: Spark names no line for what it refuses as the query starts."""
        line = self.function.__code__.co_firstlineno
        return f"{Path(self.job.path).name}, line {line}, {self.job.name}()"

    @property
    def _who(self) -> str:
        return f"{Path(self.job.path).name}: {self.job.name}()"


_LINE_TO_ADD = (
    'F.max("event_time").alias("event_time") in the agg(...) of a grouping; "event_time" in a select(...);'
    " the row's own event_time in Python"
)


def _plain_windows(frame: DataFrame) -> DataFrame:
    """Splits Spark's window column, a struct, into two columns."""
    kind = frame.schema[WINDOW].dataType if WINDOW in frame.columns else None
    if not isinstance(kind, StructType) or kind.names != ["start", "end"]:
        return frame
    return frame.select(
        F.col(f"{WINDOW}.start").alias(WINDOW_START),
        F.col(f"{WINDOW}.end").alias(WINDOW_END),
        *[column(name) for name in frame.columns if name != WINDOW],
    )


def _ship(session: SparkSession, path: Path, folder: Path) -> None:
    """Sends the user's module and its neighbours to executors on other machines, packed in `folder`."""
    root = place_of(path)[0]
    for file in root.rglob("*.py"):
        if not any(part.startswith(".") or part == "site-packages" for part in file.relative_to(root).parts):
            target = folder / "job" / file.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
    session.sparkContext.addPyFile(shutil.make_archive(str(folder / "job"), "zip", folder / "job"))


@contextmanager
def reported(path: Path, name: str) -> Iterator[None]:
    """Announces every second which line of the user's function runs in this thread."""
    thread = threading.get_ident()

    def report() -> None:
        line = next(iter(own_frames(sys._current_frames().get(thread), path)[-1:]), None)
        where = f": {Path(line.filename).name}, line {line.lineno}: {line.line}" if line is not None else ""
        announce(f"{RUNNING}: {name}(){where}")

    try:
        with repeated(report, REPORT_S, "reporter"):
            yield
    finally:
        announce(UP)


@contextmanager
def no_query(path: Path, refusal: Callable[[str, object, str], JobError]) -> Iterator[None]:
    """Refuses a query at the line that starts it, because waiting for its end would never return.

    `refusal` builds an error from rule, value and way out. It is raised even if the function handles it.
    """
    refused: list[JobError] = []

    def refuse(*_: Any, **__: Any) -> None:
        frames = own_frames(sys._getframe(), path)
        lines = "".join(traceback.format_list(frames)).rstrip()
        refused.append(refusal(NO_QUERY, frames[-1].line if frames else "a query", f"{WITHOUT_SINK}:\n{lines}"))
        raise refused[-1]

    calls = [getattr(owner, method) for owner, method in _QUERY_CALLS]
    for owner, method in _QUERY_CALLS:
        setattr(owner, method, refuse)
    try:
        yield
    finally:
        for (owner, method), call in zip(_QUERY_CALLS, calls, strict=True):
            setattr(owner, method, call)
        if refused:
            raise refused[0] from None


def _varying(field: Any, column: str = _CONDITION) -> Iterator[tuple[str, str]]:
    """The varying calls in a field of a node, each with the column that holds it. Expressions are in pre-order."""
    for part in field if isinstance(field, list) else ():
        if isinstance(part, list):
            yield from _varying(part, column)
        elif isinstance(part, dict):
            name = _class(part)
            column = str(part["name"]) if name == "Alias" else column
            if name in _VARYING:
                yield column, _VARYING[name]
            elif part.get("udfDeterministic") is False:
                yield column, f"{part.get('name') or 'a function'}(), which is marked as non-deterministic"


def _class(part: dict[str, Any]) -> str:
    return str(part.get("class", "")).rpartition(".")[2]
