"""The suite runs over the engines of the registry and over the example of another distribution."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streamgauge.engines import registry
from tests.helpers_engine_plugin import install_example


@pytest.fixture
def example(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example's distribution, as if it were installed."""
    install_example(monkeypatch, tmp_path_factory.mktemp("site-packages"))
    yield
    monkeypatch.undo()
    registry.declared.cache_clear()
