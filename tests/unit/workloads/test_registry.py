"""Workloads are found, read their parameters, and give jobs that are right; what is wrong is said with a way out."""

import json
import math
from typing import Any

import pytest

from streamgauge.core.errors import InputError
from streamgauge.dataflow import builder, graph
from streamgauge.dataflow.lineage import identity, with_lineage
from streamgauge.dataflow.reach import reach_us
from streamgauge.engines.duckdb_oracle.process_operator import is_independent
from streamgauge.workloads import registry
from tests.unit.helpers_refusals import assert_refused, problem_of
from tests.unit.workloads.helpers_cuts import flow_of, job_of

OUTSIDE: dict[str, tuple[tuple[str, ...], list[int | None]]] = {
    "count": (("gem_pack_id", "event_time"), [None]),
    "filter": (("event_id",), [0]),
    "identity": (("event_id",), [0]),
    "machine_outlier": (("cluster", "machine", "window_end", "reading"), [None]),
    "smart_grid": (("house", "id_window_start"), [12_000_000, None, None]),
    "spam_filter": (("event_id", "event_ordinal"), [None]),
    "spike_detection": (("event_id",), [None]),
    "traffic_monitoring": (("event_id",), [None]),
    "windowed_aggregation": (("gem_pack_id", "window_start"), [8_000_000]),
    "windowed_join": (("purchases_event_id", "ads_event_id", "window_start"), [8_000_000]),
}
"""By what results are known, and the reach of each sink. Columns and names stand in the golden flow documents."""


@pytest.mark.parametrize("name", registry.names())
def test_every_workload_gives_a_job_that_is_right(name: str) -> None:
    """With default parameters, which are all described: the flow checks, its streams are those it reads, and shares add
    up to one.
    """
    job = job_of(name, 100_000.0)
    builder.check(job.flow)
    for one in job.flow.each():  # sinks of one flow may need other lineage of their operators
        builder.check(with_lineage(one))
        assert is_independent(one)  # verification runs no class of the workload's
    streams = {stream.name: stream.schema for stream in job.streams}
    assert {source.name: source.schema for source in graph.sources(job.flow)} == streams
    assert sum(stream.share for stream in job.streams) == pytest.approx(1.0)
    assert all(field.description for field in registry.get(name).parameters.model_fields.values())
    assert registry.get(name).name == name


@pytest.mark.parametrize("name", OUTSIDE)
def test_identity_and_reach(name: str) -> None:
    flows = flow_of(name).each()
    assert (identity(flows[0]), [reach_us(one) for one in flows]) == OUTSIDE[name]


def test_catalogue_is_json() -> None:
    """What `workloads --json` prints is plain data, and names every workload."""
    rows = json.loads(json.dumps(registry.catalogue()))
    assert [row["name"] for row in rows] == list(registry.names())


def test_a_misspelt_workload_is_met_with_the_nearest() -> None:
    """A typing error costs one look."""
    assert problem_of(registry.get, "windowed_agregation").way_out.startswith("windowed_aggregation (")


BAD = [
    ("windowed_aggregation", {"slide": "abc"}, "must be a time", "slide"),
    ("windowed_aggregation", {"range": 0}, "above 0", "range"),
    ("windowed_aggregation", {"packs": 0}, "at least 1", "packs"),
    ("windowed_aggregation", {"packs": "many"}, "whole number", "packs"),
    ("windowed_aggregation", {"distribution": "gauss"}, "normal", "distribution"),
    ("windowed_aggregation", {"pack": 3}, "is not a parameter of windowed_aggregation", "packs"),
    ("windowed_join", {"selectivity": 0}, "above 0", "selectivity"),
    ("filter", {"payload_bytes": -1}, "at least 0", "payload_bytes"),
    ("throughput", {"message_bytes": 65_537}, "at most 65536", "message_bytes"),
    ("bargain_index", {"bi.vwap.period": "yearly"}, "minutely", "vwap_period"),
    ("fraud_detection", {"fd.detection.algorithm": "guess"}, "missProbability", "detection_algorithm"),
    ("sentiment_analysis", {"sa.classifier.type": "lingpipe"}, "scorers, basic", "classifier_type"),
    ("voipstream", {"vs.filter": "cuckoo"}, "exact, bloom", "filter"),
]


@pytest.mark.parametrize(("name", "values", "rule", "way_out"), BAD)
def test_bad_parameters_are_refused(name: str, values: dict[str, object], rule: str, way_out: str) -> None:
    """Each names the parameter, the rule, the value got, and what to set."""
    problem = problem_of(registry.get(name).read, values)
    assert rule in problem.rule
    assert way_out in problem.way_out
    assert problem.got == next(iter(values.values()))


