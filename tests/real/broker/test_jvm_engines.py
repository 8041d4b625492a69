"""Engines on a JVM of their own over a real broker. The conformance suite (long) has all their operators."""

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from pkgutil import resolve_name

import psutil
import pytest

from streamgauge.engines.registry import entry
from streamgauge.results.codes import Cause
from streamgauge.trial.trial_result import TrialResult
from tests.helpers_broker_trials import WINDOW, InMidTrial, check_answers, check_results, require_jars, started, trial
from tools.tables.compatibility import on_jvms

pytestmark = [pytest.mark.broker, pytest.mark.process]


def check_of(options: Mapping[str, str]) -> Callable[[TrialResult, int], None]:
    """Storm's own windows commit the last events only when later ones come."""
    return check_results if options.get("windows") == "storm" else check_answers


@pytest.mark.parametrize(
    ("engine", "options"),
    [
        ("flink", {}),
        ("kafka-streams", {"watermark_delay": "5s"}),
        ("storm", {}),
        pytest.param("storm", {"windows": "storm"}, marks=pytest.mark.long),
    ],
)
def test_windows_over_two_partitions_are_right_and_an_end_is_named(
    tmp_path: Path, engine: str, options: dict[str, str]
) -> None:
    """Every event is read once, by what its group has committed. A JVM that is killed leaves nothing."""
    require_jars(engine)
    with started(
        tmp_path, "windowed_aggregation", "2k", engine, partitions=2, options=options, **WINDOW
    ) as (resolved, testbed, folder):  # fmt: skip
        (pid,) = testbed.pids("sut")
        scratch = Path(psutil.Process(pid).cwd())
        judged = trial(resolved, testbed, folder)
        killed = trial(resolved, testbed, folder, 2, InMidTrial(lambda: os.kill(pid, signal.SIGKILL)))
    check_of(options)(judged, 1000)
    # Looked for after the second trial, because a broker that is busy elsewhere commits seldom in the first seconds.
    assert any("progress is that of the committed offsets" in note for note in killed.result.notes)
    assert Cause.SUT_DIED in {check.code for check in killed.result.verdict.checks}
    assert f"the JVM of {engine} was killed by signal 9" in killed.result.verdict.sentence
    assert not scratch.exists()
    assert not psutil.pid_exists(pid)


WORKLOADS: dict[str, dict[str, str]] = {
    "identity": {},
    "filter": {},
    "stamped_text": {},
    "windowed_join": {"range": "2s", "slide": "1s"},
    "yahoo_streaming": {"window": "2s"},
    "ads_analytics": {"window": "2s", "frequency": "1s"},
    "trending_topics": {"window": "2s", "frequency": "1s"},
    "sentiment_analysis": {},
    "scalability_sink": {},
    "scalability_hierarchical": {"range": "1s"},
    "scalability_tumbling": {"range": "2s"},
    "scalability_hopping": {"range": "2s"},
}
"""Workloads of native nodes, with windows that close within a short trial."""
VARIANTS = [
    *((engine, workload, {}, 1) for engine in on_jvms() for workload in WORKLOADS),
    # All pairs of a window, when it closes, as Karimov et al. wrote their join for Storm.
    *(("storm", workload, {"windows": "storm"}, 1) for workload in ("windowed_join", "trending_topics")),
    *(("kafka-streams", workload, {"state_store": "rocksdb"}, 1) for workload in ("windowed_join", "trending_topics")),
    # All rows of a window come together, whatever partitions they were in.
    ("kafka-streams", "trending_topics", {"watermark_delay": "5s"}, 4),
]


@pytest.mark.long
@pytest.mark.parametrize(("engine", "workload", "options", "partitions"), VARIANTS)
def test_workloads_are_right(
    tmp_path: Path, engine: str, workload: str, options: dict[str, str], partitions: int
) -> None:
    """Verified, as the table of pairs says. A busy machine may keep one side of a join for long."""
    require_jars(engine)
    options = {**resolve_name(entry(engine).conformance).options, **options}
    with started(
        tmp_path, workload, "1k", engine, partitions=partitions, options=options, **WORKLOADS[workload]
    ) as (resolved, testbed, folder):  # fmt: skip
        judged = trial(resolved, testbed, folder)
    check_of(options)(judged, 1)
