"""Malformed records: each application's rule says which they are, they are made, and its answer is without them."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streamgauge.core.schema import arrow_type
from streamgauge.dataflow import graph
from streamgauge.dataflow.expressions.check import checked
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.duckdb_oracle.engine import Oracle
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.workloads import registry
from streamgauge.workloads.registry import Job
from tests.unit.helpers_duckdb import duckdb_session
from tests.unit.workloads import helpers_cuts
from tests.unit.workloads.helpers_cuts import BOTH, all_rows

GOOD_LINE = '64.242.88.10 - - [07/Mar/2004:16:05:49 -0800] "GET /twiki HTTP/1.1" 401 12846'
Edges = tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]
"""A whole record; what makes it malformed; what does not."""
PAIR: Edges = ({"query_id": 1, "ad_id": 2}, [{"query_id": None}, {"ad_id": None}], [{"ad_id": 0}])
EDGES: dict[tuple[str, str], Edges] = {
    ("log_processing", "lines"): (
        {"line": GOOD_LINE},
        [{"line": line} for line in (None, "", GOOD_LINE[:30], GOOD_LINE.replace("07/Mar", "31/Feb"), GOOD_LINE[:-6])],
        [{"line": GOOD_LINE + ' "agent"'}, {"line": GOOD_LINE.replace("12846", "-")}],
    ),
    ("click_analytics", "clicks"): (
        {"ip": "1.2.3.4", "url": "/a", "client": "7"},
        [{"url": None}, {"url": ""}, *({"client": none, "ip": no} for none in (None, "") for no in (None, ""))],
        [{"client": None}, {"ip": None}, {"client": ""}, {"ip": ""}],
    ),
    ("ads_analytics", "clicks"): PAIR,
    ("ads_analytics", "impressions"): PAIR,
    ("spike_detection", "sensors"): (
        {"device": 1, "temp": 22.0, "humid": 40.0, "light": 300.0, "volt": 2.7},
        [{"device": None}, {"temp": None}, {"temp": math.nan}, {"temp": math.inf}, {"temp": -math.inf}],
        [{"temp": 0.0}, {"temp": -1e308}, {"humid": None}, {"volt": math.nan}],
    ),
    ("bargain_index", "market"): (
        {"stock": 1, "quote": 0, "price": 20.0, "size": 10},
        [{"price": price} for price in (None, 0.0, -1.0, math.nan, math.inf)]
        + [{"size": size} for size in (None, 0, -1)]
        + [{"quote": quote} for quote in (None, -1, 2)]
        + [{"stock": None}],
        [{"price": 1e-300}, {"price": 1e308}, {"size": 1}, {"quote": 1}],
    ),
    ("fraud_detection", "transactions"): (
        {"customer": 1, "state": "LNN"},
        [{"customer": None}] + [{"state": state} for state in (None, "", "lnn", "LNNN", "???")],
        [{"state": "HHS"}],
    ),
    ("machine_outlier", "machines"): (
        {"cluster": 1, "machine": 2, "cpu": 0.5, "memory": 0.5},
        [{name: value} for name in ("cpu", "memory") for value in (None, math.nan, -0.01, 1.01, math.inf)]
        + [{"cluster": None}, {"machine": None}],
        [{"cpu": 0.0}, {"cpu": 1.0}, {"memory": 1.0}, {"cluster": -1}],
    ),
    ("reinforcement_learner", "events"): (
        {"learner": 1, "session": 2, "round": 3},
        [{name: value} for name in ("learner", "session", "round") for value in (None, -1)] + [{"learner": 8}],
        [{"learner": 0}, {"learner": 7}, {"session": 0}, {"round": 0}],
    ),
    ("reinforcement_learner", "rewards"): (
        {"learner": 1, "action": "page1", "reward": 3},
        [{"learner": None}, {"learner": 8}, {"action": None}, {"action": "page4"}, {"reward": None}, {"reward": -1}],
        [{"reward": 0}, {"action": "page3"}],
    ),
    ("smart_grid", "plugs"): (
        {"value": 10.0, "property": 1, "plug_id": 1, "household_id": 2, "house_id": 3},
        [{"value": value} for value in (None, math.nan, -1.0, 1_000_001.0)]
        + [{name: None} for name in ("plug_id", "household_id", "house_id")]
        + [{"property": value} for value in (None, -1, 2)],
        [{"value": 0.0}, {"value": 1e6}, {"property": 0, "value": None}, {"property": 0, "plug_id": None}],
    ),
    ("spam_filter", "training"): (
        {"id": 1, "message": "a b", "spam": True},
        [{"spam": None}],
        [{"spam": False}, {"message": None}, {"message": ""}, {"id": None}],
    ),
    ("spam_filter", "analysis"): ({"id": 1, "message": "a b"}, [{"id": None}], [{"message": None}, {"message": ""}]),
    ("sentiment_analysis", "timeline"): (
        {"id": 1, "lang": "en", "text": "good"},
        [{"id": None}, {"lang": None}, {"text": None}],
        [{"text": ""}, {"lang": "ja"}],
    ),
    ("traffic_monitoring", "traces"): (
        {"taxi": 1, "lat": 39.9, "lon": 116.4, "speed": 50.0},
        [{"speed": speed} for speed in (None, math.nan, -1.0, 500.5)]
        + [{"lat": lat} for lat in (None, math.nan, 90.5, -90.5)]
        + [{"lon": lon} for lon in (None, math.nan, 180.5, -180.5)],
        [{"speed": 0.0}, {"speed": 500.0}, {"lat": 0.0}, {"lon": -180.0}],
    ),
    ("trending_topics", "tweets"): ({"text": "a #b"}, [{"text": None}], [{"text": ""}, {"text": "a"}]),
    ("voipstream", "calls"): (
        {"calling": 1, "called": 2, "duration": 60, "established": 1},
        [{name: value} for name in ("calling", "called", "duration") for value in (None, -1)]
        + [{"called": 1}, {"duration": 86_401}]
        + [{"established": value} for value in (None, -1, 2)],
        [{"duration": 0}, {"duration": 86_400}, {"established": 0}, {"calling": 0}],
    ),
    ("yahoo_streaming", "events"): (
        {"ad_id": 1, "event_type": "view"},
        [{"ad_id": None}, {"event_type": None}, {"ad_id": None, "event_type": "click"}],
        [{"ad_id": -1}, {"ad_id": 2**31 - 1}, {"event_type": ""}, {"event_type": "View"}],
    ),
}  # fmt: skip
WITHOUT_A_RULE = {
    "count": "its one column is a key, and null is a key like any other",
    "filter": "a comparison of one column, which is not true of null",
    "identity": "every record comes out as it came in",
    "scalability_hierarchical": "its aggregates are SQL's, which say themselves what becomes of null",
    "scalability_hopping": "its aggregates are SQL's, which say themselves what becomes of null",
    "scalability_sink": "every record comes out, and nulls stay nulls",
    "scalability_tumbling": "its aggregates are SQL's, which say themselves what becomes of null",
    "stamped_text": "every record comes out, and one that is none comes out as nulls",
    "throughput": "every record comes out, and what is in it is not looked at",
    "windowed_aggregation": "its aggregates are SQL's, which say themselves what becomes of null",
    "windowed_join": "its join is SQL's, which says itself what becomes of null",
    "word_count": "a line without a word, empty or null, is whole and has no row",
}
"""The workloads that call nothing malformed, and why. The others have a rule for each of their streams."""
WITH_A_RULE = [
    name for name in registry.names() if registry.get(name).build(registry.get(name).parameters(), 1000.0).malformed
]
EACH = pytest.mark.parametrize("name", WITH_A_RULE)
RATE, SECONDS = 400.0, 2.0
ODD: dict[str, list[Any]] = {
    "int": [None, -1, 0, 2**31 - 1],
    "bigint": [None, -1, 0],
    "double": [None, math.nan, math.inf, -math.inf, -1.0, 0.0, 1e300],
    "boolean": [None],
    "string": [None, "", "???", "x"],
}
SMALL: dict[str, dict[str, Any]] = {
    "ads_analytics": {"window": "1s", "frequency": "500ms", "queries": 10, "clicks": 0.5},
    "smart_grid": {"range": "1s", "slide": "500ms", "slice_length": "500ms", "houses": 1},
    "machine_outlier": {"interval": "500ms", "machines": 40, "clusters": 1, "overloaded": 0.2},
    "fraud_detection": {"customers": 20, "metric_threshold": 0.8},
    "bargain_index": {"stocks": 10},
    "reinforcement_learner": {"rewards": 0.5, "min_reward_distr_sample": 2, "learners": 8},
    "spam_filter": {"words": 5, "vocabulary": 100},
    "spike_detection": {"spikes": 0.1},
    "traffic_monitoring": {"streets": 2, "map_matcher_radius": 100},
    "trending_topics": {"window": "1s", "frequency": "500ms"},
    "voipstream": {"generator_population": 20, "contacts": 3, "scorer_threshold": 0},
}
"""Parameters with which much comes out of little."""


def job_of(name: str, **parameters: Any) -> Job:
    return helpers_cuts.job_of(name, RATE, **SMALL.get(name, {}) | parameters)


def is_malformed(job: Job, stream: str, records: pa.Table) -> pa.Array:
    """What the rule says of each record."""
    (spec,) = (each for each in job.streams if each.name == stream)
    rule = checked(job.malformed[stream], spec.schema.types(), stream).duckdb
    with duckdb_session() as connection:
        connection.register("records", records)
        results = connection.sql(f"SELECT coalesce({rule}, false) AS malformed FROM records").to_arrow_table()
    return results.column("malformed").combine_chunks()


def test_every_application_that_takes_records_apart_states_a_rule() -> None:
    """A rule for each stream of every workload but those that say why they have none, each with its edges above."""
    expected = {
        (name, each.name) for name in registry.names() if name not in WITHOUT_A_RULE for each in job_of(name).streams
    }
    assert {(name, stream) for name in WITH_A_RULE for stream in job_of(name).malformed} == expected == set(EDGES)
    assert WITHOUT_A_RULE.keys() <= set(registry.names())


@EACH
def test_rules_are_conditions_over_their_streams(name: str) -> None:
    """Also with other parameters than the defaults; a thousandth is malformed by default, so that a run meets some."""
    job_of(name).check_rules()
    assert registry.get(name).parameters.model_fields["malformed"].default == 0.001


@pytest.mark.parametrize(("name", "parameters", "stream", "part"), [
    ("spike_detection", {"parser_value_field": "volt"}, "sensors", "volt"),
    ("reinforcement_learner", {"actions": "a,b", "distribution": "1/1,2/2"}, "rewards", "'a', 'b'"),
    ("spam_filter", {"training_share": 0}, "analysis", "id"),
])  # fmt: skip
def test_the_rule_follows_parameters(name: str, parameters: dict[str, Any], stream: str, part: str) -> None:
    """The quantity that is looked at, the actions there are, whether there is a training."""
    rules = job_of(name, **parameters).malformed
    assert part in rules[stream]
    assert "training" not in rules


@pytest.mark.parametrize(("name", "stream"), EDGES)
def test_edges_worked_by_hand(name: str, stream: str) -> None:
    """What the application's docstring calls malformed, and nothing else."""
    job, (whole, malformed, others) = job_of(name), EDGES[name, stream]
    (spec,) = (each for each in job.streams if each.name == stream)
    records = [whole, *(whole | change for change in (*others, *malformed))]
    types = pa.schema([(field, arrow_type(kind)) for field, kind in spec.schema.types().items()])
    results = is_malformed(job, stream, pa.Table.from_pylist(records, types)).to_pylist()
    assert results == [False] * (1 + len(others)) + [True] * len(malformed)


