"""The suite runs over the engines of the registry and over the example of another distribution."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streamgauge.engines import registry
from streamgauge.workloads import registry as workloads
from tests.engine_conformance.helpers_expressions import WORKLOAD
from tests.helpers_engine_plugin import install_example


@pytest.fixture
def example(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example's distribution, as if it were installed, and the stream of edge rows, as if a workload had it."""
    install_example(monkeypatch, tmp_path_factory.mktemp("site-packages"))
    monkeypatch.setitem(workloads._all(), WORKLOAD.name, WORKLOAD)
    yield
    monkeypatch.undo()
    registry.declared.cache_clear()
