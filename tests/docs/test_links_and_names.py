"""Documents name what exists: links, commands, options, files, definitions and programs."""

import ast
import functools
import inspect
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from streamgauge.config.named_files import is_data, is_data_time
from streamgauge.engines.registry import capabilities, streaming_engines
from streamgauge.engines.spi import Engine
from streamgauge.workloads.registry import get, names
from tests.docs.helpers_pages import COMMANDS, code_lines, every_page, spans
from tests.helpers_engine_plugin import ENGINE
from tests.helpers_modules import ROOT


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def dead_links(text: str, page: Path) -> list[str]:
    """The links of a page to files or headings that are not there."""
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("https://", "http://")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve()
        if not file.exists() or (anchor and anchor not in anchors(file.read_text() if path else text)):
            dead.append(target)
    return dead


def unknown_words(line: str) -> list[str]:
    """What a line of code names that the program does not have: commands, options, workloads, engines, settings."""
    match = re.search(r"(?:^|[\s/])streamgauge ([a-z]+(?: (?:start|status|stop)\b)?)(.*)", line)
    if not match:
        return []
    name, rest = match.groups()
    command = COMMANDS.commands().get(name)
    if command is None:
        return [f"command {name}"]
    options = {option for parameter in command.params for option in parameter.opts}
    unknown = [f"{name} {option}" for option in re.findall(r"(?<=\s)--?[a-z][a-z-]*", rest) if option not in options]
    return unknown + _unknown_names(name, rest)


def _unknown_names(command: str, rest: str) -> list[str]:
    unknown = []
    if command in ("run", "sustain", "generate") and (given := re.match(r" ([a-z_][\w./]*)", rest)):
        unknown += [f"workload {given.group(1)}"] if not _is_workload(given.group(1)) else []
    engines = (*streaming_engines(), ENGINE)
    unknown += [f"engine {name}" for name in re.findall(r"--engine (\S+)", rest) if name not in engines]
    known = _parameters()
    unknown += [
        f"set {name}"
        for name in re.findall(r"--set ([\w.]+)", rest)
        if name not in known and not is_data(name) and not is_data_time(name)
    ]
    return unknown + [f"option {name}" for name in re.findall(r"--option \"?([\w.]+)", rest) if not _is_option(name)]


def _is_workload(name: str) -> bool:
    """A name of the list, or a user job: an example that is there, or the one that readers are to write."""
    return name in names() or name in TO_BE_WRITTEN or (name.endswith((".py", ".toml")) and (ROOT / name).is_file())


def _parameters() -> set[str]:
    return {name for workload in names() for name in get(workload).parameters.model_fields}


def _is_option(name: str) -> bool:
    options = {setting.name for each in capabilities().values() for setting in each.settings}
    return name in options or name.startswith("spark.")


def missing_files(text: str) -> list[str]:
    """The Python files that a page names and that are nowhere in the repository."""
    places = (ROOT, ROOT / "src" / "streamgauge", ROOT / "src" / "streamgauge" / "workloads")
    named = {span for span in spans(text) if re.fullmatch(r"[\w./-]+\.py", span)}
    return sorted(name for name in named if not any((place / name).exists() for place in places))


def missing_in_docstrings(source: str) -> list[str]:
    """The Python files that a module's docstrings name and that are nowhere in the repository."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    named = {name for text in docstrings for name in re.findall(r"(?<![\w./{}-])[a-z_][\w./-]*\.py\b", text)}
    return sorted(name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in _python_files()))


@functools.cache
def _python_files() -> tuple[str, ...]:
    folders = ("src", "tests", "bench", "examples", "tools")
    return tuple(str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).rglob("*.py"))


def missing_names(text: str) -> list[str]:
    """What a page names in a module, as `room/module.name` or as `room/module.py`, `name`, and that is not there."""
    package = ROOT / "src" / "streamgauge"
    named = [re.fullmatch(r"(\w+(?:/\w+)+)\.(?!py$)(\w+)", span) for span in spans(text)]
    pairs = {one.groups() for one in named if one} | {*re.findall(r"`(\w+(?:/\w+)+)\.py`, `(\w+)`", text)}
    ours = [(module, name) for module, name in pairs if (package / module.split("/")[0]).is_dir()]
    return sorted(f"{module}.{name}" for module, name in ours if name not in defined_in(package / f"{module}.py"))


def defined_in(file: Path) -> set[str]:
    """The names that a module defines, read and not imported; none where there is no such file."""
    defined: set[str] = set()
    for node in ast.parse(file.read_text()).body if file.exists() else []:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        defined |= {target.id for target in targets if isinstance(target, ast.Name)}
    return defined


# Names that a page asks its reader to make, or that stand for any file.
TO_BE_WRITTEN = {"my_job.py"}
TO_BE_MADE = {"src/streamgauge/workloads/micro/spending.py"}


def missing_targets(text: str) -> set[str]:
    """What `make` is called with on a page and what the Makefile does not have."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    return {
        match[1] for line in code_lines(text) if (match := re.match(r"(?:\S+=\S+ )?make ([a-z-]+)", line))
    } - targets


