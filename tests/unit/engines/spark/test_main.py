"""The SUT's own process: what it says when its JVM has ended."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.core.errors import EngineError
from streamgauge.engines.spark import main


def test_a_call_that_fails_because_the_jvm_ended_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused connection, or a batch that ended by it; another failure keeps its own words."""

    def refused() -> dict[str, Any]:
        raise ConnectionRefusedError(111, "Connection refused")

    dead = {"alive": False, "reason": "[Errno 111] Connection refused"}
    for status in (refused, lambda: dead):
        monkeypatch.setattr(main, "jvm_ended", lambda: "Spark's JVM ended (SIGKILL)")
        with pytest.raises(EngineError, match=r"JVM ended \(SIGKILL\)"):
            main.checked_jvm(status)
    monkeypatch.setattr(main, "jvm_ended", lambda: "")
    assert main.checked_jvm(lambda: dead) == dead
    with pytest.raises(ConnectionRefusedError):
        main.checked_jvm(refused)
