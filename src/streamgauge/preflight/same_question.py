"""Whether a program answers the query of the built-in workload that its file names, so that `compare` may take both as
one question.

Both must read the same inputs, and over the same planned events the program's reference must give the same results as
the oracle gives for the workload's flow.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from streamgauge.core.clock import US
from streamgauge.core.errors import EngineError, Problem, Rule, broken, nearest
from streamgauge.core.schema import EVENT_ID, EVENT_TIME, WINDOW_END, WINDOW_START
from streamgauge.dataflow.lineage import needed_columns
from streamgauge.diff.compare import compare
from streamgauge.engines.duckdb_oracle import lowering
from streamgauge.engines.duckdb_oracle.process_operator import computed
from streamgauge.loadgen.fields import RecordTime, StreamSpec
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.user_workloads.program_fields import field_text
from streamgauge.user_workloads.user_workload import UserWorkload, user_workload
from streamgauge.workloads import registry
from streamgauge.workloads.registry import Job, Workload

RATE_PER_S, SECONDS, START_US = 500.0, 12.0, 1_700_000_000 * US
"""The planned events on which the results are compared."""
_OWN = (EVENT_TIME, WINDOW_START)
"""Columns of a flow's results that a program need not give."""


def same_question_problems(workload: Workload) -> list[Problem]:
    """The problems of a program's `answers`, which its file gives."""
    own = user_workload(workload)
    setting, name, known = f"{own.path.name}: answers", own.question, registry.names()
    if name not in known:
        return [Problem(setting, "must be a built-in workload", name, f'answers = "{nearest(name, known)}"')]
    theirs, ours = _job(registry.get(name)), _job(own)
    read, declared = _inputs(theirs.streams, needed_columns(theirs.flow)), _inputs(ours.streams)
    if declared not in (read, _inputs(theirs.streams)):
        rule = f"the file must declare the inputs of {name}, with the shares and fields that it reads"
        return [Problem(setting, rule, "; ".join(declared), "; ".join(read))]
    return list(_results_problems(setting, own, theirs, ours))


def _job(workload: Workload) -> Job:
    return workload.build(workload.parameters(), RATE_PER_S)


def _inputs(streams: Sequence[StreamSpec], read: Mapping[str, Sequence[str]] | None = None) -> list[str]:
    """Lines of a program's file with the streams and the fields that are `read`, or all, without the messages' time."""
    lines = []
    for stream in sorted(streams, key=lambda one: one.name):
        fields = [one for one in stream.fields if not isinstance(one, RecordTime)]
        lines.append(f"[inputs.{stream.name}] share = {stream.share:g}")
        lines += sorted(field_text(one) for one in fields if read is None or one.name in read[stream.name])
    return lines


def _results_problems(setting: str, own: UserWorkload, theirs: Job, ours: Job) -> Iterator[Problem]:
    """Those that the results over some planned events show, one for each of the workload's sinks."""
    import duckdb

    rule, way_out = f"its reference must give the results of {own.question}", "correct it, or leave answers out"
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'; SET threads = 1")
        tables = _planned(connection, ours.streams)
        for flow, sink in zip(theirs.flow.each(), ours.flow.sinks, strict=False):
            truth = connection.sql(lowering.sql(flow, computed(connection, flow, tables))).create_view("_expected")
            views = {name: f"FROM {table}" for name, table in tables.items()}
            own.answer(connection, sink.name, views).create_view("_given")
            columns = [name for name in truth.columns if name not in _OWN]
            keys = [name for name in (*own.described[sink.name].keys, WINDOW_END) if name in columns]
            try:
                counts = compare(connection, "_expected", "_given", keys, columns)
            except EngineError as error:
                yield Problem(setting, rule, str(error), way_out)
            else:
                right = counts.matched == counts.expected and not counts.extra + counts.duplicate
                yield from broken(Rule(right, setting, rule, counts.examples[:1], way_out))


def _planned(connection: Any, streams: Sequence[StreamSpec]) -> dict[str, str]:
    """Stream to the table of its planned events, with lineage."""
    profile = parse_profile("constant", RATE_PER_S, SECONDS)
    plan = Plan(tuple(streams), profile, START_US, SECONDS, partitions=1, seed=1)
    tables = {}
    for number, stream in enumerate(streams):
        tables[stream.name] = f"_planned_{stream.name}"
        columns, count = (*stream.schema.names, EVENT_TIME, EVENT_ID), plan.count_before(number, 0, plan.end_us)
        connection.register(tables[stream.name], plan.batch(number, 0, 0, count, columns))
    return tables
