"""`bench.spark.spark_query`: what each side would start Spark with. Nothing is started."""

from unittest.mock import Mock

import pytest

from bench.spark import spark_query
from bench.support.drain_rate import Change, rate_of, ready_for, without_lineage
from streamgauge.core.errors import DriverError, EngineError
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import UserJobNode
from streamgauge.engines.spark.job_settings import JobSettings
from streamgauge.engines.spark.launch import SparkJob
from streamgauge.engines.spark.lowering.queries import queries
from streamgauge.engines.spi import Edge, Edges
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.capacity.search import TrialOutcome
from streamgauge.trial.conductor import testbed_settings


def settings_of(change: Change, **options: str) -> JobSettings:
    """What the engine's process of one side would be started with."""
    resolved = ready_for("windowed_aggregation", **options)
    made = change(resolved, testbed_settings(resolved))
    return JobSettings(SparkJob(made.flow, Edges((), Edge("", ""), made.columns), made.options, "local[1]", "", ""))


def test_both_sides_have_the_same_settings_and_interval() -> None:
    """A user job would else run back to back, on files with checksums: a comparison of settings, not of queries."""
    ours, by_hand = (
        settings_of(spark_query.alike, lowering__aggregate="window"),
        settings_of(spark_query.written_by_hand),
    )
    assert ours.configuration() == by_hand.configuration()
    assert "RawLocalFileSystem" in by_hand.configuration()["spark.hadoop.fs.file.impl"]
    assert intervals(ours) == intervals(by_hand) == ["1400 milliseconds"]


@pytest.mark.parametrize(
    ("change", "user_job"), [(spark_query.alike, False), (spark_query.written_by_hand, True), (without_lineage, False)]
)
def test_each_side_has_its_own_query(change: Change, user_job: bool) -> None:
    """One query each, on the columns that the test bed carries; only one of them is the hand-written function."""
    job = settings_of(change).job
    (query,) = queries(job.flow)
    assert any(isinstance(node, UserJobNode) for node in graph.operators(job.flow)) == user_job
    assert {"price", "gem_pack_id", "event_time"} <= set(query.columns(job.flow, job.edges.columns)["purchases"])


def test_the_pair_with_a_floor_is_the_same_query_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lowered by panes ours was twice as fast as the hand's, so that a floor of 0.95 could see nothing."""
    drained: list[tuple[str, str]] = []

    def drain(resolved: ResolvedExperiment, change: Change = lambda _, settings: settings) -> float:
        drained.append((change.__name__, resolved.experiment.options.get("lowering.aggregate", "auto")))
        return 1.0 if change is spark_query.written_by_hand else 2.0

    monkeypatch.setattr(spark_query, "drained_per_s", drain)
    same, panes, *_ = spark_query.main()
    a, b = ("alike", "window"), ("written_by_hand", "auto")
    assert drained[:4] == [a, b, b, a]
    assert (same["value"], same["floor"], same["goal"]) == (2.0, 0.95, 0.98)
    assert drained[8] == ("alike", "auto")
    assert (panes["value"], panes["floor"], panes["goal"]) == (2.0, None, None)


def test_pairs_are_chosen_by_words_of_their_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All without words; one that no name has is refused."""
    monkeypatch.setattr(spark_query, "drained_per_s", drain := Mock(return_value=1.0))
    (jit,) = spark_query.main("jit=")
    assert jit["what"] == "jit=late against the JVM's own thresholds (jit=jvm)"
    assert [call.args[0].workload.name for call in drain.call_args_list] == ["windowed_aggregation"] * 8
    with pytest.raises(SystemExit) as stopped:
        spark_query.main("jitt")
    assert stopped.value.code == 2
    assert "no pair has 'jitt' in its name" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("verdict", "raised"),
    [("not_sustained", EngineError), ("invalid", DriverError)],
)
def test_what_a_failed_drain_gave_is_no_rate(verdict: VerdictValue, raised: type[Exception]) -> None:
    """The reason is raised instead; a program that fails shows in the table's exit code."""
    assert rate_of(TrialOutcome(30e6, "not_sustained", 5e5), alive=True) == 5e5
    with pytest.raises(raised, match="no more heap"):
        rate_of(TrialOutcome(30e6, verdict, 5e5, why="no more heap"), alive=False)


def intervals(settings: JobSettings) -> list[str]:
    return [settings.trigger(query) for query in queries(settings.job.flow)]
