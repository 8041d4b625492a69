"""Python files as modules, without a package around them."""

import importlib.util
import types
from pathlib import Path

ROOT = Path(__file__).parents[1]


def load(path: Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(f"loaded_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
