"""The result of a trial before its verdict: its figures, its warnings, and what several queries do twice."""

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import build
from streamgauge.core.clock import US
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import flow, source
from streamgauge.metrics import interference
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.settings_checks import check
from streamgauge.results.codes import WarningCode
from streamgauge.results.text.sentences import sentence
from streamgauge.results.verdict import BackgroundLoad
from streamgauge.transports.spi import COMMITS
from streamgauge.trial import trial_result
from streamgauge.trial.trial_result import _not_seen, build_result, duplicate_work, warnings_of
from streamgauge.user_workloads.user_job import UserJob
from streamgauge.workloads.registry import Workload
from tests.unit.helpers_trials import START

RESOLVED = check(build({"workload": "identity"}))


def facts_of(code: WarningCode, record: Any, resolved: ResolvedExperiment = RESOLVED, rate_per_s: float = 1e3) -> Any:
    """The numbers and names in a trial's warning of that code; None without one."""
    return {one.code: one.facts for one in warnings_of(resolved, record, rate_per_s)}.get(code)


@pytest.fixture
def built(make: Any, tmp_path: Path) -> Callable[..., Any]:
    """The result of a trial whose engine ended, with the processes and settings of its test bed."""

    def build_one(resolved: ResolvedExperiment, record: Any = None, processes: Any = (), **settings: str) -> Any:
        testbed: Any = SimpleNamespace(engine=SimpleNamespace(settings=lambda: settings), processes=lambda: processes)
        folder = RunFolder.create(tmp_path, "a", "b", datetime.now(UTC))
        record = record or make.story().record(engine_failed="gone")
        return build_result(resolved, testbed, folder, record, 1000.0, None)

    return build_one


def test_a_hopeless_trial_that_went_on_says_why_it_would_have_ended(make: Any) -> None:
    record = make.story().record()
    assert facts_of(WarningCode.WENT_ON, record) is None
    record.hopeless = "the backlog grows"
    assert facts_of(WarningCode.WENT_ON, record) == {"reason": "the backlog grows"}
    assert facts_of(WarningCode.ENDED_EARLY, record) is None


