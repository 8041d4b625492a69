"""Settings of every test."""

import pytest
from hypothesis import settings

from streamgauge.errors import MachineError
from streamgauge.system.java import find_java

# No test may depend on how fast this machine is just now.
settings.register_profile("streamgauge", deadline=None)
settings.load_profile("streamgauge")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Without a Java every test on Spark would fail for itself, minutes later."""
    if session.config.option.collectonly or not any(item.get_closest_marker("spark") for item in session.items):
        return
    try:
        find_java()
    except MachineError as error:
        pytest.exit(str(error), returncode=error.exit_code)
