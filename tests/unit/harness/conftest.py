"""A recorder that listens on the loopback."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from streamgauge.core.clock import Clock
from streamgauge.harness.recorder_process import Recorder, RecorderSettings
from streamgauge.transports.spi import EndpointConfig
from tests.unit.harness.helpers_recorder import TOKEN, Served


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A recorder that listens on the loopback."""
    spool = tmp_path / "spool"
    recorder = Recorder(
        RecorderSettings(EndpointConfig("127.0.0.1", 0, TOKEN), Clock.fixed_now().offset_us, str(spool))
    )
    yield Served(recorder, spool)
    recorder.inlet.shutdown()  # type: ignore[attr-defined]
