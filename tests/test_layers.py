"""The rules of the layout: a table of allowed imports, which point one way, and the sizes of folders and modules."""

import textwrap
from collections import Counter
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

import streamgauge
from tests.helpers_modules import ROOT as CHECKOUT
from tools.size import Package

ROOT = "streamgauge"
SOURCE = Path(streamgauge.__file__).parent
MODULES_MAX = 25
"""A folder with more modules than this holds more than one purpose."""
LINES_MAX = 500
"""A module with more lines than this is two ideas."""

MAY_IMPORT: dict[str, str] = {
    ROOT: "",
    "core": "",
    "stats": "core",
    "system": "core",
    "results": "core",
    "results.text": "core results stats system",
    "transports": "core",
    "transports.memory": "core transports",
    "transports.socket": "core transports transports.memory",
    "transports.kafka.encodings": "core transports",
    "transports.kafka": "core system transports transports.kafka.encodings",
    "dataflow.expressions": "core",
    "dataflow.operators": "core",
    "dataflow": "core dataflow.expressions dataflow.operators",
    "dataflow.json_form": "core dataflow dataflow.expressions dataflow.operators",
    "loadgen": "core",
    "loadgen.datasets": "core loadgen",
    "loadgen.replay": "core loadgen",
    "workloads": "core dataflow dataflow.expressions dataflow.json_form loadgen transports",
    "workloads.dspbench": "",
    "workloads.helpers": "core dataflow dataflow.operators loadgen workloads",
    "workloads.dspbench.finance": (
        "core dataflow dataflow.operators loadgen loadgen.datasets workloads workloads.helpers"
    ),
    "workloads.dspbench.sensors": (
        "core dataflow dataflow.operators loadgen loadgen.datasets workloads workloads.helpers"
    ),
    "workloads.dspbench.text": "core dataflow dataflow.operators loadgen loadgen.datasets workloads",
    "workloads.dspbench.telecom": (
        "core dataflow dataflow.operators loadgen loadgen.datasets workloads workloads.helpers"
    ),
    "workloads.dspbench.web": "core dataflow dataflow.operators loadgen loadgen.datasets workloads workloads.helpers",
    "workloads.micro": "dataflow loadgen loadgen.datasets workloads",
    "workloads.scalability": "core dataflow loadgen workloads",
    "workloads.yahoo": "core dataflow loadgen workloads",
    "jobs": "core loadgen",
    "diff": "core",
    "config": "core loadgen.datasets results",
    "artifacts": "config core results",
    "metrics": "artifacts core dataflow loadgen results stats system transports",
    "user_workloads": (
        "config core dataflow dataflow.expressions jobs loadgen loadgen.replay results system transports "
        "transports.kafka.encodings workloads"
    ),
    "engines": "core dataflow dataflow.operators system transports",
    "engines.duckdb_oracle": "core dataflow dataflow.expressions dataflow.operators engines system",
    "engines.external": "core dataflow engines system transports transports.kafka user_workloads",
    "engines.jvm": (
        "core dataflow dataflow.expressions engines system transports transports.kafka transports.kafka.encodings"
    ),
    "engines.flink": "core engines engines.jvm system",
    "engines.kafka_streams": "core dataflow engines engines.jvm system",
    "engines.storm": "core dataflow engines engines.jvm system",
    "engines.spark.session": "core streamgauge system",
    "engines.spark.cluster": "core engines engines.spark.session system",
    "engines.spark.lowering": "core dataflow dataflow.expressions dataflow.operators engines engines.spark.session",
    "engines.spark.dstream": (
        "core dataflow engines engines.spark.lowering engines.spark.session transports.memory transports.socket"
    ),
    "engines.spark.io": (
        "core dataflow engines engines.spark.lowering engines.spark.session transports transports.memory "
        "transports.kafka transports.kafka.encodings"
    ),
    "engines.spark.user_job": "core dataflow engines.spark.lowering engines.spark.session system",
    "engines.spark": (
        "core dataflow engines engines.spark.cluster engines.spark.dstream engines.spark.io engines.spark.lowering "
        "engines.spark.session engines.spark.user_job system transports"
    ),
    "engines.synthetic": "core dataflow engines engines.duckdb_oracle system transports.memory",
    "harness": "artifacts core dataflow engines loadgen metrics stats system transports",
    "preflight": (
        "artifacts config core dataflow diff engines engines.duckdb_oracle harness loadgen loadgen.replay metrics "
        "results stats system transports user_workloads workloads"
    ),
    "verification": (
        "artifacts core dataflow dataflow.expressions diff engines engines.duckdb_oracle jobs loadgen "
        "loadgen.replay metrics preflight results results.text system transports user_workloads"
    ),
    "verdict": "config core metrics preflight results stats verification",
    "trial": (
        "artifacts config core dataflow engines harness loadgen metrics preflight results results.text stats system "
        "transports user_workloads verdict verification"
    ),
    "studies": "artifacts config core system trial user_workloads",
    "studies.run": (
        "artifacts config core dataflow engines loadgen metrics preflight results system trial user_workloads workloads"
    ),
    "studies.capacity": (
        "artifacts config core dataflow engines metrics preflight results results.text studies studies.run system "
        "trial user_workloads verdict"
    ),
    "studies.compare": "artifacts config core engines metrics results results.text stats",
    "studies.latency_breakdown": (
        "artifacts config core dataflow engines harness metrics preflight results stats studies.run system trial "
        "verification"
    ),
    "studies.operator_profile": (
        "artifacts config core dataflow dataflow.expressions engines engines.duckdb_oracle loadgen preflight "
        "results stats studies.run system trial user_workloads verification"
    ),
    "studies.matrix": (
        "artifacts config core preflight results studies studies.capacity studies.latency_breakdown "
        "studies.operator_profile studies.run system trial user_workloads"
    ),
    "studies.scorecard": "artifacts config core results workloads",
    "studies.scalability": (
        "artifacts config core engines preflight results results.text stats studies studies.capacity studies.matrix "
        "system trial verdict"
    ),
    "studies.selftest": (
        "config core engines.synthetic harness metrics preflight results studies.capacity studies.run system trial"
    ),
    "conformance": (
        "artifacts config core dataflow dataflow.expressions dataflow.operators engines harness loadgen preflight "
        "system trial workloads"
    ),
    "report": "core results.text",
    "report.charts": "artifacts core report results",
    "report.documents": "artifacts config core report report.charts results results.text stats",
    "report.terminal": "artifacts core report report.documents results",
    "cli": (
        "artifacts config core dataflow engines preflight report.documents report.terminal results "
        "studies.capacity studies.compare studies.latency_breakdown studies.matrix studies.operator_profile "
        "studies.run studies.scalability studies.scorecard studies.selftest system transports trial user_workloads "
        "workloads"
    ),
    "__main__": "cli core",
}
"""Package to the packages that it may import, lowest first. A sub-package is named whole: what a parent may import of
its child, or a child of its parent, stands here too, and never both. `jobs` is a module of its own.
"""

