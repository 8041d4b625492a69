"""What the tests on a real Spark share."""

from __future__ import annotations

import pytest
from tests.helpers_restart import Restart


@pytest.fixture
def restart() -> Restart:
    return Restart()
