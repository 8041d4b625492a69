"""bench/kafka/kafka_spark.py: which rate counts, and what is compared. No run is started."""

from typing import Any
from unittest.mock import Mock

import pytest

from bench.kafka import kafka_spark
from bench.support import run_command


def made(rate_per_s: float, driver: float, sut: float) -> dict[str, Any]:
    """As much of a result as is looked at; parts of the system count once."""
    used = {"driver": driver, "sut": sut, "sut_part": sut}
    processes = [{"role": role, "cpu_percent_mean": percent} for role, percent in used.items()]
    return {"processes": processes, "rate": {"ingested_per_s": rate_per_s}}


def test_the_goal_is_tried_first_and_then_the_floor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was not sustained is reported, and the lower rate counts."""
    ends = [RuntimeError("not sustained: slow"), made(250_000, 50, 50), made(500_000, 50, 50)]
    monkeypatch.setattr(run_command, "result", result := Mock(side_effect=ends))
    monkeypatch.setattr(kafka_spark, "REPEATS", 1)
    rate, ratio = kafka_spark.main()
    runs = [(("kafka" in call.args[0].more), call.args[0].rate) for call in result.call_args_list]
    assert runs == [(True, "500k"), (True, "250k"), (False, "500k")]
    assert (rate["value"], rate["floor"], rate["goal"], ratio["value"]) == (250_000, 250_000, 500_000, 0.5)
    assert "not sustained: slow" in capsys.readouterr().err
