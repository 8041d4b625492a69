"""The broker of the tests of programs."""

from collections.abc import Iterator

import pytest

from streamgauge.transports.kafka.broker import Broker
from tests.helpers_broker_trials import require_jars


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One for the tests of a module, with no group or topic of other tests; a run gets its address only."""
    require_jars("external")
    folder = tmp_path_factory.mktemp("broker")
    with Broker(folder / "data", folder / "broker.log") as one:
        yield one
