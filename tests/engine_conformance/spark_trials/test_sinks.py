"""Several sinks of one flow on a real Spark: every answer of each, faults named with their sink, a restart."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import build
from streamgauge.core.clock import US
from streamgauge.core.schema import EMISSION_TIME
from streamgauge.dataflow.builder import Stream, flow, hop, source
from streamgauge.dataflow.nodes import Flow
from streamgauge.dataflow.reach import reach_us, tail_us
from streamgauge.engines.spark.plugin import SparkPlugin
from streamgauge.harness.start_processes import TestBed
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.settings_checks import check
from streamgauge.results.run import Verification
from streamgauge.trial.conclusion import EngineReport
from streamgauge.trial.conductor import TrialConductor
from streamgauge.trial.policies import JudgedTrial
from streamgauge.trial.progress import Show
from streamgauge.trial.trial_result import TrialResult
from streamgauge.verification.received_results import ReceivedResults
from tests.helpers_broker_trials import DURATION_S, running, trial
from tests.helpers_restart import Restart
from tests.helpers_verdicts import sentence_against

pytestmark = [pytest.mark.spark, pytest.mark.long]

RATE_PER_S = 20_000.0
FAULTS = ("missing", "extra", "duplicate", "wrong", "late")


def row_wise(bought: Stream) -> Flow:
    """Three sinks of one query: two of equal columns that share no row, one of others that shares rows with both."""
    dear, cheap = bought.where("price > 90"), bought.where("price <= 10")
    return flow(
        dear.sink("dear"),
        cheap.sink("cheap"),
        bought.where("price % 2 = 0").select(pack="gem_pack_id", half="try_divide(price, 2)").sink("even"),
    )


def of_all_kinds(bought: Stream) -> Flow:
    """Three queries: row by row, a windowed aggregate that is appended, a running one that is updated."""
    windowed = bought.window(hop("2s", "1s"), keys="gem_pack_id").aggregate(revenue="sum(price)")
    return flow(
        bought.where("price > 90").sink("dear"),
        windowed.sink("revenue"),
        bought.running(keys="gem_pack_id", count="count(*)").sink("counts"),
    )


@dataclass
class Case:
    """A flow of several sinks on a started test bed."""

    resolved: ResolvedExperiment
    testbed: TestBed
    folder: RunFolder

    def trial(self, number: int, on_progress: Show = lambda _: None) -> TrialResult:
        return trial(self.resolved, self.testbed, self.folder, number, on_progress, keep_results=True)

    def again(self, record: TrialRecord) -> TrialResult:
        """The same trial, judged once more from what lies in the spool now."""
        folder = self.folder.trial(99, datetime.now(UTC))
        judged = JudgedTrial(self.resolved, RATE_PER_S, fresh=True, duration_s=DURATION_S, may_extend=False)
        return TrialConductor(self.resolved, self.testbed).conclude(folder, judged, record, EngineReport())


@contextmanager
def started(root: Path, made: Callable[[Stream], Flow]) -> Iterator[Case]:
    """Generators, recorder and Spark, running a flow that no workload has; ended at the end."""
    # While Spark is restarted nothing is read, however long that takes: the queue must not fill meanwhile.
    load = {"rate": RATE_PER_S, "duration": DURATION_S, "warmup": "4s", "generators": 2, "bound": "5m"}
    plain = check(build({"workload": "identity", "load": load, "out": str(root)}))
    (stream,) = plain.streams(RATE_PER_S)
    several = made(source(stream.name, stream.schema))
    tail = 2 * US + tail_us(several, SparkPlugin().closing_delay_us)
    resolved = replace(plain, flow=several, reach_us=reach_us(several), tail_us=tail)
    folder = RunFolder.create(root, "sinks", "spark", datetime.now(UTC))
    with running(resolved, folder.path) as testbed:
        yield Case(resolved, testbed, folder)


def verifications(judged: TrialResult) -> dict[str, Verification]:
    found = {sink.name: sink.verification for sink in judged.result.sinks}
    assert all(found.values())
    return {name: one for name, one in found.items() if one is not None}


def check_answers(judged: TrialResult, least: dict[str, int]) -> None:
    """Every sink judged and right, and the sum of them."""
    assert judged.record.drained
    for name, found in verifications(judged).items():
        assert (found.judged, found.independent) == (True, True)
        assert [getattr(found, fault) for fault in FAULTS] == [0] * len(FAULTS), (name, found.examples)
        assert found.matched == found.expected >= least[name], name
    whole = judged.result.verification
    assert whole is not None
    assert whole.right
    assert whole.expected == sum(found.expected for found in verifications(judged).values())
    assert {sink.name for sink in judged.result.sinks} == set(least)
    assert all(sink.latency.event_time_us is not None for sink in judged.result.sinks)


def sentence_of(judged: TrialResult, name: str) -> str:
    return next(one.sentence for one in judged.result.verdict.checks if one.name == name)


def rewritten(path: str, change: Callable[[pa.Table], pa.Table]) -> pa.Table:
    """Changes a file of the spool; returns what it was."""
    with pa.OSFile(path, "rb") as file:
        before = pa.ipc.open_file(file).read_all()
    after = change(before)
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, before.schema) as spool:
        spool.write_table(after)
    return before


def without_first(rows: pa.Table) -> pa.Table:
    return rows.slice(1)


def first_doubled(rows: pa.Table) -> pa.Table:
    return pa.concat_tables([rows, rows.slice(0, 1)])


def test_row_wise_sinks_share_one_query_and_faults_are_named_with_their_sink(tmp_path: Path) -> None:
    """Right answers of all three, twice on a warm test bed; then a row dropped, doubled, sent to another sink."""
    with started(tmp_path, row_wise) as running:
        check_answers(running.trial(1), {"dear": 7_000, "cheap": 7_000, "even": 48_000})
        judged = running.trial(2)
        check_answers(judged, {"dear": 7_000, "cheap": 7_000, "even": 48_000})
        driver = judged.result.driver
        assert driver is not None
        assert driver.events_handed_out == driver.events_committed == driver.events_planned
        assert (driver.events_shared, driver.events_reread) == (0, 0)
        assert {sink.query for sink in judged.result.sinks} == {"q0"}
        folder = running.folder.trials()[1].path
        for sink in judged.result.sinks:
            assert pq.ParquetFile(folder / f"results-{sink.name}.parquet").metadata.num_rows == sink.rows
        assert not (folder / "results.parquet").exists()

        (dear,) = {path_with_rows(judged.record, "dear")}
        before = rewritten(dear, without_first)
        check_fault(running.again(judged.record), "dear", missing=1)
        rewritten(dear, lambda _: first_doubled(before))
        check_fault(running.again(judged.record), "dear", duplicate=1)
        rewritten(dear, lambda _: without_first(before))
        cheap = path_with_rows(judged.record, "cheap")
        rewritten(cheap, lambda rows: pa.concat_tables([rows, before.slice(0, 1)]))
        found = running.again(judged.record)
        check_fault(found, "dear", missing=1)
        check_fault(found, "cheap", extra=1)
        assert "wrong: dear, cheap; right: 1 of 3 sinks" in sentence_of(found, "answers")


def path_with_rows(record: TrialRecord, sink: str) -> str:
    """A file of the spool whose first row lies in the measured span."""
    one = replace(record, trial_log=record.trial_log.of_sink(sink))
    low, high = record.spans.measured_from_us, record.spans.measured_to_us
    for commit in one.trial_log.commits:
        for path in commit.paths:
            with pa.OSFile(path, "rb") as file:
                first = pa.ipc.open_file(file).read_all().column("event_time")[0].as_py()
            if low <= first < high:
                return path
    raise AssertionError(f"nothing came to {sink} in the span: {ReceivedResults(one).empty}")


def check_fault(judged: TrialResult, sink: str, **counts: int) -> None:
    found = verifications(judged)
    assert {name: getattr(found[sink], name) for name in FAULTS} == dict.fromkeys(FAULTS, 0) | counts
    assert found["even"].right
    assert sink in sentence_against(judged.result.verdict, "answers")
    assert any(example["sink"] == sink for example in judged.result.verification.examples)  # type: ignore[union-attr]


def test_sinks_of_all_kinds_are_right_across_a_restart(tmp_path: Path, restart: Restart) -> None:
    """Three queries of one session, each exactly once; the source is read three times and counted once."""
    with started(tmp_path, of_all_kinds) as running:
        judged = running.trial(1, restart.once(running.testbed))
        folder = running.folder.trials()[0].path
    restart.check(judged)
    check_answers(judged, {"dear": 7_000, "revenue": 800, "counts": 100})
    assert {sink.name: sink.query for sink in judged.result.sinks} == {"dear": "q0", "revenue": "q1", "counts": "q2"}
    driver = judged.result.driver
    assert driver is not None
    assert driver.events_planned == driver.events_handed_out == driver.events_committed
    assert driver.events_shared == 2 * driver.events_planned
    assert any("is read 3 times" in warning for warning in judged.result.warnings)
    assert EMISSION_TIME in pq.ParquetFile(folder / "results-counts.parquet").schema_arrow.names
    engine: Any = pq.ParquetFile(folder / "engine" / "batches.parquet").read()
    assert {"q0", "q1", "q2"} <= set(engine["query"].to_pylist())
