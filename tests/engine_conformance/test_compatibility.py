"""Every workload on every engine over every transport: let through, or refused before a start, with a way out."""

from itertools import product

import pytest

from streamgauge.config.experiment import build
from streamgauge.engines.registry import streaming_engines
from streamgauge.preflight.settings_checks import check
from streamgauge.transports.registry import NAMES
from streamgauge.workloads.registry import names
from tools.tables.compatibility import incompatibility, on_jvms

SCALABILITY = {"scalability_hierarchical", "scalability_hopping", "scalability_sink", "scalability_tumbling"}
IN_REAL_TIME = {
    "count", "filter", "identity", "stamped_text", "throughput", "windowed_aggregation",
    *(SCALABILITY - {"scalability_hierarchical"}),
}  # fmt: skip
"""By name, because a table that is made from the code would show no loss."""
IN_DSTREAMS = {
    "ads_analytics", "count", "filter", "identity", "stamped_text", "throughput", "trending_topics",
    "windowed_aggregation", "windowed_join", "word_count", "yahoo_streaming", *SCALABILITY,
}  # fmt: skip
ON_JVMS = {*IN_DSTREAMS, "sentiment_analysis"}
OVER_SOCKETS = {"count", "filter", "identity", "stamped_text", "windowed_aggregation", "word_count", *SCALABILITY}


@pytest.mark.parametrize("workload", names())
def test_a_pair_is_let_through_or_refused_with_a_way_out(workload: str) -> None:
    """By a setting that the user has; everything runs on `spark` over `memory`."""
    found = {way: incompatibility(workload, *way) for way in product(streaming_engines(), NAMES)}
    assert found["spark", "memory"] == ()
    for (engine, _), problems in found.items():
        for problem in problems:
            assert problem.setting in ("engine", "transport", "workload")
            assert problem.rule
            assert problem.way_out.startswith(("--", "streamgauge engines")), (engine, problem)


def test_what_is_meant_to_run_is_let_through() -> None:
    """No engine has lost a workload, and none has one that it is not known to run."""
    assert {name for name in names() if not incompatibility(name, "spark", "kafka")} == set(names())
    assert {name for name in names() if not incompatibility(name, "spark-rtm", "kafka")} == IN_REAL_TIME
    assert {name for name in names() if not incompatibility(name, "spark-dstream", "memory")} == IN_DSTREAMS
    assert {name for name in names() if not incompatibility(name, "spark-dstream", "socket")} == OVER_SOCKETS
    for engine in on_jvms():
        assert {name for name in names() if not incompatibility(name, engine, "kafka")} == ON_JVMS


@pytest.mark.parametrize("workload", names())
def test_every_workload_may_have_several_partitions_over_kafka(workload: str) -> None:
    """With the defaults of everything else."""
    load = {"rate": "1k", "generators": 2}
    values = {"workload": workload, "transport": "kafka", "partitions": 4, "load": load}
    assert check(build(values), new_folder=False).partitions == 4
