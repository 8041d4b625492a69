"""What there is, by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from streamgauge.core.errors import InputError
from streamgauge.core.plugin_options import IDIOMATIC, TUNED
from streamgauge.engines import registry
from streamgauge.engines.spi import StartRequest
from streamgauge.transports.registry import NAMES


def test_every_engine_is_under_its_own_name() -> None:
    """And has only transports and tuning profiles that there are."""
    for name, each in registry.capabilities().items():
        assert each.name == name
        assert set(each.transports) <= set(NAMES)
        assert set(each.profiles) <= {TUNED, IDIOMATIC}


@pytest.mark.parametrize("name", registry.streaming_engines())
def test_every_engine_that_runs_streams_can_be_made_and_refuses(name: str) -> None:
    """A fresh start each time; an option that nobody has is refused."""
    make = registry.starter_of(name, None)
    assert make() is not make()
    with pytest.raises(InputError, match="no_such_option"):
        registry.entry(name).check(StartRequest(None, {"no_such_option": "1"}, None, "common"))


def test_the_list_loads_no_engine() -> None:
    """`streamgauge engines` is answered at once, and where Spark is not installed."""
    code = "import sys, streamgauge.engines.registry as c; c.matrix(); assert 'pyspark' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