Imports = Iterable[tuple[str, str]]


def packages() -> set[str]:
    """Every folder with an `__init__.py`, dotted, without the root."""
    return {
        ".".join(path.parent.relative_to(SOURCE).parts) for path in SOURCE.rglob("__init__.py") if path.parent != SOURCE
    }


def package_of(module: str, known: set[str]) -> str:
    """`streamgauge.engines.spark.watermark_and_interval` as `engines.spark`; the root and its modules as themselves."""
    name = module.removeprefix(f"{ROOT}.")
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        if ".".join(parts[:length]) in known:
            return ".".join(parts[:length])
    return name


def allowed(package: str) -> set[str]:
    return set(MAY_IMPORT.get(package, "").split())


def violations(imports: Imports, known: set[str]) -> list[str]:
    """Each import that the table does not allow, as one line that says what would be allowed."""
    lines = []
    for importer, imported in imports:
        here, target = package_of(importer, known), package_of(imported, known)
        if here == target or target in allowed(here):
            continue
        instead = ", ".join(sorted(allowed(here))) or "nothing of ours"
        lines.append(f"{importer} imports {imported}; {here} may import {instead}")
    return sorted(lines)


def imports_of(graph: grimp.ImportGraph) -> list[tuple[str, str]]:
    return [
        (module, imported) for module in graph.modules for imported in graph.find_modules_directly_imported_by(module)
    ]


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """Every import of ours, those inside functions and those for type checkers too."""
    return grimp.build_graph(ROOT, cache_dir=None)


