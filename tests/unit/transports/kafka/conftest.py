"""A real broker for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streamgauge.core.errors import MachineError
from streamgauge.transports.kafka.broker.broker import Broker, require_jars


@pytest.fixture(scope="session")
def jars() -> None:
    """Kept since an earlier time, or resolved now; without a repository and without them nothing here can be tried."""
    try:
        require_jars()
    except MachineError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def broker(jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One for all of them: each makes topics of its own."""
    folder = tmp_path_factory.mktemp("broker")
    with Broker(folder / "data", folder / "broker.log") as started:
        yield started
