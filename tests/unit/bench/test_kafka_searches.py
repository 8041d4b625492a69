"""bench/kafka/kafka_searches.py: which searches are made, and what a row says. No search is started."""

from typing import Any
from unittest.mock import Mock

import pytest

from bench.kafka import kafka_searches


def found(rate_per_s: float | None) -> dict[str, Any]:
    """As much of a result as is looked at; parts of the system count once."""
    used = [("generator 0", "driver", 30.0), ("recorder", "driver", 10.0), ("broker", "broker", 50.0)]
    used += [("sut 1", "sut", 80.0), ("java", "sut_part", 80.0)]
    processes = [{"name": name, "role": role, "cpu_percent_mean": percent} for name, role, percent in used]
    search = {"sustained_per_s": rate_per_s, "seconds": 300.0, "trials": [1, 2, 3]}
    return {"processes": processes, "search": search, "reference_work_us": 2600.0}


def test_every_floor_is_of_a_case() -> None:
    assert {*kafka_searches.FLOORS, *kafka_searches.IN_TABLE} <= set(kafka_searches.CASES)


def test_a_row_names_minutes_and_each_role(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rate per CPU second is that of the engine alone; a program needs no transport option."""
    monkeypatch.setattr(kafka_searches, "run_search", search := Mock(return_value=found(400e3)))
    monkeypatch.setattr(kafka_searches.os, "cpu_count", lambda: 2)
    (row,) = kafka_searches.main()
    assert (row["value"], row["floor"], row["goal"]) == (400e3, 400e3, 700e3)
    assert "5.0 min, 3 trials; CPU driver 40 %, broker 50 %, engine 80 %" in row["note"]
    assert "200 k/s per core, 500 k/s per CPU second of the engine; reference work 2.6 ms" in row["note"]
    kafka_searches.measured("program")
    assert ["--transport" in call.args[1] for call in search.call_args_list] == [True, False]


def test_a_search_without_a_rate_misses_its_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it ended without one, or failed to run."""
    for result in (found(None), None):
        monkeypatch.setattr(kafka_searches, "run_search", lambda *_, result=result: result)
        assert kafka_searches.main()[0]["value"] == 0.0
