"""core/former_names.py: what earlier versions wrote is read by the names of today."""

import pytest

from streamgauge.config.experiment import build
from streamgauge.config.matrix import expand
from streamgauge.core.former_names import with_present_names
from streamgauge.results.scalability import ScaleResult
from tests.unit.cli.helpers_commands import result_of


@pytest.mark.parametrize(("stored", "read"), [
    ({"transport": "flight"}, {"transport": "memory"}),
    ({"transport": "kafka", "seed": 1}, {"transport": "kafka", "seed": 1}),
    ({}, {}),
    (None, None),
])  # fmt: skip
def test_stored_settings_have_the_names_of_today(stored: object, read: object) -> None:
    assert with_present_names(stored) == read


def test_an_experiment_file_is_read() -> None:
    """Its transport, that of a table, and those of a matrix."""
    assert build({"workload": "identity", "transport": "flight"}).transport == "memory"
    assert build({"workload": "identity", "transport": {"name": "flight"}}).transport == "memory"
    matrix = build({"workload": "identity", "matrix": {"transport": ["flight", "kafka"]}})
    assert [cell.experiment.transport for cell in expand(matrix)] == ["memory", "kafka"]


def test_a_result_is_read() -> None:
    stored = result_of("sustained").model_dump(mode="json") | {"experiment": {"transport": "flight"}}
    assert type(result_of("sustained")).model_validate(stored).experiment == {"transport": "memory"}
    assert ScaleResult.model_fields["transport"].metadata