def test_packages_import_only_what_the_table_allows(graph: grimp.ImportGraph) -> None:
    """A lower package never knows of a higher one."""
    assert violations(imports_of(graph), packages()) == []


def test_every_package_is_in_the_table(graph: grimp.ImportGraph) -> None:
    """A new package says what it may import before it is built, and a package that is gone leaves the table."""
    known = packages()
    assert {package_of(module, known) for module in graph.modules} == set(MAY_IMPORT)


def test_the_table_allows_nothing_that_is_not_used(graph: grimp.ImportGraph) -> None:
    """An import that ended is taken out of the table, so that it cannot come back unnoticed."""
    known = packages()
    used = {(package_of(a, known), package_of(b, known)) for a, b in imports_of(graph)}
    assert [(a, b) for a in MAY_IMPORT for b in allowed(a) if (a, b) not in used] == []


def families(table: dict[str, str]) -> dict[str, set[str]]:
    """The table for top-level packages: sub-packages stand for their parent."""
    tops: dict[str, set[str]] = {}
    for package, names in table.items():
        top = package.partition(".")[0]
        tops.setdefault(top, set()).update(name.partition(".")[0] for name in names.split())
    return {top: others - {top} for top, others in tops.items()}


def circle_in_table(table: dict[str, str]) -> list[str]:
    """The packages of one circle; empty without one."""
    return circle_in((package, name) for package, names in table.items() for name in names.split())


def test_packages_have_no_circles() -> None:
    """What a package may import can never import it back, by any way round: a parent and its child included."""
    assert circle_in_table(MAY_IMPORT) == []
    assert circle_in_table({top: " ".join(names) for top, names in families(MAY_IMPORT).items()}) == []


def test_a_parent_and_its_child_that_import_each_other_are_found() -> None:
    """The check itself, and two packages that import each other's sub-packages."""
    assert set(circle_in_table({"a": "a.x", "a.x": "core a"})) == {"a", "a.x"}
    crossed = {"a.x": "b", "b": "a.y", "a.y": ""}
    assert circle_in_table(crossed) == []
    assert set(circle_in_table({top: " ".join(names) for top, names in families(crossed).items()})) == {"a", "b"}


def upwards(table: dict[str, str]) -> list[tuple[str, str]]:
    """Each allowed import of a package that stands further down in the table."""
    order = list(table)
    return [
        (package, name)
        for package, names in table.items()
        for name in names.split()
        if order.index(name) > order.index(package)
    ]


def test_packages_import_only_what_stands_above_them() -> None:
    """The order of the table, which docs/contributing/architecture.md shows, is one of layers."""
    assert upwards(MAY_IMPORT) == []


def test_an_import_upwards_is_found() -> None:
    """The check itself, of a parent by its child too."""
    assert upwards({"core": "", "a.x": "core a", "a": "core"}) == [("a.x", "a")]


def circle_in(imports: Imports) -> list[str]:
    """The modules of one circle of imports, of which the last is the first again; empty if there is no circle."""
    importers: dict[str, set[str]] = {}
    for importer, imported in imports:
        importers.setdefault(imported, set()).add(importer)
    try:
        TopologicalSorter(importers).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_modules_do_not_import_each_other_in_circles(graph: grimp.ImportGraph) -> None:
    """Within a package too, and for type checkers too."""
    assert circle_in(imports_of(graph)) == []


def test_a_circle_of_modules_is_found() -> None:
    """The check itself, over three modules."""
    assert circle_in([("a", "b"), ("b", "c"), ("b", "d")]) == []
    assert circle_in([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]) in (
        ["a", "b", "c", "a"], ["b", "c", "a", "b"], ["c", "a", "b", "c"]
    )  # fmt: skip


def test_nothing_but_the_command_line_imports_report() -> None:
    """`report` is a leaf."""
    assert {
        package
        for package in MAY_IMPORT
        if "report" in families({package: MAY_IMPORT[package]})[package.partition(".")[0]]
    } == {"cli"}


def test_spark_is_known_to_its_own_plugin_alone() -> None:
    """What the rest needs of an engine goes through `engines.spi` and the registry."""
    spark = {package for package in MAY_IMPORT if package.startswith("engines.spark")}
    known = {(package, name) for package in MAY_IMPORT if package not in spark for name in allowed(package) & spark}
    assert known == set()


