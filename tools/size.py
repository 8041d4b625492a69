"""How large the code is and how it hangs together, counted from the code.

    python tools/size.py             the table
    python tools/size.py --json      the same as one JSON object
    python tools/size.py --floors    the table without the engines added since, and exit 1 if a floor is missed

- A statement is a node `ast.stmt`, at any depth; bare strings (docstrings, of fields too) are not counted. Fewer
  statements with as many nodes of the syntax tree were packed, not saved.
- A crumb is a module of fewer than 60 lines with one importer, found by import only: it is no workload and no string
  names it. A docstring with "of its own because" gives the reason that excuses a crumb.
- A pair is a package and one below it that import each other, by modules of their own.
- The modules behind trial/run are itself and those that its import loads; imports inside functions load later.
"""

from __future__ import annotations

import argparse
import ast
import json
import statistics
import sys
from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import grimp

ROOT = Path(__file__).parents[1]
FOLDERS = "src", "tests", "tools", "bench", "examples"
CRUMB_LINES = 60
REASON = "of its own because"
TRIAL = "studies.run.run"
ADDED_ENGINES = frozenset({"flink", "jvm", "kafka_streams", "storm"})
"""Folders of engines that f4fb9b7a lacks; the floors are for the others."""

NODES = 472_540, 526_287, 13_094, 20_418, 4_810
"""AST nodes of these folders at f4fb9b7a."""

Names = set[str]


class Measure(NamedTuple):
    """A row of the table. `before` is the value at f4fb9b7a, and `floor` what it has to come down to."""

    name: str
    before: int
    floor: int | None = None


TABLE = (
    *(Measure(f"statements in {folder}", *numbers) for folder, *numbers in (
        ("src", 35_835, 33_500), ("tests", 35_121, 32_000), ("tools", 876), ("bench", 1_624), ("examples", 394)
    )),
    *(Measure(f"AST nodes in {folder}", nodes) for folder, nodes in zip(FOLDERS, NODES, strict=True)),
    Measure("modules in src without __init__", 485, 375),
    Measure("their median lines", 108),
    Measure(f"modules below {CRUMB_LINES} lines with one importer and no reason", 47, 0),
    Measure("parent and child packages that import each other", 16, 0),
    Measure("modules that trial/run loads, with theirs", 199, 140),
    Measure("modules that trial/run may load later too", 239),
)  # fmt: skip


def statements(tree: ast.AST) -> int:
    """Statements without bare strings."""
    return sum(isinstance(node, ast.stmt) and not is_text(node) for node in ast.walk(tree))


def nodes(tree: ast.AST) -> int:
    """Nodes without bare strings, each of which is two."""
    every = list(ast.walk(tree))
    return len(every) - 2 * sum(map(is_text, every))


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


