"""The file of a cluster's state is whole at any moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamgauge.engines.local_cluster import Cluster, Member
from streamgauge.engines.spark.cluster import state
from tests.unit.engines.spark.cluster.conftest import MASTER


def test_a_write_that_breaks_off_leaves_the_state_of_before(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else `stop` would find no cluster, and its processes would be nobody's."""
    state.owned_folder()
    before = Cluster(MASTER, 1, 1, 2**30, (0,), (Member("master", 1, 0.0, "master.log"),))
    state.write(before)

    def break_off(path: Path, text: str, *_: Any, **__: Any) -> int:
        path.write_bytes(text[:20].encode())
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "write_text", break_off)
    with pytest.raises(OSError, match="no space left"):
        state.write(Cluster(MASTER, 1, 1, 2**30, (0,)))
    assert state.read() == before
