"""What the address of a local master says."""

from __future__ import annotations

import pytest

from streamgauge.engines.spark.session.masters import is_local, is_valid_local, local_slots


@pytest.mark.parametrize(
    ("master", "valid", "slots"),
    [
        ("local", True, 1),
        ("local[4]", True, 4),
        ("local[2, 3]", True, 2),
        ("local[*]", True, None),
        ("local-cluster[2, 1, 1024]", True, None),
        ("local[0]", False, None),
        ("local[two]", False, None),
        ("local[2", False, None),
    ],
)
def test_masters_on_this_machine(master: str, valid: bool, slots: int | None) -> None:
    """The second number of local[2, 3] counts attempts of a task."""
    assert is_local(master)
    assert (is_valid_local(master), local_slots(master)) == (valid, slots)


@pytest.mark.parametrize("master", ["", "spark://local:7077", "yarn", "k8s://local"])
def test_masters_elsewhere(master: str) -> None:
    assert (is_local(master), is_valid_local(master), local_slots(master)) == (False, False, None)