BUILT = [
    ("machine_outlier", {"mo.anomaly_scorer.window_length": 0}, "anomaly_scorer_window_length: must be at least 1"),
    ("machine_outlier", {"interval": "2h"}, "set interval: must be at least 0.001 and at most 3600"),
    ("traffic_monitoring", {"map_matcher_radius": math.nan}, "set map_matcher_radius"),
    ("traffic_monitoring", {"tm.speed_calculator.window": 1}, "set speed_calculator_window: must be at least 2"),
    ("smart_grid", {"slices_per_day": 2}, "set slices_per_day: must be at least 3 and at most .*; got 2"),
    ("smart_grid", {"range": "5s", "slide": "2s"}, "slide: must divide the range 5s; got '2s'"),
    ("smart_grid", {"range": "2s", "slide": "4s"}, "slide 4s is longer than its range 2s"),
    ("smart_grid", {"range": "10s", "slice_length": "11s"}, "slice_length: must be at most the range 10s"),
    ("smart_grid", {"slide": "2s", "second_range": "5s"}, "second_range: must be a multiple of the slide 2s; got .5s"),
    ("voipstream", {"vs.fofir.threshold.max": 2.0}, "fofir_threshold_max: must be above fofir_threshold_min"),
    ("voipstream", {"url_threshold_min": 1.0}, "url_threshold_max: must be above url_threshold_min"),
    ("voipstream", {"ecr.beta": 0.9672}, "ecr_beta: is not a parameter"),
    ("voipstream", {"generator_population": 8}, r"called\.contacts"),
    ("reinforcement_learner", {"actions": "page1"}, "set actions"),
    ("reinforcement_learner", {"actions": "a,a", "distribution": "1/1,2/2"}, "set actions"),
    ("reinforcement_learner", {"actions": "a,it's", "distribution": "1/1,2/2"}, "set actions"),
    ("reinforcement_learner", {"actions": "a,b"}, "set distribution"),
    ("reinforcement_learner", {"distribution": "30/12,60/30,80"}, "set distribution"),
    ("reinforcement_learner", {"distribution": "30/12,60/30,10001/10"}, "set distribution"),
    ("reinforcement_learner", {"confidence_limit": 40}, "set min_confidence_limit"),
    ("spam_filter", {"training_share": 1}, "set training_share"),
]


@pytest.mark.parametrize(("name", "values", "message"), BUILT)
def test_what_no_flow_can_be_built_of_is_refused(name: str, values: dict[str, object], message: str) -> None:
    """By the shown name and the rule, whichever of two parameters that do not go together was given."""
    assert_refused(message, job_of, name, 100_000.0, **values)


THESIS: dict[str, dict[str, Any]] = {
    "bargain_index": {"bi.vwap.period": "hourly", "bi.vwap.window": 3, "bi.bargainindex.threshold": 0.5},
    "fraud_detection": {
        "fd.state.seq.window.size": 3, "fd.detection.algorithm": "missRate", "fd.metric.threshold": 0.5,
    },
    "log_processing": {"lp.volume_counter.window": 60},
    "machine_outlier": {"mo.anomaly_scorer.window_length": 5},
    "reinforcement_learner": {"rl.min.reward.distr.sample": 7, "rl.bin.width": 3},
    "smart_grid": {"sg.slice.length": "60s", "sg.slices_per_day": 1440, "sg.range": "1h"},
    "spam_filter": {"sf.bayesrule.spam_probability": "0.8"},
    "spike_detection": {"sd.moving_average.window": 5, "sd.spike_detector.threshold": "0.5"},
    "traffic_monitoring": {"tm.map_matcher.radius": 20, "tm.speed_calculator.window": "6"},
    "voipstream": {"vs.generator.population": 50, "vs.acd.decay_factor": "1.0", "vs.variation.aprox_size": "9"},
    "trending_topics": {"tt.topk": 3, "tt.window": "4s", "tt.frequency": "1s"},
}  # fmt: skip


@pytest.mark.parametrize("name", THESIS)
def test_parameters_have_the_names_of_the_thesis(name: str) -> None:
    """With its prefix and its dots; each sets the parameter that it names."""
    read, usual = (registry.get(name).read(values).model_dump() for values in (THESIS[name], {}))
    changed = {key for key, value in read.items() if value != usual[key]}
    assert changed == {key.partition(".")[2].replace(".", "_") for key in THESIS[name]}


def test_all_problems_come_at_once() -> None:
    """Three mistakes, three problems, one error."""
    with pytest.raises(InputError) as refused:
        registry.get("windowed_aggregation").read({"pack": 1, "packs": 0, "slide": "x"})
    assert len(refused.value.problems) == 3


@pytest.mark.parametrize("name", ["windowed_aggregation", "windowed_join"])
def test_a_slide_longer_than_the_range_is_refused(name: str) -> None:
    """The house's message, before anything is started."""
    assert problem_of(flow_of, name, slide="9s").way_out == "--set slide=8s (tumbling), or --set range=9s"


@pytest.mark.parametrize(
    ("name", "meant"), [("dat", "data"), ("Data", "data"), ("spike_detector_treshold", "spike_detector_threshold")]
)
def test_a_misspelt_setting_is_met_with_the_nearest(name: str, meant: str) -> None:
    """A workload's own parameters, and the rows that every workload may be given."""
    assert problem_of(registry.get("spike_detection").read, {name: "x"}).way_out == f"--set {meant}=..."
