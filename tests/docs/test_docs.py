"""The documents and the code say the same: links, names, options, fields, tables, and the code that stands in them."""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import re
import subprocess
import tomllib
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel

from streamgauge.artifacts import tables
from streamgauge.artifacts.run_folder import ANATOMY, CHARACTERIZATION
from streamgauge.config.options_and_settings import Experiment, build, is_data, is_data_time, read, to_toml
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.registry import capabilities, streaming_engines
from streamgauge.engines.spi import Engine
from streamgauge.results.breakdown import LatencyBreakdown
from streamgauge.results.comparison import Comparison
from streamgauge.results.latency import Latency
from streamgauge.results.profile import OperatorProfile
from streamgauge.results.run import Result
from streamgauge.studies.compare.metrics import comparables
from streamgauge.workloads.registry import get, names

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "bench", "examples", "experiments")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
EXPERIMENTS = sorted((ROOT / "experiments").glob("*.toml"))

every_page = pytest.mark.parametrize("page", PAGES, ids=NAMES)


def load(path: Path) -> types.ModuleType:
    """A Python file as a module, without a package around it."""
    spec = importlib.util.spec_from_file_location(f"loaded_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TABLES = load(ROOT / "tools" / "docs_tables.py")


def fences(text: str) -> list[tuple[str, str, str]]:
    """(mark, language, code) of each fenced block; the mark is the comment on the line before it, or nothing."""
    pattern = re.compile(r"(?:^<!-- (tested[^>]*?) -->\n)?^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    return [(mark or "", language, code) for mark, language, code in pattern.findall(text)]


def spans(text: str) -> list[str]:
    """The inline code of a page, outside its fenced blocks."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))


def code_lines(text: str) -> list[str]:
    """Every line of code, fenced or inline."""
    return [line for _, _, code in fences(text) for line in code.splitlines()] + spans(text)


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
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
    found = re.search(r"(?:^|[\s/])streamgauge ([a-z]+)\b(.*)", line)
    if not found:
        return []
    name, rest = found.group(1), found.group(2)
    command = TABLES.commands().get(name)
    if command is None:
        return [f"command {name}"]
    options = {option for parameter in command.params for option in parameter.opts}
    unknown = [f"{name} {option}" for option in re.findall(r"(?<=\s)--?[a-z][a-z-]*", rest) if option not in options]
    return unknown + _unknown_names(name, rest)


def _unknown_names(command: str, rest: str) -> list[str]:
    unknown = []
    if command in ("run", "sustain", "generate") and (given := re.match(r" ([a-z_][\w./]*)", rest)):
        unknown += [f"workload {given.group(1)}"] if not _is_workload(given.group(1)) else []
    unknown += [f"engine {name}" for name in re.findall(r"--engine (\S+)", rest) if name not in streaming_engines()]
    known = _parameters()
    unknown += [
        f"set {name}"
        for name in re.findall(r"--set ([\w.]+)", rest)
        if name not in known and not is_data(name) and not is_data_time(name)
    ]
    return unknown + [f"option {name}" for name in re.findall(r"--option \"?([\w.]+)", rest) if not _is_option(name)]


def _is_workload(name: str) -> bool:
    """A name of the list, or a user job: an example that is there, or the one that readers are to write."""
    return name in names() or name in TO_BE_WRITTEN or (name.endswith(".py") and (ROOT / name).is_file())


def _parameters() -> set[str]:
    return {name for workload in names() for name in get(workload).parameters.model_fields}


def _is_option(name: str) -> bool:
    there = {setting.name for each in capabilities().values() for setting in each.settings}
    return name in there or name.startswith("spark.")


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
    told = {(one.group(1), one.group(2)) for one in named if one} | {
        (module, name) for module, name in re.findall(r"`(\w+(?:/\w+)+)\.py`, `(\w+)`", text)
    }
    ours = [(module, name) for module, name in told if (package / module.split("/")[0]).is_dir()]
    return sorted(f"{module}.{name}" for module, name in ours if name not in defined_in(package / f"{module}.py"))


def defined_in(file: Path) -> set[str]:
    """The names that a module defines, read and not imported; none where there is no such file."""
    found: set[str] = set()
    for node in ast.parse(file.read_text()).body if file.exists() else []:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


# Names that a page asks its reader to make, or that stand for any file.
TO_BE_WRITTEN = {"my_job.py"}
TO_BE_MADE = {"src/streamgauge/workloads/micro/spending.py"}


def fields(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every field of a result as a dotted path, `[]` for lists; kinds of latency and what repeats are walked once."""
    for name, field in model.model_fields.items():
        path = f"{prefix}{name}"
        inner, many = _model_in(field.annotation)
        if inner is None:
            yield path
        elif not _told_elsewhere(path):
            yield path
            yield from fields(inner, path + ("[]." if many else "."))


TOLD_ONCE = ("ways.one_each", "ways.source_only", "trials[].first_of_batch")
"""Parts of a study's result that have the fields of another part."""


def _told_elsewhere(path: str) -> bool:
    """A sink's `latency` and `verification` are those of the whole again, and kinds of latency have one's fields."""
    kinds = ("until_counted_us", "processing_time_us", "closing_delay_us", "match_time_us", "uncorrected_us")
    of_sinks = ("sinks[].latency", "sinks[].verification")
    return path in (*TOLD_ONCE, "search.at_90_percent", *of_sinks, *(f"latency.{kind}" for kind in kinds))


def _model_in(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """(the model that a field holds, whether it holds many of them)."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, False
    inner = [found for part in get_args(annotation) if (found := _model_in(part))[0] is not None]
    return (inner[0][0], inner[0][1] or get_origin(annotation) is tuple) if inner else (None, False)


def told_fields(text: str) -> set[str]:
    """The paths in the first column of the tables; `.mean` after a path stands for its sibling."""
    told: set[str] = set()
    for line in text.splitlines():
        parent = ""
        for name in spans(line.split("|")[1]) if line.startswith("| `") else []:
            told.add(parent + name if name.startswith(".") else name)
            parent = parent if name.startswith(".") else name.rpartition(".")[0]
    return told


@every_page
def test_links_resolve(page: Path) -> None:
    """Every relative link leads to a file that is there, and to a heading that it has."""
    assert dead_links(page.read_text(), page) == []


def test_dead_links_are_found() -> None:
    """A file that is not there and a heading that is not there are both told."""
    text = "# One\n[a](nowhere.md) [b](#one) [c](#two) [d](README.md#a-result) [e](README.md#none)"
    assert dead_links(text, ROOT / "page.md") == ["nowhere.md", "#two", "README.md#none"]


@every_page
def test_command_lines_exist(page: Path) -> None:
    """Every command, option, workload, engine and setting in a command line is one that the program has."""
    assert [word for line in code_lines(page.read_text()) for word in unknown_words(line)] == []


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
    """Each kind of name that the program does not have is told."""
    assert unknown_words(line) == unknown


@every_page
def test_make_targets_exist(page: Path) -> None:
    """Every `make TARGET` is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    lines = code_lines(page.read_text())
    named = {found.group(1) for line in lines if (found := re.match(r"(?:\S+=\S+ )?make ([a-z-]+)", line))}
    assert named - targets == set()


def test_readme_gives_the_commands() -> None:
    """The README shows the two commands to begin with, and one line for each command that measures."""
    lines = [line.strip() for line in code_lines((ROOT / "README.md").read_text())]
    for start in ("make demo", "make test"):
        assert any(line.startswith(start) for line in lines), start
    for command in ("run", "sustain", "generate", "compare", "report", "selftest"):
        assert any(f"streamgauge {command}" in line for line in lines), command


@every_page
def test_named_files_exist(page: Path) -> None:
    """A Python file that a page names is in the repository."""
    assert set(missing_files(page.read_text())) - TO_BE_MADE - TO_BE_WRITTEN == set()


def test_docstrings_name_existing_files() -> None:
    """A Python file that a docstring of the package names is in the repository."""
    modules = (ROOT / "src").rglob("*.py")
    missing = {str(module.relative_to(ROOT)): missing_in_docstrings(module.read_text()) for module in modules}
    assert {module: set(files) - TO_BE_WRITTEN for module, files in missing.items() if set(files) - TO_BE_WRITTEN} == {}


def test_missing_files_of_docstrings_are_found() -> None:
    """A renamed file is found in the docstring of a module, a class or a function; a comment is not read."""
    source = '"""See roads.py, road_map.py."""\nclass A:\n    """See `old/leads.py`."""\n# gone.py\n'
    assert missing_in_docstrings(source) == ["old/leads.py", "roads.py"]


def test_missing_files_are_found() -> None:
    """Files are looked for in the repository and in the package; others are told."""
    assert missing_files("`verdict/verdict.py` `tools/docs_tables.py` `run/nothing.py`") == ["run/nothing.py"]


@every_page
def test_named_definitions_exist(page: Path) -> None:
    """A function, class or constant that a page names by its module is defined there."""
    assert missing_names(page.read_text()) == []


def test_missing_definitions_are_found() -> None:
    """Functions, classes, constants with a type and without; a module that is not there has none; no files."""
    text = (
        "`metrics/latency/result_kind.has_matches` `metrics/latency/result_kind.Kind` "
        "`studies/operator_profile/profile._TYPES` `dataflow/nodes.Mode` `trial/no.thing`"
    )
    assert missing_names(text) == ["metrics/latency/result_kind.Kind", "trial/no.thing"]
    assert missing_names("`verification/expected.py`, `_matches`; `metrics/latency/result_kind.py`, `kind_of`") == [
        "verification/expected._matches"
    ]
    assert missing_names("`metrics/latency/result_kind.py` `engine/operators.parquet` `result.json`") == []


def test_every_method_of_an_engine_is_documented() -> None:
    """add-an-engine.md has a row for each method of the interface, in their order, and for nothing else."""
    part = (
        (ROOT / "docs" / "contributing" / "add-an-engine.md")
        .read_text()
        .split("\n## The interface\n")[1]
        .split("\n## ")[0]
    )
    told = [name for line in part.splitlines() if line.startswith("| `") for name in spans(line.split("|")[1])]
    methods = [name for name, method in vars(Engine).items() if inspect.isfunction(method) and name[0] != "_"]
    assert told == methods


@every_page
def test_bench_programs_exist(page: Path) -> None:
    """Every `python -m bench.NAME` is a module of bench/, and every `--only NAME` the last part of one."""
    text = "\n".join(code_lines(page.read_text()))
    modules = set(re.findall(r"python -m bench\.([a-z][\w.]*\w)", text))
    last_parts = set(re.findall(r"python -m bench --only ([a-z]\w*)", text))
    assert {name for name in modules if not (ROOT / "bench" / f"{name.replace('.', '/')}.py").exists()} == set()
    assert {name for name in last_parts if not list((ROOT / "bench").glob(f"*/{name}.py"))} == set()


@every_page
def test_tables_are_those_of_the_code(page: Path) -> None:
    """Tables made from the code are as it would make them now; if not: python tools/docs_tables.py."""
    text = page.read_text()
    assert text == TABLES.renewed(text), "out of step with the code: run `python tools/docs_tables.py`"


def test_a_stale_table_is_found() -> None:
    """A table that differs from the code's is made anew, and the text around it stays."""
    text = "before\n<!-- generated: workloads -->\nold\n<!-- end of workloads -->\nafter"
    renewed = TABLES.renewed(text)
    assert renewed != text
    assert renewed.startswith("before\n")
    assert renewed.endswith("\nafter")
    assert "`identity`" in renewed


def test_every_table_has_its_place() -> None:
    """Every workload, engine, option, command and check is documented: each table stands on exactly one page."""
    pages = "\n".join(page.read_text() for page in PAGES)
    assert {name: pages.count(f"<!-- generated: {name} -->") for name in TABLES.makers()} == dict.fromkeys(
        TABLES.makers(), 1
    )


def test_every_workload_has_its_section() -> None:
    """The pages of the families have a section for each workload and for no other, each with its right answer."""
    texts = [
        page.read_text()
        for page in [
            page for page in sorted((ROOT / "docs" / "reference" / "workloads").glob("*.md")) if page.stem != "index"
        ]
    ]
    sections = [section for text in texts for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]]
    titled = {section.split("\n", 1)[0]: section for section in sections}
    assert len(titled) == len(sections)
    assert set(titled) == set(names())
    assert [name for name, section in titled.items() if "**Right answer.**" not in section] == []


def test_every_field_of_a_result_is_told() -> None:
    """docs/reference/result-files.md explains every field of result.json and names none that is not there."""
    text = (ROOT / "docs" / "reference" / "result-files.md").read_text()
    part = text[text.index("## result.json") : text.index("## series.parquet")]
    there = set(fields(Result)) | {f"latency.{kind}" for kind in Result.model_fields["latency"].annotation.model_fields}  # type: ignore[union-attr]
    there |= {"search.at_90_percent", "sinks[].latency", "sinks[].verification"}
    assert told_fields(part) == there


@pytest.mark.parametrize(("file", "model"), [(CHARACTERIZATION, OperatorProfile), (ANATOMY, LatencyBreakdown)])
def test_every_field_of_a_study_is_told(file: str, model: type[BaseModel]) -> None:
    """docs/reference/result-files.md explains every field of a study's file and names none that is not there."""
    text = (ROOT / "docs" / "reference" / "result-files.md").read_text()
    part = text.split(f"\n## {file}\n")[1].split("\n## ")[0]
    assert told_fields(part) == set(fields(model)) | {path for path in TOLD_ONCE if path in part}


def test_every_key_of_an_experiment_is_told() -> None:
    """docs/reference/experiment-file.md explains every key of an experiment file and names none that is not there."""
    text = (ROOT / "docs" / "reference" / "experiment-file.md").read_text()
    assert told_fields(text) == set(fields(Experiment))


def test_every_field_of_a_comparison_is_told() -> None:
    """docs/how-to/compare-and-gate.md explains every field of `compare --json`; side b has those of side a."""
    text = (ROOT / "docs" / "how-to" / "compare-and-gate.md").read_text()
    part = text[text.index("## The answer as JSON") :]
    assert told_fields(part) == {field for field in fields(Comparison) if not field.startswith("b.runs[].")}


def test_every_figure_to_compare_by_is_told() -> None:
    """docs/how-to/compare-and-gate.md names each, the kinds of latency by one of their statistics."""
    part = (ROOT / "docs" / "how-to" / "compare-and-gate.md").read_text().split("## Figures")[1].split("## In CI")[0]
    told = {name.removesuffix("_p99") for name in told_fields(part)}
    there = {re.sub("_(mean|p[0-9_]+)$", "", name) for name in comparables()} - {"event_time"}
    assert there <= told
    assert told - there == {"rate", "p50", "p90", "p95", "p99", "p99.9", "mean"}


def test_latency_fields_are_walked() -> None:
    """The walk over a result reaches the statistics of a latency and the lists of a search."""
    there = set(fields(Result))
    assert {f"latency.event_time_us.{name}" for name in Latency.model_fields} <= there
    assert "search.trials[].offered_per_s" in there


@pytest.mark.parametrize(
    ("heading", "schema"), [("series.parquet", tables.SCHEMA), ("engine/batches.parquet", tables.BATCHES)]
)
def test_every_column_is_told(heading: str, schema: Any) -> None:
    """docs/reference/result-files.md explains every column of the two tables, in their order."""
    text = (ROOT / "docs" / "reference" / "result-files.md").read_text()
    part = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    told = [name for line in part.splitlines() if line.startswith("| `") for name in spans(line.split("|")[1])]
    assert told == schema.names


@every_page
def test_code_in_documents_runs(page: Path) -> None:
    """Blocks under `<!-- tested -->` run from top to bottom in one namespace; their assertions hold."""
    namespace: dict[str, Any] = {"__name__": page.stem}
    for mark, language, code in fences(page.read_text()):
        if mark == "tested" and language == "python":
            exec(compile(code, str(page), "exec", dont_inherit=True), namespace)


def test_the_flows_shown_first_run_on_spark() -> None:
    """What a reader would copy is not refused; words that only the reference has are told in their table."""
    namespace: dict[str, Any] = {}
    first = next(
        code
        for mark, _, code in fences((ROOT / "docs" / "contributing" / "flow-language.md").read_text())
        if mark == "tested"
    )
    exec(compile(first, "flow.md", "exec", dont_inherit=True), namespace)
    flows = [value for value in namespace.values() if isinstance(value, Flow)]
    assert len(flows) == 2
    asked = {type(node).__name__ for flow in flows for node in graph.operators(flow)}
    assert asked <= set(capabilities()["spark"].nodes)


FAKE = """#!/bin/sh
echo "$(basename "$0") $*" >> said
[ "$1" != run ] || [ -d "$(echo "$*" | sed 's/.*--out //')" ] || exit 2
exit "$(cat "$1.code" 2> /dev/null || echo 0)"
"""
"""Stands for a program: notes its words, wants the folder of --out, ends with the code that stands in a file."""


@pytest.mark.parametrize(("run", "compare", "code", "runs"), [(0, 0, 0, 6), (1, 0, 0, 6), (1, 1, 1, 6), (3, 0, 1, 1)])
def test_the_script_for_ci_compares_whatever_the_runs_found(
    run: int, compare: int, code: int, runs: int, tmp_path: Path
) -> None:
    """Runs that are not sustained are compared; a machine that lacks something ends it; the last code is the gate's."""
    for program in ("git", "streamgauge"):
        (tmp_path / program).write_text(FAKE)
        (tmp_path / program).chmod(0o755)
    (tmp_path / "run.code").write_text(str(run))
    (tmp_path / "compare.code").write_text(str(compare))
    (script,) = [
        code
        for _, language, code in fences((ROOT / "docs" / "how-to" / "compare-and-gate.md").read_text())
        if language == "sh"
    ]
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=environment, check=False)
    said = (tmp_path / "said").read_text().splitlines()
    assert done.returncode == code
    assert len([line for line in said if line.startswith("streamgauge run ")]) == runs
    assert [line.split()[:4] for line in said if " compare " in line] == [
        ["streamgauge", "compare", "runs/base", "runs/new"]
    ] * (runs == 6)


def test_the_worked_example_is_tested() -> None:
    """All Python of docs/contributing/add-a-workload.md is under the mark, so that none of it is only believed."""
    blocks = fences((ROOT / "docs" / "contributing" / "add-a-workload.md").read_text())
    marks = [mark for mark, language, _ in blocks if language == "python"]
    assert marks
    assert set(marks) == {"tested"}


@every_page
def test_experiments_in_documents_are_valid(page: Path) -> None:
    """TOML under `<!-- tested: experiment -->` is an experiment."""
    for mark, language, code in fences(page.read_text()):
        if mark == "tested: experiment":
            assert language == "toml"
            assert_can_be_asked(build(tomllib.loads(code)))


@pytest.mark.parametrize("path", EXPERIMENTS, ids=[path.name for path in EXPERIMENTS])
def test_shipped_experiments_are_valid(path: Path) -> None:
    """Each shipped file reads as an experiment that can be asked, and survives being written out again."""
    experiment = read(path)
    assert_can_be_asked(experiment)
    assert build(tomllib.loads(to_toml(experiment))) == experiment


def test_shipped_experiments_are_told() -> None:
    """experiments/README.md has a row for each file."""
    text = (ROOT / "experiments" / "README.md").read_text()
    assert EXPERIMENTS
    assert [path.name for path in EXPERIMENTS if f"[{path.name}]({path.name})" not in text] == []


def assert_can_be_asked(experiment: Experiment) -> None:
    """The workload, its parameters and the engine's options are all there; nothing is asked of this machine."""
    workload = get(experiment.workload)
    workload.build(workload.read(experiment.parameters), experiment.load.rate)
    engine = capabilities()[experiment.engine]
    settings = {setting.name: setting.choices for setting in engine.settings}
    for name, value in experiment.options.items():
        assert name.startswith("spark.") or name in settings, name
        assert name.startswith("spark.") or not settings[name] or value in settings[name], (name, value)


def test_quoted_messages_are_the_program_s() -> None:
    """Each message that troubleshooting.md quotes stands in the source, so that a reader can search for it."""
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    quotes = re.findall(r"^> (.+)$", (ROOT / "docs" / "how-to" / "troubleshooting.md").read_text(), re.MULTILINE)
    pieces = [piece.strip() for quote in quotes for piece in quote.split("...") if piece.strip()]
    assert len(quotes) > 5
    assert [piece for piece in pieces if piece not in source] == []


RESULTS = sorted((ROOT / "docs" / "results").glob("*.md"))
FIGURE = re.compile(r"\b[\d.,]+ ?(?:[kM]/s|[mnu]s|s|GB|MB)\b")


def typed_figures(text: str) -> list[str]:
    """Rates, times and sizes that stand in a page's tables, but in none that is made from data."""
    rows = [line for line in TABLES._BLOCK.sub("", text).splitlines() if line.startswith("|")]
    return [figure for row in rows for figure in FIGURE.findall(row)]


@pytest.mark.parametrize("page", RESULTS, ids=[page.name for page in RESULTS])
def test_measured_figures_come_from_data(page: Path) -> None:
    """Tables of measured figures are made from docs/results/data, so that none is typed in."""
    assert typed_figures(page.read_text()) == []


def test_a_typed_figure_is_found() -> None:
    """In a table by hand; one in a generated table is none."""
    made = "<!-- generated: results: summary -->\n| a | 3 ms |\n<!-- end of results: summary -->"
    assert typed_figures(f"{made}\n| rate | 250 k/s |\n| p50 | 3.5 ms |") == ["250 k/s", "3.5 ms"]


def test_data_of_results_are_whole(tmp_path: Path) -> None:
    """A row says what it is and has the head's cells, a series one figure for each row; what is shared stands once."""
    file = tmp_path / "data.csv"
    for text, message in (
        ("what,figure\na,1,2\n", "line 2: must have 2 cells"),
        ("what,figure\n,1\n", "must say its what"),
        ("what,figure\n", "must have rows"),
        ("what,series,figure\na,x,1\na,x,2\n", "one figure for each what and series"),
    ):
        file.write_text(text)
        with pytest.raises(ValueError, match=message):
            TABLES.results(file)
    file.write_text("what,figure,floor,date,command\na,1,,2026-01-02,bench\nb,2,,2026-01-02,bench\n")
    assert TABLES.results(file) == "| what | figure |\n| --- | --- |\n| a | 1 |\n| b | 2 |\n\n2026-01-02; `bench`"
    file.write_text("what,series,figure,date\na,x,1,2026\na,y,2,2027\nb,y,3,2027\n")
    assert TABLES.results(file).splitlines()[2:] == ["| a | 1 | 2 |", "| b | - | 3 |", "", "- x: 2026", "- y: 2027"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("K1,Karimov et al. 2018,b,,works,", "must have one row"),
        ("K2,Karimov,b,,works,", "no such work or status"),
        ("K2,Bordin 2017,b,,done,", "no such work or status"),
        ("K2,Bordin 2017,b,,partial,", "must say why"),
    ],
)
def test_coverage_is_whole(row: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each requirement once, of one of the works, with a status, and a reason unless it works."""
    file = tmp_path / "coverage.csv"
    file.write_text(f"id,work,asked,here,status,why\nK1,Karimov et al. 2018,a,run,works,\n{row}\n")
    monkeypatch.setattr(TABLES, "COVERAGE", file)
    with pytest.raises(ValueError, match=message):
        TABLES.coverage_rows()


REAL_RESULT = {
    "a p99": r"\bp99\b(?!\.| +-)",
    "its time": r"\d (?:ms|s)\b",
    "in memory or over Kafka": r"\bin memory\b|\bKafka\b",
    "its tuning profile": r"\b(?:tuned|idiomatic)\b",
}
"""What the README's real result says, and how that is recognized."""


def unsaid(readme: str) -> list[str]:
    """What the README's real result does not say."""
    block = readme.split("<!-- real result: begin -->")[1].split("<!-- real result: end -->")[0]
    return [what for what, pattern in REAL_RESULT.items() if not re.search(pattern, block)]


def test_the_readme_shows_a_real_result() -> None:
    """With a p99, over what the events travelled, and the profile: a rate without them misleads."""
    assert unsaid((ROOT / "README.md").read_text()) == []


def test_what_a_real_result_leaves_out_is_found() -> None:
    """A p99 that was withheld is none; what stands outside of the marks does not count."""
    begin, end = "<!-- real result: begin -->", "<!-- real result: end -->"
    assert unsaid(f"{begin}\nin memory, tuned: p50 2 s, p99 3.1 s\n{end}") == []
    assert unsaid(f"{begin}\n{end}\nin memory, tuned: p99 3.1 s") == list(REAL_RESULT)
    assert unsaid(f"{begin}\nover Kafka, idiomatic: p50 2 s  p99 -  p99.9 -\n{end}") == ["a p99"]


def minutes(text: str) -> list[str]:
    """The times of a text in minutes, as `3` or `10 to 15`."""
    return re.findall(r"(\d+(?: to \d+)?) min(?:utes?)?\b", text)


def help_of(command: Any) -> str:
    """Everything that `streamgauge COMMAND --help` says."""
    return " ".join([command.help or "", *(getattr(parameter, "help", None) or "" for parameter in command.params)])


def other_times(readme: str, makefile: str, helps: dict[str, str]) -> list[str]:
    """Each time of the README that the help of the same command or make target contradicts."""
    helps = {f"streamgauge {name}": text for name, text in helps.items()} | {
        f"make {name}": text for name, text in re.findall(r"^([a-z-]+):.*?## (.*)$", makefile, re.MULTILINE)
    }
    lines = [
        (" ".join(re.findall(r"`(streamgauge [a-z]+)", line) or re.findall(r"^(make [a-z-]+) .*#", line)[:1]), line)
        for line in readme.splitlines()
    ]
    return [
        f"{name}: {minutes(line)} in README.md, {minutes(helps[name])} in its help"
        for name, line in lines
        if minutes(line) and minutes(helps.get(name, "")) and set(minutes(helps[name])) != set(minutes(line))
    ]


def test_the_readme_and_the_help_state_the_same_times() -> None:
    """Where both state one; that of `make demo`, `make test` and `selftest` is stated in both."""
    readme, makefile = (ROOT / "README.md").read_text(), (ROOT / "Makefile").read_text()
    helps = {name: help_of(command) for name, command in TABLES.commands().items()}
    assert other_times(readme, makefile, helps) == []
    for name in ("demo", "test"):
        assert minutes(re.findall(rf"^{name}:.*## (.*)$", makefile, re.MULTILINE)[0]), name
    assert minutes(helps["selftest"])


def test_a_time_promised_twice_is_found() -> None:
    readme = (
        "make demo   # 3 minutes\n| right? | `streamgauge selftest` | 5 min |\n| fast? | `streamgauge run x` | 2 min |"
    )
    assert other_times(readme, "demo: setup ## for 2 minutes\n", {"selftest": "takes 10 minutes", "run": "runs"}) == [
        "make demo: ['3'] in README.md, ['2'] in its help",
        "streamgauge selftest: ['5'] in README.md, ['10'] in its help",
    ]
