"""The processors of driver and SUT by `--driver-cpus`, `--sut-cpus` and `--isolation`."""

import os
from typing import Any

import pytest

from tests.unit.helpers_requests import GOOD, checked, refused

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture(autouse=True)
def four_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})


@pytest.mark.parametrize(("given", "driver", "sut", "isolation"), [
    ({"cpus": {"driver": "0", "sut": "1-3"}}, (0,), (1, 2, 3), "pinned"),
    ({"cpus": {"driver": 0, "sut": "2,3"}}, (0,), (2, 3), "pinned"),
    ({"cpus": {"driver": "0-1", "sut": "1-3"}}, (0, 1), (1, 2, 3), "shared"),
    ({"isolation": "pinned"}, (0,), (1, 2, 3), "pinned"),
    ({}, None, None, "shared"),
])  # fmt: skip
def test_each_side_gets_its_processors(given: dict[str, Any], driver: Any, sut: Any, isolation: str) -> None:
    """Processors that are separate are an isolation; shared ones are none."""
    resolved = checked(GOOD | given)
    assert (resolved.driver_cpus, resolved.sut_cpus) == (driver, sut)
    assert resolved.experiment.isolation == isolation


@pytest.mark.parametrize(("given", "setting", "says"), [
    ({"cpus": {"driver": "0", "sut": "3-4"}}, "cpus.sut", "0-3; 4 is not among them"),
    ({"cpus": {"driver": "0"}}, "cpus", "both"),
    ({"cpus": "0-1"}, "cpus", "must be a table"),
    ({"cpus": {"driver": "0", "sut": "1", "broker": "2"}}, "cpus.broker", "is not a setting"),
    ({"cpus": {"driver": "all", "sut": "1"}}, "cpus.driver", "such as 0, 1-3"),
    ({"cpus": {"driver": "0", "sut": ""}}, "cpus.sut", "such as 0, 1-3"),
    ({"cpus": {"driver": "0-1", "sut": "1-3"}, "isolation": "pinned"}, "cpus", "must not share processors (1)"),
    ({"cpus": {"driver": "0", "sut": "1"}, "command": "generate"}, "cpus.driver", "is not a setting of generate"),
])  # fmt: skip
def test_other_processors_are_refused(given: dict[str, Any], setting: str, says: str) -> None:
    problem, *_ = refused(GOOD | given)
    assert (problem.setting, says in problem.rule) == (setting, True)


def test_a_default_number_of_generators_follows_the_sut_s_processors() -> None:
    assert checked(GOOD | {"load": {}, "cpus": {"driver": "0", "sut": "1-3"}}).generators == 3
