"""trial/duplicate_work.py: what a job of several queries does more than once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streamgauge.config.options_and_settings import build
from streamgauge.core.clock import US
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import flow, source
from streamgauge.metrics.log.trial_log import TrialLog
from streamgauge.preflight.validate import check
from streamgauge.results.causes import WarningCode
from streamgauge.trial.trial_result import cautions, duplicate_work
from tests.unit.helpers_trials import START

SOUND = source("purchases", Schema.from_types(user_id="int", price="int")).where("price > 0", name="sound")
DEAR = SOUND.where("price > 90", name="dear")
FLOW = flow(
    SOUND.running(keys="user_id", n="count(*)", name="per_user").sink("users"),
    DEAR.running(keys="price", n="count(*)", name="per_price").sink("prices"),
    DEAR.sink("dear"),
    DEAR.select(user_id="user_id", name="buyer").sink("buyers"),
)
SINKS = ("users", "prices", "dear", "buyers")


def journal_of(make: Any, **sinks: str) -> TrialLog:
    """Of each sink one commit, by its query."""
    commits = [make.commit(0, START + US, query=query, sink=sink) for sink, query in sinks.items()]
    trial_log = TrialLog(make.plan(partitions=1), SINKS)
    trial_log.add(make.tick([[]], [[]], commits))
    return trial_log


def test_what_stands_before_sinks_of_several_queries_is_done_by_each(make: Any) -> None:
    """By name, with the queries and their sinks; the source itself is told of by what the transport counts."""
    trial_log = journal_of(make, users="q0", prices="q1", dear="q2", buyers="q2")
    assert duplicate_work(FLOW, trial_log) == [
        "sound runs 3 times: in queries q0 (users), q1 (prices), q2 (dear, buyers)",
        "dear runs twice: in queries q1 (prices), q2 (dear, buyers)",
    ]


def test_one_query_does_everything_once(make: Any) -> None:
    """However many sinks it serves."""
    assert duplicate_work(FLOW, journal_of(make, users="q0", prices="q0", dear="q0", buyers="q0")) == []


def test_a_trial_warns_of_it(make: Any) -> None:
    """Beside what is read twice."""
    resolved = replace(check(build({"workload": "identity"})), flow=FLOW)
    record = make.story().record()
    record.trial_log = journal_of(make, users="q0", prices="q0", dear="q1", buyers="q1")
    said = "sound, dear run twice: in queries q0 (users, prices), q1 (dear, buyers)"
    assert dict(cautions(resolved, record, 1000.0))[WarningCode.DONE_TWICE] == said