def test_a_machine_that_was_busy_besides_is_warned_of(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a tenth of it on, whatever the verdict is."""
    monkeypatch.setattr(interference, "machine_percent", lambda: 200.0)
    record = make.story().record()
    for percent, is_warned in ((20.0, False), (30.0, True)):
        record.trial_log.background = [(make.start + 6 * US, percent)]
        assert (facts_of(WarningCode.BACKGROUND_LOAD, record) is not None) is is_warned
    record.trial_log.background = [(make.start + n * US, 200.0 if 6 <= n < 9 else 0.0) for n in range(3, 15)]
    monkeypatch.setattr(interference, "background_share", lambda _: 0.09)
    assert facts_of(WarningCode.BACKGROUND_LOAD, record) == {"load": BackgroundLoad(0.6, 0.5, 5.0)}


@pytest.mark.parametrize(("processors", "is_warned"), [(2, True), (3, False)])
def test_more_generators_than_processors_are_warned_of(
    processors: int, is_warned: bool, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They wait for each other."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))
    resolved = check(build({"workload": "identity", "load": {"generators": 3}}))
    assert (facts_of(WarningCode.MORE_GENERATORS_THAN_CORES, make.story().record(), resolved) is not None) is is_warned


@pytest.mark.parametrize(("memory", "is_warned"), [("1GiB", False), ("40MiB", True)])
def test_a_queue_cut_by_memory_is_warned_of(memory: str, is_warned: bool, make: Any) -> None:
    """One below ten seconds of the rate."""
    resolved = check(build({"workload": "identity", "load": {"memory": memory, "generators": 1}}))
    facts = facts_of(WarningCode.QUEUE_CUT_BY_MEMORY, make.story().record(), resolved, 100_000.0)
    assert (facts is not None) is is_warned


@pytest.mark.parametrize(("slowed", "is_warned"), [(0.14, False), (0.16, True), (-0.5, False)])
def test_a_machine_that_became_slower_is_warned_of(
    slowed: float, is_warned: bool, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within the span; one that became faster makes no trend that speaks against the system."""
    monkeypatch.setattr(interference, "slowed_by", lambda _: slowed)
    expected = {"slowed": slowed} if is_warned else None
    assert facts_of(WarningCode.MACHINE_SLOWED, make.story().record()) == expected


def test_a_result_has_the_digests_of_its_job(built: Callable[..., Any]) -> None:
    """Of a user job's files, as it has the experiment."""
    resolved = check(build({"workload": "filter", "engine": "known"}))
    resolved = replace(resolved, workload=replace(resolved.workload, files={"job.py": "a" * 64}))
    assert built(resolved).job_files == {"job.py": "a" * 64}


@pytest.mark.parametrize(("requested", "allowed", "expected", "warned"), [
    ({}, {}, ([0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]), "share cores 0-3,"),
    ({"cpus": {"driver": "0", "sut": "1-3"}}, {}, ([0], [1, 2, 3], []), ""),
    ({"cpus": {"driver": "0", "sut": "1-3"}}, {7: {1, 2}, 8: {3}}, ([0], [1, 2, 3], []), ""),
    ({"cpus": {"driver": "0", "sut": "1"}}, {7: {1}, 8: {0, 1}}, ([0], [0, 1], [0]), "share core 0,"),
    ({"cpus": {"driver": "0-1", "sut": "1-3"}}, {7: {1, 2, 3}}, ([0, 1], [1, 2, 3], [1]), "share core 1,"),
])  # fmt: skip
def test_a_result_says_which_cores_both_sides_share(
    requested: dict[str, Any], allowed: dict[int, set[int]], expected: Any, warned: str, built: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """As the system has them in force, executors of a cluster included; as planned, if the processes have ended."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: allowed.get(pid, {0, 1, 2, 3}))
    processes = [("runner", "driver", 1), *(("sut", "sut", pid) for pid in allowed)]
    result = built(check(build({"workload": "filter", "engine": "known", **requested})), processes=processes)
    assert tuple(result.environment[f"{side}_cpus"] for side in ("driver", "sut", "shared")) == expected
    assert [warned in warning for warning in result.warnings if "share core" in warning] == [True] * bool(warned)


def test_a_result_has_its_profile_and_what_is_not_the_engines_own(built: Callable[..., Any]) -> None:
    """Of the engine's settings; those of the transport are its own."""
    requested = {"workload": "filter", "tuning": "idiomatic", "transport": "kafka", "load": {"generators": 1}}
    settings = {"source": "rows", "trigger": "2 seconds", "spark.ui.enabled": "false"}
    result = built(check(build(requested)), **settings)
    assert (result.tuning, result.changed_settings) == ("idiomatic", ("trigger", "spark.ui.enabled"))
    assert "encoding=json" in result.settings["producer"]


def test_a_result_says_what_of_own_data_could_be_taken(make: Any, tmp_path: Path, built: Callable[..., Any]) -> None:
    """Counted in `data`, and in words in the notes, by what the trial offered."""
    file = tmp_path / "a.csv"
    file.write_text("user_id,gem_pack_id,price\n1,2,much\n1,2,3\n")
    resolved = check(build({"workload": "filter", "engine": "known", "parameters": {"data": str(file)}}))
    record = make.story().record(engine_failed="gone")
    record.trial_log.plan = replace(record.trial_log.plan, streams=resolved.streams(1000.0))
    result = built(resolved, record)
    (data,) = result.data
    assert data.rounds == record.trial_log.plan.planned_events(record.spans.start_us, record.offered_until()) / 2
    assert [(column.name, column.unreadable) for column in data.columns if column.unreadable] == [("price", 1)]
    assert "data of purchases: price is null in 1 of 2 rows (unreadable value: 1)" in result.notes


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
    """By name, with the queries and their sinks; the source itself is counted by the transport."""
    trial_log = journal_of(make, users="q0", prices="q1", dear="q2", buyers="q2")
    assert list(map(sentence, duplicate_work(FLOW, trial_log))) == [
        "sound runs 3 times: in queries q0 (users), q1 (prices), q2 (dear, buyers)",
        "dear runs twice: in queries q1 (prices), q2 (dear, buyers)",
    ]


def test_one_query_does_everything_once(make: Any) -> None:
    """However many sinks it serves."""
    assert not list(duplicate_work(FLOW, journal_of(make, users="q0", prices="q0", dear="q0", buyers="q0")))


def test_a_trial_warns_of_it(make: Any) -> None:
    """Beside what is read twice."""
    resolved = replace(check(build({"workload": "identity"})), flow=FLOW)
    record = make.story().record()
    record.trial_log = journal_of(make, users="q0", prices="q0", dear="q1", buyers="q1")
    assert facts_of(WarningCode.DONE_TWICE, record, resolved)["operators"] == ("sound", "dear")


@pytest.mark.parametrize(("own", "warned"), [(False, True), (True, False)])
def test_a_program_drops_nothing_by_a_watermark_of_ours(
    monkeypatch: pytest.MonkeyPatch, own: bool, warned: bool
) -> None:
    """Partitions that it reads apart say nothing: its own delay is not known here."""
    for name, value in (("read_skew_us", 5 * US), ("redelivered", ()), ("duplicate_work", ())):
        monkeypatch.setattr(trial_result, name, lambda *_, value=value: value)
    resolved: Any = SimpleNamespace(
        workload=UserJob if own else Workload, reads_unevenly=False, hides_reads=True,
        watermark_delay_us=0, closing_sinks=("results",), flow=None,
    )  # fmt: skip
    record: Any = SimpleNamespace(
        trial_log=None, spans=SimpleNamespace(measured_from_us=0, measured_to_us=US),
    )  # fmt: skip
    codes = [caution.code for caution in trial_result._of_reads(resolved, record)]
    assert codes == ([WarningCode.PARTITIONS_APART] if warned else [])


@pytest.mark.parametrize(
    ("engine", "transport", "claims"),
    [("spark", "memory", False), ("known", "memory", False), ("spark", "kafka", True), ("spark-rtm", "kafka", True),
     ("spark-dstream", "socket", True), ("storm", "kafka", True)],
)  # fmt: skip
def test_progress_that_is_the_engines_own_claim_is_called_one(engine: str, transport: str, claims: bool) -> None:
    """And a latency that is null has its reason. An engine without batches claims nothing of them."""
    load = {"rate": "1k", "generators": 1}
    requested = {"workload": "identity", "engine": engine, "transport": transport, "load": load}
    resolved = check(build(requested), new_folder=False)
    followed, record = (SimpleNamespace(trial_log=SimpleNamespace(remarks=one)) for one in ({COMMITS: (2, "")}, {}))
    assert len(tuple(_not_seen(resolved, cast(Any, followed)))) == claims  # of a group, a remark says how it moves
    notes = tuple(_not_seen(resolved, cast(Any, record)))
    latency = f"processing-time latency is unknown: over {transport} the driver does not see"
    progress = (
        f"{engine} committed offsets less than twice" if engine == "storm" else f"{engine} reports of its batches"
    )
    parts = [latency, progress] if claims else []
    assert [part in note for part, note in zip(parts, notes, strict=True)] == [True] * len(parts)
