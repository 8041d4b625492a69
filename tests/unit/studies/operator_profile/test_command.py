"""How slices are asked for: what is read of the command line, which slices count, and what is kept of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from streamgauge.config.options_and_settings import Characterize, Experiment, build
from streamgauge.core.errors import InputError
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import source
from streamgauge.engines.operator_profiler import IsolatedOperator, Samples, Slice
from streamgauge.engines.spark.user_job import operator_benchmark_client as operator_benchmark_client
from streamgauge.studies.operator_profile import command
from streamgauge.studies.operator_profile.profile import Timings


def asked_for(**sizes: str) -> Experiment:
    return build({"command": "characterize", "workload": "identity", "characterize": sizes})


def unheard(said: str) -> None:
    """Nobody listens."""


def test_words_are_read_as_people_write_them() -> None:
    """10k is 10000 and 1e3 is 1000, as in rates; multipliers come once each."""
    asked = asked_for(slice_events="2.5k", slices="1e3", multipliers="1,2,2").characterize
    assert asked == Characterize(slice_events=2500, slices=1000, multipliers=(1, 2))
    with pytest.raises(InputError, match="whole number"):
        asked_for(slices="1.5")


def test_the_warm_up_counts_among_the_events() -> None:
    """Fifty million of them with it, and none more."""
    asked = {"slices": "4000", "slice_events": "10k"}
    command.check_input(asked_for(**asked, warmup_slices="1000"))
    with pytest.raises(InputError, match="at most 50,000,000 events, warm-up included; got '50,010,000'"):
        command.check_input(asked_for(**asked, warmup_slices="1001"))


@pytest.mark.parametrize(("slices", "told"), [(99, True), (100, False)])
def test_that_slices_are_too_few_is_noted(slices: int, told: bool) -> None:
    """Those that warm up carry no p99."""
    notes = command._notes(Characterize(slices=slices, warmup_slices=20), [])
    assert ("fewer than 100 slices carry no p99, so nothing is advised" in notes) is told


class Spark:
    """A process that times: slice N takes N seconds of 10 rows; one of two fails in slice `breaks`."""

    settings: ClassVar[dict[str, str]] = {"master": "local[1]"}

    def __init__(self, breaks: int) -> None:
        self._breaks = breaks
        self.asked: list[int] = []

    def slice(self, number: int) -> Samples:
        self.asked.append(number)
        samples = {"good": Slice(10, float(number), 0.0)}
        if number < self._breaks:
            samples["breaks"] = Slice(10, 1.0, 0.0)
        return Samples(samples, {"breaks": "it broke"} if number == self._breaks else {})

    def memory_bytes(self) -> int:
        return len(self.asked)


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Callable[[Spark], None]:
    """Operators are timed by this one."""

    def set_(spark: Spark) -> None:
        monkeypatch.setattr(operator_benchmark_client, "benchmark_operators", lambda *_: nullcontext(spark))

    return set_


READY: Any = SimpleNamespace(engine_options={}, experiment=SimpleNamespace(engine="spark"))
NODE = source("numbers", Schema.of(value="int")).node
GOOD, BREAKS = (IsolatedOperator(name, NODE, {}, "__slice") for name in ("good", "breaks"))


@pytest.mark.parametrize("warmup", [0, 1, 3])
def test_slices_that_warm_up_are_thrown_away(on: Callable[[Spark], None], tmp_path: Path, warmup: int) -> None:
    """Every slice is run, in order; only those behind the border are kept, and memory is looked at only then."""
    spark, heard = Spark(breaks=99), list[str]()
    on(spark)
    asked = Characterize(slices=4, warmup_slices=warmup)
    timings, memory, settings = command._time(READY, [GOOD], asked, tmp_path, tmp_path / "log", heard.append)
    assert spark.asked == list(range(4 + warmup))
    assert [each.seconds for each in timings.slices["good"]] == [float(number) for number in range(warmup, warmup + 4)]
    assert timings.methods == {"good": "difference"}
    assert timings.failed == {}
    assert memory
    assert min(memory) >= warmup
    assert settings == Spark.settings
    assert heard[-1] == f"timing   slice {4 + warmup} of {4 + warmup}, {warmup} of them to warm up"


@pytest.mark.parametrize("breaks", [0, 1, 3])
def test_an_operator_that_failed_keeps_no_slice(on: Callable[[Spark], None], tmp_path: Path, breaks: int) -> None:
    """Whether in the warm-up or after some slices: its reason stands alone, and the others go on."""
    on(Spark(breaks))
    asked = Characterize(slices=4, warmup_slices=1)
    timings, _, _ = command._time(READY, [GOOD, BREAKS], asked, tmp_path, tmp_path / "log", unheard)
    assert list(timings.slices) == ["good"]
    assert len(timings.slices["good"]) == 4
    assert timings.failed == {"breaks": "it broke"}


def test_where_nothing_came_in_nothing_is_started(tmp_path: Path) -> None:
    """No operator, no Spark."""
    found = command._time(READY, [], Characterize(), tmp_path, tmp_path / "log", unheard)
    assert found == (Timings(), [], {})
    assert list(tmp_path.iterdir()) == []
