"""The rooms' import table [design 3]: arrows point one way, and light commands stay light."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path

import grimp
import pytest

import streamgauge

ROOT = "streamgauge"
BASE = {"errors", "events", "units", "value_types"}
LOAD_AND_FLOW = {"load", "flow"}
ABOVE_RUN = {
    "options",
    "system",
    "causes",
    "jobs",
    "stats",
    "result",
    "experiment",
    "transports",
    "engines",
    "measure",
    "workloads",
    "labels",
    "artifacts",
    "progress",
    "reproduce",
}

MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "units": set(),
    "value_types": set(),
    "events": {"errors"},
    "options": {"errors"},
    "stats": {"errors"},
    "system": {"errors"},
    "causes": set(),
    "result": BASE | {"causes"},
    "load": BASE,
    "flow": BASE,
    "jobs": BASE | {"load"},
    "transports": BASE | {"options", "system"},
    "workloads": BASE | LOAD_AND_FLOW,
    "engines": BASE | {"options", "flow", "transports", "system"},
    "labels": BASE | {"result"},
    "settings": set(),
    "experiment": BASE | {"settings", "workloads", "load"},
    "artifacts": BASE | {"causes", "result", "experiment"},
    "progress": BASE | {"result", "artifacts"},
    "reproduce": BASE | {"settings", "experiment"},
    "measure": BASE | {"transports", "result", "stats", "system", "artifacts"},
    "report": BASE | {"causes", "result", "stats", "experiment", "labels", "artifacts", "progress", "reproduce"},
    "run": BASE | LOAD_AND_FLOW | ABOVE_RUN,
    "studies": BASE | LOAD_AND_FLOW | ABOVE_RUN | {"run"},
    "cli_options": {"settings", "experiment"},
    "cli_asked": BASE | {"run", "artifacts", "settings", "experiment"},
    "cli_shown": {"errors", "result", "studies", "run", "report", "experiment", "artifacts"},
    "cli": BASE
    | {"cli_options", "cli_asked", "cli_shown", "studies", "workloads", "run", "report", "experiment", "artifacts"},
    "__main__": {"cli"},
}
"""Room to the rooms that it may import, itself too."""

Imports = Iterable[tuple[str, str]]


def room_of(module: str) -> str:
    """`streamgauge.run.check` as `run`; the package itself as nothing."""
    return module.removeprefix(ROOT).lstrip(".").partition(".")[0]


def violations(imports: Imports) -> list[str]:
    """Each import that the table does not allow, as one line that says what would be allowed."""
    found = []
    for importer, imported in imports:
        here, there = room_of(importer), room_of(imported)
        if not here or not there or here == there or there in MAY_IMPORT.get(here, set()):
            continue
        allowed = ", ".join(sorted(MAY_IMPORT.get(here, set()))) or "nothing of ours"
        found.append(f"{importer} imports {imported}; {here} may import {allowed} [design 3]")
    return sorted(found)


def imports_of(graph: grimp.ImportGraph) -> list[tuple[str, str]]:
    return [
        (module, imported) for module in graph.modules for imported in graph.find_modules_directly_imported_by(module)
    ]


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """Every import of ours, those inside functions and those for type checkers too."""
    return grimp.build_graph(ROOT, cache_dir=None)


def test_rooms_import_only_what_the_table_allows(graph: grimp.ImportGraph) -> None:
    """A lower room never knows of a higher one."""
    assert violations(imports_of(graph)) == []


def test_the_report_is_a_leaf() -> None:
    """Nothing that measures depends on how it is shown."""
    assert {room for room, allowed in MAY_IMPORT.items() if "report" in allowed} == {"cli", "cli_shown"}


def test_every_room_is_in_the_table(graph: grimp.ImportGraph) -> None:
    """A new room says what it may import before it is built."""
    assert {room_of(module) for module in graph.modules} - {""} <= set(MAY_IMPORT)


def test_the_table_has_no_circles() -> None:
    """What a room may import can never import it back."""
    for room, allowed in MAY_IMPORT.items():
        assert not [other for other in allowed if room in MAY_IMPORT[other]], room


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("measure.recorder", "engines.spark.engine"),
        ("report.page", "run.verify"),
        ("engines.spark.engine", "workloads.count"),
        ("flow.nodes", "load.plan"),
        ("errors", "events"),
        ("workloads.count", "engines.seam"),
        ("run.check", "studies.search"),
        ("experiment", "engines.seam"),
        ("new_room.file", "errors"),
    ],
)
def test_a_planted_import_is_found(importer: str, imported: str) -> None:
    """The checker itself: each forbidden arrow is named, with what would be allowed."""
    planted = (f"{ROOT}.{importer}", f"{ROOT}.{imported}")
    (line,) = violations([planted, (f"{ROOT}.run.check", f"{ROOT}.errors")])
    assert line.startswith(f"{planted[0]} imports {planted[1]}; {importer.partition('.')[0]} may import ")


def test_an_import_planted_in_a_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reading of files too: imports inside functions and behind TYPE_CHECKING count."""
    package = tmp_path / "planted"
    for room in ("measure", "engines"):
        (package / room).mkdir(parents=True)
        (package / room / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "engines" / "seam.py").touch()
    (package / "measure" / "recorder.py").write_text(
        textwrap.dedent("""
            def late():
                from planted.engines import seam
                return seam
        """)
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    graph = grimp.build_graph("planted", cache_dir=None)
    renamed = [(a.replace("planted", ROOT), b.replace("planted", ROOT)) for a, b in imports_of(graph)]
    assert [line.partition(";")[0] for line in violations(renamed)] == [
        f"{ROOT}.measure.recorder imports {ROOT}.engines.seam"
    ]


def test_every_room_says_what_it_is_for() -> None:
    """Each folder's __init__ begins with its purpose."""
    for path in Path(streamgauge.__file__).parent.rglob("__init__.py"):
        text = path.read_text().strip()
        assert text.startswith('"""'), path
        assert len(text) > 20, path
