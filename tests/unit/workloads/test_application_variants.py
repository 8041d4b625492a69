"""Parameters that make another flow of an application are found by trying them."""

from typing import Any

import pytest

from tests.helpers_application_variants import operators_of, ways_of

KNOWN: list[tuple[str, dict[str, Any]]] = [
    ("click_analytics", {"window": "10s"}),
    ("log_processing", {"volume_counter_window": 60}),
    ("smart_grid", {"second_range": "20s"}),
    ("spam_filter", {"training_share": 0}),
    ("voipstream", {"filter": "bloom"}),
    ("word_count", {"window": "10s"}),
]


@pytest.mark.parametrize(("workload", "parameter"), KNOWN, ids=[name for name, _ in KNOWN])
def test_a_parameter_that_makes_another_flow_is_found(workload: str, parameter: dict[str, Any]) -> None:
    """Choices, numbers of which the least makes it, and numbers of which the least is the default: off."""
    operators = operators_of(workload, parameter)
    assert operators != operators_of(workload, {})
    (name,) = parameter
    assert name in {each for other, parameters in ways_of(workload) if other == operators for each in parameters}