@dataclass(frozen=True)
class Module:
    text: str
    is_package: bool

    @classmethod
    def read(cls, path: Path) -> Module:
        return cls(path.read_text(), path.stem == "__init__")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @property
    def has_reason(self) -> bool:
        return REASON in " ".join((ast.get_docstring(self.tree) or "").split())

    @property
    def is_workload(self) -> bool:
        """As the registry of workloads sees it."""
        assigned = (node.targets for node in self.tree.body if isinstance(node, ast.Assign))
        return any(isinstance(name, ast.Name) and name.id == "WORKLOAD" for names in assigned for name in names)

    @property
    def texts(self) -> Names:
        """Strings, up to a colon: `package.module:Class` names a module."""
        values = (node.value for node in ast.walk(self.tree) if isinstance(node, ast.Constant))
        return {value.partition(":")[0] for value in values if isinstance(value, str)}

    @cached_property
    def later(self) -> set[int]:
        """The lines of functions, whose imports are not run when the module is loaded."""
        functions = (node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        return {line for node in functions for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


class Package:
    """The modules of a package that can be imported, by dotted name, and their imports."""

    def __init__(self, folder: Path) -> None:
        paths = {".".join(path.relative_to(folder.parent).with_suffix("").parts): path for path in folder.rglob("*.py")}
        self.modules = {name.removesuffix(".__init__"): Module.read(path) for name, path in paths.items()}
        self._graph = grimp.build_graph(folder.name, cache_dir=None)
        self._name = folder.name

    @property
    def leaves(self) -> dict[str, Module]:
        return {name: module for name, module in self.modules.items() if not module.is_package}

    def crumbs(self) -> list[str]:
        named = set().union(*(module.texts for module in self.modules.values()))
        return [
            name
            for name, module in self.leaves.items()
            if module.lines < CRUMB_LINES
            and len(self._graph.find_modules_that_directly_import(name)) == 1
            and not (module.has_reason or module.is_workload or name in named)
        ]

    def pairs(self) -> list[tuple[str, str]]:
        imports = {(self._package_of(a), self._package_of(b)) for a, b in self._imports()}
        return sorted((a, b) for a, b in imports if b.startswith(f"{a}.") and (b, a) in imports)

    def _imports(self) -> Iterator[tuple[str, str]]:
        for name in self.modules:
            yield from ((name, imported) for imported in self._graph.find_modules_directly_imported_by(name))

    def _package_of(self, name: str) -> str:
        return name if self.modules[name].is_package else name.rpartition(".")[0]

    def behind(self, module: str, later: bool) -> Names:
        """A module and all that it imports, directly or not; `later`: inside functions too."""
        names, ahead = {module}, [module]
        while ahead:
            importer = ahead.pop()
            imported = self._graph.find_modules_directly_imported_by(importer) - names
            new = {name for name in imported if later or self._is_loaded(importer, name)}
            names |= new
            ahead += new
        return names

    def _is_loaded(self, importer: str, imported: str) -> bool:
        details = self._graph.get_import_details(importer=importer, imported=imported)
        return not {detail["line_number"] for detail in details} <= self.modules[importer].later

    def measures(self, without: Set[str] = frozenset()) -> list[int]:
        """The rows of the table after those of statements and nodes."""
        prefixes = tuple(f"{self._name}.engines.{name}." for name in without)
        lines = [module.lines for name, module in self.leaves.items() if not name.startswith(prefixes)]
        trial = f"{self._name}.{TRIAL}"
        return [
            len(lines), round(statistics.median(lines)), len(self.crumbs()), len(self.pairs()),
            len(self.behind(trial, later=False)), len(self.behind(trial, later=True)),
        ]  # fmt: skip


def measured(root: Path, package: str = "streamgauge", without: Set[str] = frozenset()) -> list[int]:
    """The values of the table, in its order. `without`: folders of engines that are not counted in rows with a size."""
    trees = [[Module.read(path).tree for path in sources(root / name, without)] for name in FOLDERS]
    counts = [sum(map(count, each)) for count in (statements, nodes) for each in trees]
    return [*counts, *Package(root / "src" / package).measures(without)]


def sources(folder: Path, without: Set[str] = frozenset()) -> Iterator[Path]:
    """The Python files of a folder, except those in `engines/NAME` for each name of `without`."""
    left_out = [("engines", name) for name in without]
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).parts
        if not any(pair in pairwise(parts) for pair in left_out):
            yield path


def missed(values: list[int]) -> list[str]:
    """The measures that are above their floor."""
    rows = zip(TABLE, values, strict=True)
    return [measure.name for measure, value in rows if measure.floor is not None and value > measure.floor]


def as_text(values: list[int]) -> str:
    rows = [("", "now", "f4fb9b7a", "floor")] + [
        (name, f"{value:,}", f"{before:,}", "" if floor is None else f"{floor:,}")
        for (name, before, floor), value in zip(TABLE, values, strict=True)
    ]
    return "\n".join(f"{name:62}{now:>8}{before:>10}{floor:>8}" for name, now, before, floor in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--floors", action="store_true")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "src"))
    values = measured(ROOT, without=ADDED_ENGINES if options.floors else frozenset())
    if options.json:
        rows = zip(TABLE, values, strict=True)
        print(json.dumps({row.name: {"now": value, "f4fb9b7a": row.before, "floor": row.floor} for row, value in rows}))
    else:
        print(as_text(values))
    above = missed(values) if options.floors else []
    print(*(f"floor missed: {name}" for name in above), sep="\n", end="\n" if above else "", file=sys.stderr)
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
