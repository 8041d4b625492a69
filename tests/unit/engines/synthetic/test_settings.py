"""The known engine's options."""

from __future__ import annotations

import pytest

from streamgauge.core.errors import InputError
from streamgauge.engines.spi import StartRequest
from streamgauge.engines.synthetic.plugin import SyntheticPlugin
from streamgauge.engines.synthetic.settings import Stall, read_options


def test_defaults_are_a_plain_consumer() -> None:
    """Without options there is a capacity, and nothing is planted."""
    options = read_options({})
    assert options.capacity_per_s == 100_000
    assert (options.batch_us, options.stall, options.fault, options.clock_skew_us) == (0, None, "none", 0)
    assert (options.jitter, options.degradation) == (0, 0)


def test_options_are_read_with_their_units() -> None:
    """Rates and times are written as people write them; a lie may be negative."""
    options = read_options({"capacity": "500k", "batch": "1s", "stall": "2s@12s", "fault": "drop", "lie": "-5s"})
    assert options.capacity_per_s == 500_000
    assert options.stall == Stall(2_000_000, 12_000_000)
    assert (options.batch_us, options.fault, options.clock_skew_us) == (1_000_000, "drop", -5_000_000)
    unsteady = read_options({"jitter": "0.2", "slowing": ".03"})
    assert (unsteady.jitter, unsteady.degradation) == (0.2, 0.03)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("capacity", "0"),
        ("capacity", "fast"),
        ("batch", "-1s"),
        ("stall", "2s"),
        ("stall", "2s@soon"),
        ("jitter", "1"),
        ("jitter", "-0.1"),
        ("slowing", "fast"),
        ("fault", "explode"),
        ("fault_every", "0"),
        ("fault_every", "1.5"),
        ("lie", "--5s"),
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