def missing_programs(text: str) -> set[str]:
    """Of `python -m bench.NAME` each that is no module of bench/; of `--only NAME`, that ends none."""
    code = "\n".join(code_lines(text))
    modules = set(re.findall(r"python -m bench\.([a-z][\w.]*\w)", code))
    last_parts = set(re.findall(r"python -m bench --only ([a-z]\w*)", code))
    missing = {name for name in modules if not (ROOT / "bench" / f"{name.replace('.', '/')}.py").exists()}
    return missing | {name for name in last_parts if not list((ROOT / "bench").glob(f"*/{name}.py"))}


MISSING: dict[str, Callable[[str, Path], Iterable[str]]] = {
    "links": dead_links,
    "command lines": lambda text, _: (word for line in code_lines(text) for word in unknown_words(line)),
    "make targets": lambda text, _: missing_targets(text),
    "files": lambda text, _: set(missing_files(text)) - TO_BE_MADE - TO_BE_WRITTEN,
    "definitions": lambda text, _: missing_names(text),
    "bench programs": lambda text, _: missing_programs(text),
}
"""What a page may name, to what of it is not there."""


@every_page
@pytest.mark.parametrize("kind", MISSING)
def test_what_a_page_names_exists(page: Path, kind: str) -> None:
    assert [*MISSING[kind](page.read_text(), page)] == []


@pytest.mark.parametrize(
    ("line", "unknown"),
    [
        ("streamgauge measure x", ["command measure"]),
        ("$ .venv/bin/streamgauge run identity --rte 5k", ["run --rte"]),
        ("streamgauge run identity --rate 5k -v", []),
        ("streamgauge run idenity", ["workload idenity"]),
        ("streamgauge run identity --engine sparc", ["engine sparc"]),
        ("streamgauge run identity --set pack=3 --option lowering.joint=packed", ["set pack", "option lowering.joint"]),
        ('streamgauge run identity --option "spark.ui.enabled=true"', []),
        ("import streamgauge", []),
    ],
)
def test_unknown_words_are_found(line: str, unknown: list[str]) -> None:
    """Each kind of name that the program does not have is reported."""
    assert unknown_words(line) == unknown


LINKS = "# One\n[a](nowhere.md) [b](#one) [c](#two) [d](README.md#a-result) [e](README.md#none)"
FILES = "`verdict/verdict.py` `tools/docs_tables.py` `run/nothing.py`"
NAMES = (
    "`metrics/event_latency.has_matches` `metrics/event_latency.Nothing` `studies/operator_profile/profile._TYPES` "
    "`dataflow/nodes.Mode` `trial/no.thing` `engine/operators.parquet` `result.json`\n\n"
    "`verification/expected.py`, `_matches`; `metrics/event_latency.py`, `kind_of`"
)
DOCSTRINGS = '"""See roads.py, gps_traces.py."""\nclass A:\n    """See `old/leads.py`."""\n# gone.py\n'


@pytest.mark.parametrize(("faults", "text", "names"), [
    (lambda text: dead_links(text, ROOT / "page.md"), LINKS, ["nowhere.md", "#two", "README.md#none"]),
    (missing_files, FILES, ["run/nothing.py"]),
    (missing_in_docstrings, DOCSTRINGS, ["old/leads.py", "roads.py"]),
    (missing_names, NAMES, ["metrics/event_latency.Nothing", "trial/no.thing", "verification/expected._matches"]),
    (missing_programs, "`python -m bench.studies.tuning_profiles` `python -m bench.nothing`", ["nothing"]),
], ids=["links", "files", "docstrings", "definitions", "programs"])  # fmt: skip
def test_what_is_not_there_is_reported(faults: Callable[[str], Iterable[str]], text: str, names: list[str]) -> None:
    """A file or a heading; files are looked for in the repository and in the package. A renamed file is reported in the
    docstring of a module, a class or a function; a comment is not read.
    """
    assert [*faults(text)] == names


def test_docstrings_name_existing_files() -> None:
    """A Python file that a docstring of the package names is in the repository."""
    modules = (ROOT / "src").rglob("*.py")
    missing = {str(module.relative_to(ROOT)): missing_in_docstrings(module.read_text()) for module in modules}
    assert {module: set(files) - TO_BE_WRITTEN for module, files in missing.items() if set(files) - TO_BE_WRITTEN} == {}


def test_every_method_of_an_engine_is_documented() -> None:
    """add-an-engine.md has a row for each method of the interface, in their order, and for nothing else."""
    page = (ROOT / "docs" / "contributing" / "add-an-engine.md").read_text()
    part = page.split("\n## The interface\n")[1].split("\n## ")[0]
    rows = [name for line in part.splitlines() if line.startswith("| `") for name in spans(line.split("|")[1])]
    assert rows == [name for name, method in vars(Engine).items() if inspect.isfunction(method) and name[0] != "_"]
