"""What the tests on a real Spark share."""

from __future__ import annotations

import pytest
from tests.engines.restarting import Restart


@pytest.fixture
def restart() -> Restart:
    return Restart()