def test_every_folder_is_a_package() -> None:
    """Without an `__init__.py` the modules of a folder would not be in the checked graph."""
    folders = {path.parent for path in SOURCE.rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


@pytest.mark.parametrize("top", ["src", "tests", "bench", "tools", "examples"])
def test_no_folder_has_more_modules_than_a_person_can_survey(top: str) -> None:
    """`__init__.py` and `conftest.py` are not counted."""
    modules = [path for path in (CHECKOUT / top).rglob("*.py") if path.stem not in ("__init__", "conftest")]
    assert modules
    counts = Counter(str(path.parent.relative_to(CHECKOUT)) for path in modules)
    assert {folder: count for folder, count in counts.items() if count > MODULES_MAX} == {}


def test_no_module_holds_two_ideas() -> None:
    """By its lines."""
    lines = {str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in SOURCE.rglob("*.py")}
    assert {path: count for path, count in lines.items() if count > LINES_MAX} == {}


def test_no_module_is_a_crumb() -> None:
    """Below 60 lines a module has two importers, is found by name, or says why it is of its own."""
    assert Package(SOURCE).crumbs() == []


def test_a_crumb_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check itself: a reason in the docstring, a second importer or a name in a string excuse a module."""
    folder = tmp_path / "crumbs"
    folder.mkdir()
    for name, text in {
        "__init__": "", "crumb": "X = 1", "long": "X = 1\n" * 60, "shared": "X = 1", "named": "X = 1",
        "excused": '"""This is of its own because it may be."""',
        "first": "from crumbs import crumb, long, shared, named, excused\nPLUGIN = 'crumbs.named:X'",
        "second": "from crumbs import shared",
    }.items():  # fmt: skip
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert Package(folder).crumbs() == ["crumbs.crumb"]


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("harness.recorder", "engines.spark.engine"),
        ("report.page", "verification.expected"),
        ("engines.spark.engine", "workloads.micro.count"),
        ("dataflow.nodes", "loadgen.plan"),
        ("core.errors", "system.lock"),
        ("workloads.micro.count", "engines.spi"),
        ("preflight.settings_checks", "studies.capacity.search"),
        ("studies.operator_profile.characterize", "engines.spark.parallelism"),
        ("verification.user_job.truth", "engines.spark.user_job.batch_answer"),
        ("config.experiment", "engines.spi"),
        ("engines.spark.io.kafka", "engines.synthetic.engine"),
        ("trial.conductor", "studies.run.run"),
        ("report.document_blocks", "report.documents.run"),
        ("studies.study_folder", "studies.run.run"),
        ("new_package.file", "core.errors"),
    ],
)
def test_a_planted_import_is_found(importer: str, imported: str) -> None:
    """The check itself: each forbidden import is named, with what would be allowed."""
    planted = (f"{ROOT}.{importer}", f"{ROOT}.{imported}")
    known = packages()
    (line,) = violations([planted, (f"{ROOT}.preflight.settings_checks", f"{ROOT}.core.errors")], known)
    assert line.startswith(f"{planted[0]} imports {planted[1]}; {package_of(planted[0], known)} may import ")


def test_an_import_planted_in_a_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reading of files too: imports inside functions and behind TYPE_CHECKING count."""
    package = tmp_path / "planted"
    for folder in ("harness", "verdict"):
        (package / folder).mkdir(parents=True)
        (package / folder / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "verdict" / "criteria.py").touch()
    (package / "harness" / "recorder.py").write_text(
        textwrap.dedent("""
            def late():
                from planted.verdict import criteria
                return criteria
        """)
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    graph = grimp.build_graph("planted", cache_dir=None)
    renamed = [(a.replace("planted", ROOT), b.replace("planted", ROOT)) for a, b in imports_of(graph)]
    assert [line.partition(";")[0] for line in violations(renamed, packages())] == [
        f"{ROOT}.harness.recorder imports {ROOT}.verdict.criteria"
    ]


def test_every_package_says_what_it_is_for() -> None:
    """Each folder's `__init__` begins with its purpose."""
    for path in SOURCE.rglob("__init__.py"):
        text = path.read_text().strip()
        assert text.startswith('"""'), path
        assert len(text) > 20, path
