"""The known engine's options."""

import pytest

from streamgauge.core.clock import US
from streamgauge.core.errors import InputError
from streamgauge.core.schema import Schema
from streamgauge.dataflow.nodes import Flow, Sink, Source
from streamgauge.engines.spi import Edge, Edges, StartRequest
from streamgauge.engines.synthetic.main import Sut, SyntheticJob
from streamgauge.engines.synthetic.options import Stall, read_options
from streamgauge.engines.synthetic.plugin import SyntheticPlugin


def test_options_are_read_with_their_units() -> None:
    """Rates and times are written as people write them."""
    options = read_options({"capacity": "500k", "batch": "1s", "stall": "2s@12s", "fault": "drop"})
    assert options.capacity_per_s == 500_000
    assert options.stall == Stall(2_000_000, 12_000_000)
    assert (options.batch_us, options.fault) == (1_000_000, "drop")
    unsteady = read_options({"jitter": "0.2", "slowing": ".03"})
    assert (unsteady.jitter, unsteady.degradation) == (0.2, 0.03)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("capacity", "0"),
        ("capacity", "fast"),
        ("batch", "-1s"),
        ("batch", "soon"),
        ("stall", "2s"),
        ("stall", "2s@soon"),
        ("jitter", "1"),
        ("jitter", "-0.1"),
        ("slowing", "fast"),
        ("fault", "explode"),
        ("fault_every", "0"),
        ("fault_every", "1.5"),
        ("spark.sql.shuffle.partitions", "4"),
    ],
)
def test_a_bad_value_is_refused_by_name(name: str, value: str) -> None:
    """The message names the option and the value got."""
    with pytest.raises(InputError) as refused:
        read_options({name: value})
    (problem,) = refused.value.problems
    assert problem.setting == f"option {name}"
    assert problem.way_out.startswith((f"--option {name}=", "one of capacity, "))


def test_what_means_nothing_here_is_refused_with_the_options() -> None:
    """A master is Spark's, and partitions are cut at one event time; both beside what is wrong with an option."""
    with pytest.raises(InputError) as refused:
        SyntheticPlugin().check(StartRequest(None, {"capacity": "x"}, "local[2]", "free"))
    assert [problem.setting for problem in refused.value.problems] == ["option capacity", "load.frontier", "master"]
    SyntheticPlugin().check(StartRequest(None, {"capacity": "1k"}, None, "common"))


@pytest.mark.parametrize("instances", [1, 4])
def test_an_engine_has_the_capacity_of_its_instances(instances: int) -> None:
    """The option states that of one: 100 events take one of them a second."""
    purchases = Source("purchases", Schema.from_types(price="int"))
    edges = Edges((), Edge("grpc://127.0.0.1:1", "token"), {"purchases": ("price",)})
    pace = Sut(SyntheticJob(Flow((Sink(purchases, "out", "append"),)), edges, {"capacity": "100"}, instances))._pace
    before_us = pace.free_us
    pace.take_on(100)
    assert pace.free_us - before_us == pytest.approx(US / instances)
