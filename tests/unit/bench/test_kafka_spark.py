"""bench/kafka/kafka_spark.py: which rate counts, and what is compared. No run is started."""

from __future__ import annotations

from typing import Any

import pytest

from bench.kafka import kafka_spark
from bench.kafka.kafka_spark import FLIGHT, KAFKA
from bench.support import run_command
from bench.support.run_command import RunCase


def made(rate_per_s: float, driver: float, sut: float) -> dict[str, Any]:
    """As much of a result as is looked at; parts of the system count once."""
    used = {"driver": driver, "sut": sut, "sut_part": sut}
    processes = [{"role": role, "cpu_percent_mean": percent} for role, percent in used.items()]
    return {"processes": processes, "rate": {"ingested_per_s": rate_per_s}}


def test_both_sides_are_the_same_but_for_the_transport() -> None:
    """Two generators each: over a broker, two partitions."""
    assert KAFKA.more == ("--transport", "kafka", "--generators", "2")
    assert FLIGHT.more == ("--generators", "2")


def test_the_goal_is_tried_first_and_then_the_floor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was not sustained is told of, and the lower rate counts."""
    runs: list[tuple[bool, str]] = []

    def result(one: RunCase) -> dict[str, Any]:
        kafka = "kafka" in one.more
        runs.append((kafka, one.rate))
        if kafka and one.rate == "500k":
            raise RuntimeError("not sustained: slow")
        return made(250_000, 50, 50) if kafka else made(500_000, 50, 50)

    monkeypatch.setattr(run_command, "result", result)
    monkeypatch.setattr(kafka_spark, "REPEATS", 1)
    rate, ratio = kafka_spark.main()
    assert runs == [(True, "500k"), (True, "250k"), (False, "500k")]
    assert (rate["value"], rate["floor"], rate["goal"]) == (250_000, 250_000, 500_000)
    assert ratio["value"] == 0.5
    assert "not sustained: slow" in capsys.readouterr().err