@EACH
@pytest.mark.parametrize("share", [0.2, 0.0])
def test_malformed_records_are_made(name: str, share: float) -> None:
    """In the share of the parameter, in a stream at least; none of them where that is 0."""
    job = job_of(name, malformed=share)
    plan = Plan(job.streams, parse_profile("constant", 20_000.0, 1.0), 0, 1.0, 2, 1)
    shares = [
        pc.mean(is_malformed(job, stream.name, all_rows(plan, number, stream.schema.names))).as_py()
        for number, stream in enumerate(job.streams)
    ]
    half = 0.5 if name == "smart_grid" else 1.0  # half of its readings are of work, which is not looked at
    assert max(shares) == pytest.approx(half * share, abs=0.03)


def odd_input(job: Job, seed: int) -> dict[str, pa.Table]:
    """Two seconds of each stream, a fifth of it malformed as made; of the fields of rules a tenth is odd besides."""
    plan = Plan(job.streams, parse_profile("constant", RATE, SECONDS), 0, SECONDS, 2, seed)
    random = np.random.default_rng(seed)
    inputs = {}
    for number, stream in enumerate(job.streams):
        rows = all_rows(plan, number, (*stream.schema.names, "event_time", "event_id"))
        types = stream.schema.types()
        for field in sorted(checked(job.malformed[stream.name], types, stream.name).columns):
            odd = pa.array(ODD[types[field]], arrow_type(types[field]))
            drawn = odd.take(pa.array(random.integers(0, len(odd), rows.num_rows)))
            mixed = pc.if_else(pa.array(random.random(rows.num_rows) < 0.1), drawn, rows.column(field))
            rows = rows.set_column(rows.schema.get_field_index(field), field, mixed)
        inputs[stream.name] = rows.append_column("ingest_time", rows.column("event_time")).combine_chunks()
    return inputs


def answer(flow: Flow, inputs: dict[str, pa.Table]) -> Counter[tuple[Any, ...]]:
    """The flow's results as a multiset; doubles to nine digits, as sums may be added up in another order."""
    with duckdb_session() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        needed = {name: inputs[name] for name in {source.name for source in graph.sources(flow)}}
        rows = Oracle().answer(with_lineage(flow), needed, connection).to_arrow_table().to_pylist()
    return Counter(tuple(f"{v:.9g}" if isinstance(v, float) else v for v in row.values()) for row in rows)


@EACH
@BOTH
def test_the_answer_is_that_of_the_input_without_malformed_records(name: str, variant: Any) -> None:
    """Records of which the rule is true give nothing and change nothing, odd ones of every kind among them."""
    job = job_of(name, malformed=0.2)
    inputs = odd_input(job, 1)
    malformed = {stream: is_malformed(job, stream, table) for stream, table in inputs.items()}
    assert all(pc.any(each).as_py() for each in malformed.values())
    whole = {stream: table.filter(pc.invert(malformed[stream])) for stream, table in inputs.items()}
    for flow in job.flow.each():
        expected = answer(variant(flow), whole)
        assert answer(variant(flow), inputs) == expected
        assert expected.total() > 5
