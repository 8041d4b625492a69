"""tools/size.py, on a planted package where each number is known."""

import ast
from pathlib import Path

import pytest

from tools import size

FILES = {
    "__init__": '"""Root."""',
    "crumb": "",
    "excused": '"""Small, and a module\nof its own because of this test."""',
    "named": "",
    "counted": "WORKLOAD = 1",
    "twice": "",
    "long": "\n" * size.CRUMB_LINES,
    "door": 'from planted import crumb, excused, named, counted, twice, long\nNAME = "planted.named:Class"',
    "trial/__init__": "",
    "trial/run": "from planted import door\ndef late():\n    from planted.trial.parts import far",
    "trial/parts/__init__": "from planted.trial import run",
    "trial/parts/far": "import planted.twice\nimport planted.trial.parts",
}
"""The pair: trial imports trial.parts late, and is imported by it."""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> size.Package:
    folder = tmp_path / "src" / "planted"
    for name, text in FILES.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(str(folder.parent))
    return size.Package(folder)


def test_statements_are_counted_without_bare_strings() -> None:
    """At any depth, and of fields too."""
    text = '"""A."""\nclass A:\n    """A."""\n    x: int = 1\n    """X."""\n\n    def f(self):\n        return 1'
    assert size.statements(ast.parse(text)) == 4


def test_packed_statements_have_as_many_nodes() -> None:
    """Of `a = b or c` and its unfolded form, without their docstrings."""
    packed, unfolded = '"""A."""\na = b or c', '"""A."""\nif b:\n    a = b\nelse:\n    a = c'
    assert [size.statements(ast.parse(text)) for text in (packed, unfolded)] == [1, 3]
    assert [size.nodes(ast.parse(text)) for text in (packed, unfolded)] == [10, 14]


def test_added_engines_are_left_out(tmp_path: Path) -> None:
    """Their folders only, wherever they are below `engines`."""
    names = "engines/storm/a.py", "unit/engines/storm/deep/b.py", "engines/spark/c.py", "storm/d.py", "engines/storm.py"
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert {path.name for path in size.sources(tmp_path)} == {"a.py", "b.py", "c.py", "d.py", "storm.py"}
    assert {path.name for path in size.sources(tmp_path, {"storm"})} == {"c.py", "d.py", "storm.py"}


def test_a_crumb_is_small_and_has_one_importer_and_no_excuse(package: size.Package) -> None:
    """A reason, a name in a string, a workload, a second importer or more lines each excuse."""
    crumbs = {name.removeprefix("planted.") for name in package.crumbs()}
    assert crumbs == {"crumb", "door", "trial.run", "trial.parts.far"}


def test_a_parent_and_a_child_that_import_each_other_are_a_pair(package: size.Package) -> None:
    assert package.pairs() == [("planted.trial", "planted.trial.parts")]


def test_imports_inside_functions_are_loaded_later(package: size.Package) -> None:
    """So they count in one of the two numbers only."""
    loaded, later = (package.behind("planted.trial.run", later) for later in (False, True))
    assert len(loaded) == 8
    assert later - loaded == {"planted.trial.parts", "planted.trial.parts.far"}


def test_the_table_has_a_value_for_each_row(
    package: size.Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its order: no statements outside src, 9 modules without their `__init__`."""
    monkeypatch.setattr(size, "TRIAL", "trial.run")
    values = dict(zip((row.name for row in size.TABLE), size.measured(tmp_path, "planted"), strict=True))
    assert values["statements in tests"] == 0
    assert values["modules in src without __init__"] == 9
    assert values["modules that trial/run loads, with theirs"] == 8


def test_a_floor_is_missed_above_it_only() -> None:
    floors = [row.before if row.floor is None else row.floor for row in size.TABLE]
    assert size.missed(floors) == []
    assert size.missed([floors[0] + 1, *floors[1:]]) == ["statements in src"]
    assert "33,501" in size.as_text([floors[0] + 1, *floors[1:]])
