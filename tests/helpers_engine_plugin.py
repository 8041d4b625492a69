"""Engines of other distributions, made discoverable without an installation."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from streamgauge.engines import registry
from tests.helpers_modules import ROOT

EXAMPLE = ROOT / "examples" / "engine_plugin"
ENGINE = "python-consumer"


def distribution(folder: Path, name: str, engines: Mapping[str, str]) -> None:
    """What an installation of a distribution leaves beside its code: its name, and its entry points."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    points = "".join(f"{engine} = {value}\n" for engine, value in engines.items())
    (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{points}")


def on_path(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """As if these were site-packages, for this process and those that it starts; the registry looks anew."""
    for folder in folders:
        monkeypatch.syspath_prepend(str(folder))
    paths = [*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.setattr(registry, "_plugins", {})
    registry.declared.cache_clear()


def install_example(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """The example, by the entry points that its pyproject.toml declares."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    distribution(folder, project["name"], project["entry-points"][registry.GROUP])
    on_path(monkeypatch, folder, EXAMPLE)
