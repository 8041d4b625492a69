"""The capacity of several instances of the known engine, by its options."""

from __future__ import annotations

import random
import statistics

import pytest

from streamgauge.core.clock import US
from streamgauge.core.errors import InputError
from streamgauge.core.schema import Schema
from streamgauge.dataflow.nodes import Flow, Sink, Source
from streamgauge.engines.spi import Edge, Edges
from streamgauge.engines.synthetic.main import Sut, SyntheticJob
from streamgauge.engines.synthetic.scaling import ScalingOptions
from streamgauge.engines.synthetic.settings import read_options


@pytest.mark.parametrize(
    ("options", "capacities"),
    [
        ({}, [100, 200, 400]),
        ({"contention": "0.5"}, [100, 133.3, 160]),
        ({"coherency": "0.1"}, [100, 166.7, 181.8]),
        ({"knee": "2"}, [100, 200, 200]),
    ],
)
def test_instances_follow_the_law(options: dict[str, str], capacities: list[float]) -> None:
    """One instance has the stated capacity, whatever the law."""
    scaling = read_options(options).scaling
    assert [scaling.capacity(100, n) for n in (1, 2, 4)] == pytest.approx(capacities, rel=0.001)


@pytest.mark.parametrize("instances", [1, 4])
def test_an_engine_has_the_capacity_of_its_instances(instances: int) -> None:
    """The option states that of one: 100 events take one of them a second."""
    purchases = Source("purchases", Schema.from_types(price="int"))
    edges = Edges((), Edge("grpc://127.0.0.1:1", "token"), {"purchases": ("price",)})
    flow = Flow((Sink(purchases, "out", "append"),))
    pace = Sut(SyntheticJob(flow, edges, {"capacity": "100"}, instances))._pace
    before_us = pace.free_us
    pace.take_on(100)
    assert pace.free_us - before_us == pytest.approx(US / instances)


def test_noise_differs_from_start_to_start() -> None:
    """Around the capacity, and never to nothing."""
    chance = random.Random(1)
    found = [ScalingOptions(noise=0.1).capacity(100, 1, chance) for _ in range(400)]
    assert statistics.mean(found) == pytest.approx(100, abs=2)
    assert statistics.stdev(found) == pytest.approx(10, abs=1)
    assert min(ScalingOptions(noise=0.99).capacity(100, 1, chance) for _ in range(400)) == 10


@pytest.mark.parametrize(("name", "value"), [("contention", "1"), ("coherency", "-1"), ("noise", "x"), ("knee", "1.5")])
def test_a_bad_law_is_refused_by_name(name: str, value: str) -> None:
    """With a way out."""
    with pytest.raises(InputError) as refused:
        read_options({name: value})
    (problem,) = refused.value.problems
    assert problem.way_out.startswith(f"--option {name}=")
