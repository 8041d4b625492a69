"""The tables in the documents that are made from the code and from data files, so that neither can disagree.

    python tools/docs_tables.py           write them between their markers
    python tools/docs_tables.py --check   exit 1 if one is out of date (`tests/docs` checks the same)

A table stands between `<!-- generated: NAME -->` and `<!-- end of NAME -->`. Measured figures: `results: NAME` is the
table of docs/results/data/NAME.csv. Coverage of the four works: docs/research/coverage.csv; of
Ehrenstein's specification, with the tests: docs/research/scalability-checklist.csv.
"""

from __future__ import annotations

import csv
import functools
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLE = DOCS.parent / "examples" / "engine_plugin"
DATA = DOCS / "results" / "data"
COVERAGE = DOCS / "research" / "coverage.csv"
CHECKLIST = DOCS / "research" / "scalability-checklist.csv"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; bars inside cells are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def code(text: object) -> str:
    return f"`{text}`"


def page_of(workload: str) -> str:
    """The page of its family, on which the workload has its section; the index itself where it has none yet."""
    mark = f"<!-- generated: flow of {workload} -->"
    return next(
        (page.name for page in sorted((DOCS / "reference" / "workloads").glob("*.md")) if mark in page.read_text()),
        "index.md",
    )


def workload_list() -> str:
    from streamgauge.workloads.registry import catalogue

    rows = [
        (f"[{code(row['name'])}]({page_of(row['name'])}#{row['name']})", row["summary"],
         ", ".join(code(s["name"]) for s in row["streams"]),
         "; ".join(f"{code(s['name'])}, {s['mode']}" for s in row["sinks"]), row["source"])
        for row in catalogue()
    ]  # fmt: skip
    return table(("workload", "what it does", "streams", "results", "source"), rows)


def packages() -> str:
    """Every package and sub-package: its purpose, its modules, and what it may import by `tests/test_layers.py`."""
    import ast
    import runpy

    import streamgauge

    source = Path(streamgauge.__file__).parent
    allowed: Mapping[str, str] = runpy.run_path(str(DOCS.parent / "tests" / "test_layers.py"))["MAY_IMPORT"]
    rows = []
    for name, imports in allowed.items():
        folder = source / name.replace(".", "/")
        if folder.is_dir():
            purpose = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
            modules = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
            rows.append((code(name), " ".join(purpose.split()), ", ".join(map(code, modules)), imports))
    return table(("package", "purpose", "modules", "may import"), rows)


def parameters_of(name: str) -> str:
    from streamgauge.workloads.registry import catalogue

    row = next(row for row in catalogue() if row["name"] == name)
    return table(
        ("parameter (`--set`)", "default", "meaning"),
        [(code(p["name"]), "none" if p["default"] == "" else code(p["default"]), p["meaning"])
         for p in row["parameters"]],
    )  # fmt: skip


def flow_of(name: str) -> str:
    from streamgauge.workloads.registry import catalogue

    row = next(row for row in catalogue() if row["name"] == name)
    return table(
        ("operator", "kind", "what it does", "reads"),
        [(code(n["name"]), n["kind"].replace("_", " "), n["label"], _listed(n["inputs"]))
         for n in row["flow"]],
    )  # fmt: skip


@functools.cache
def dataflow_blocks() -> dict[str, str]:
    """Tables and example of the JSON form of a flow."""
    import runpy

    blocks = runpy.run_path(str(Path(__file__).with_name("docs_dataflow.py")))["blocks"]()
    return {name: block if isinstance(block, str) else table(*block) for name, block in blocks.items()}


def features() -> str:
    """What workloads ask of an engine, by what each states of itself."""
    from streamgauge.workloads.features import MEANING
    from streamgauge.workloads.registry import get, names

    def stating(feature: object) -> Iterable[str]:
        for name in names():
            for text, one in get(name).exercises().items():
                if one is feature:
                    yield code(name) + text.removeprefix(str(feature))

    rows = [(str(feature), meaning, ", ".join(stating(feature)) or "-") for feature, meaning in MEANING.items()]
    return table(("feature", "what it is", "workloads"), rows)


def engine_matrix() -> str:
    from streamgauge.engines.registry import matrix
    from streamgauge.report.terminal.catalogue import TRUTH

    engines = matrix()
    nodes = list(dict.fromkeys(node for engine in engines for node in engine["nodes"]))
    rows = [("", *(engine["summary"] for engine in engines))]
    rows += [
        (label, *(_yes(e[key]) for e in engines))
        for label, key in (("runs streams", "streams"), ("computes truth", "truth"), ("several sinks", "several_sinks"))
    ]
    rows += [(code(node), *(_mark(node, engine) for engine in engines)) for node in nodes]
    rows += [
        (label, *(", ".join(engine[key]) or "-" for engine in engines))
        for label, key in (("sink modes", "sink_modes"), ("transports", "transports"))
    ]
    return f"{table(('', *(code(engine['name']) for engine in engines)), rows)}\n\n{TRUTH}"


def pairs() -> str:
    """Every workload on every engine over every transport that it reads, by the check before a run; what is refused has
    the number of its reason below.
    """
    from streamgauge.engines.registry import capabilities, streaming_engines
    from streamgauge.workloads.registry import names

    ways = [(name, transport) for name in streaming_engines() for transport in capabilities()[name].transports]
    reasons: list[str] = []
    rows = []
    for workload in names():
        cells = []
        for way in ways:
            numbers = [_number(reason, reasons) for reason in refused(workload, *way)]
            cells.append(", ".join(f"({number})" for number in numbers) or "yes")
        rows.append((code(workload), *cells))
    head = ("workload", *(f"{code(name)}, {transport}" for name, transport in ways))
    told = "\n".join(f"{number}. {reason}" for number, reason in enumerate(reasons, 1))
    return f"{table(head, rows)}\n\n{told}"


def refused(workload: str, engine: str, transport: str) -> list[str]:
    """Why a pair cannot be, each reason once, of whichever operator."""
    from streamgauge.preflight.compatibility import incompatibility

    problems = incompatibility(workload, engine, transport)
    return list(dict.fromkeys(f"`{one.setting}` {_OPERATOR.sub('', one.rule)}" for one in problems))


_OPERATOR = re.compile(r" \([^()]*\)$")
"""At the end of a reason: which of the operators it was."""


def _number(reason: str, reasons: list[str]) -> int:
    if reason not in reasons:
        reasons.append(reason)
    return reasons.index(reason) + 1


def published_latencies() -> str:
    """Of each application that it measured, on each system: the configuration on one node with the least p95."""
    from streamgauge.studies.operator_profile.published import best_on_one_node
    from streamgauge.workloads.registry import names

    best = [(name, best_on_one_node(name, system)) for name in names() for system in ("Spark", "Storm")]
    return table(
        ("application", "system", "configuration", "p95 at tuples/s at the sink", "table"),
        [(code(name), rows[0].system, rows[0].configuration, "; ".join(map(str, rows)), rows[0].table)
         for name, rows in best if rows],
    )  # fmt: skip


WORDS = {
    "Source": "source(...)", "Select": ".select(...)", "Where": ".where(...)", "Explode": ".explode(...)",
    "Lookup": ".lookup(...)", "Union": "union(...)", "WindowAggregate": ".window(hop(...)).aggregate(...)",
    "SessionAggregate": ".window(session(...)).aggregate(...)", "RunningAggregate": ".running(...)",
    "WindowJoin": ".join(...)", "IntervalJoin": ".interval_join(...)", "Distinct": ".distinct(...)",
    "TopN": ".top(...)", "Process": ".process(...)",
}  # fmt: skip
"""Node of a flow to the word that makes it; user jobs and programs, which are nodes too, have none."""
MADE_OF = {".window(count(...)).aggregate(...)": "Process"}
"""Words that make a node of another word."""


def words_of_engines() -> str:
    """Which engine runs which word, by what each says of itself."""
    from streamgauge.engines.registry import matrix

    engines = matrix()
    nodes = {node for engine in engines for node in engine["nodes"]} - {"UserJobNode", "ProgramNode"}
    words = [(WORDS[node], node) for node in sorted(nodes, key=list(WORDS).index)] + list(MADE_OF.items())
    rows = [(code(word), code(node), *(_mark(node, engine) for engine in engines)) for word, node in words]
    return table(("word", "node", *(code(engine["name"]) for engine in engines)), rows)


def _mark(node: str, engine: Mapping[str, Any]) -> str:
    if node == "WindowAggregate" and engine["windows_so_far"]:
        return "values so far"
    return _yes(node in engine["nodes"])


def _yes(holds: bool) -> str:
    return "yes" if holds else "-"


def engine_options() -> str:
    from streamgauge.engines.registry import matrix

    rows = [(engine["name"], option) for engine in matrix() for option in engine["options"]]
    return table(
        ("engine", "option (`--option`)", "default", "choices", "meaning"),
        [(code(e), code(o["name"]), code(o["default"]), _listed(o["choices"]), o["meaning"]) for e, o in rows],
    )


def transport_options() -> str:
    from streamgauge.engines.registry import transport_rows

    rows = [option for transport in transport_rows() for option in transport["options"]]
    return table(
        ("option (`--transport-option`)", "default", "choices", "meaning"),
        [(code(o["name"]), code(o["default"]) if o["default"] else "-", _listed(o["choices"]), o["meaning"])
         for o in rows],
    )  # fmt: skip


def tuning_profiles() -> str:
    """What each tuning profile sets, on each engine that has more than one; an entry that a profile does not make is
    the option's default.
    """
    from streamgauge.engines.registry import capabilities, streaming_engines
    from streamgauge.transports.registry import transport

    engines = [capabilities()[name] for name in streaming_engines()]
    profiles = list(dict.fromkeys(name for engine in engines for name in engine.profiles))
    rows: list[tuple[str, ...]] = []
    for engine in (engine for engine in engines if len(engine.profiles) > 1):
        here = [engine.profiles[name] for name in profiles]
        defaults = {each.name: each for each in engine.settings}
        for option in dict.fromkeys(option for profile in here for option in profile.options):
            values = (code(profile.options.get(option, defaults[option].default)) for profile in here)
            rows.append((code(engine.name), f"`--option {option}`", *values, defaults[option].meaning))
        for way in dict.fromkeys(way for profile in here for way in profile.transport_options):
            settings = {each.name: each for each in transport(way).settings}
            sets = [profile.transport_options.get(way, {}) for profile in here]
            for option in dict.fromkeys(option for each in sets for option in each):
                values = (code(each.get(option, settings[option].default)) for each in sets)
                flag = f"`--transport-option {option}`, over {way}"
                rows.append((code(engine.name), flag, *values, settings[option].meaning))
    alone = [code(engine.name) for engine in engines if len(engine.profiles) == 1]
    head = ("engine", "option", *map(code, profiles), "meaning")
    return f"{table(head, rows)}\n\nThese engines have the profile `tuned` only: {', '.join(alone)}."


def measured_profiles(file: Path) -> str:
    import runpy

    return str(runpy.run_path(str(Path(__file__).with_name("docs_tuning_profiles.py")))["measured"](file))


@functools.cache
def field_tables() -> dict[str, str]:
    """The tables of the fields and columns of result files."""
    import runpy

    blocks = runpy.run_path(str(Path(__file__).with_name("docs_fields.py")))["blocks"]()
    return {name: table(head, rows) for name, (head, *rows) in blocks.items()}


def example_entry_point() -> str:
    """The entry point in the example's pyproject.toml."""
    text = (EXAMPLE / "pyproject.toml").read_text()
    start = text.index("[project.entry-points")
    return f"```toml\n{text[start : text.index(chr(10) * 2, start)]}\n```"


def example_code(name: str) -> str:
    """A function or class of the example of an engine."""
    import ast

    text = (EXAMPLE / "streamgauge_python_consumer.py").read_text()
    node = next(each for each in ast.parse(text).body if getattr(each, "name", None) == name)
    return f"```python\n{ast.get_source_segment(text, node)}\n```"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(code, names)) or "-"


def commands() -> dict[str, Any]:
    """Command name to the parsed command, in the order of the help. A command of a group has both names."""
    import typer

    from streamgauge.cli.app import app

    group: Any = typer.main.get_command(app)
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        found[name] = command
        found |= {f"{name} {inner}": each for inner, each in getattr(command, "commands", {}).items()}
    return found


def command_list() -> str:
    named = commands().items()
    return "\n\n".join(_command(name, command) for name, command in named if not hasattr(command, "commands"))


def _command(name: str, command: Any) -> str:
    shown = [parameter for parameter in command.params if parameter.name != "help"]
    usage = " ".join(["streamgauge", name, *(_argument(p) for p in shown if p.param_type_name == "argument")])
    parts = [f"### {name}", command.help, f"Usage: {code(usage)}"]
    parts += [table(("argument or option", "default", "meaning"), map(_parameter, shown))] if shown else []
    return "\n\n".join(parts)


def _argument(parameter: Any) -> str:
    name = parameter.metavar or parameter.name.upper()
    return str(name) if parameter.required else f"[{name}]"


def _parameter(parameter: Any) -> tuple[str, str, str]:
    name = _argument(parameter) if parameter.param_type_name == "argument" else ", ".join(parameter.opts)
    meaning, _, said = (parameter.help or "").partition("  [default: ")
    unset = parameter.required or parameter.default in (None, "", False)
    return code(name), said.removesuffix("]") or ("-" if unset else code(parameter.default)), meaning


def exit_codes() -> str:
    """Every exit code with what ends so, by the codes of verdicts and errors."""
    from streamgauge.cli.app import DEFECT_EXIT
    from streamgauge.cli.commands import EXITS
    from streamgauge.core import errors

    ends = [
        (EXITS["sustained"], "sustained. `compare`: B keeps every `--fail-if`. `selftest`: every item holds"),
        (EXITS["sustained"], "`scale`: every cell is decided"),
        (EXITS["not_sustained"], "not sustained"), (EXITS["undecided"], "undecided"),
        (EXITS["interrupted"], "interrupted"),
        (1, "`scale`: a cell is not decided, or answers are wrong"),
        (1, "`compare`: a `--fail-if` fails or is unknown"), (1, "`selftest`: an item does not hold"),
        (1, "`cluster status`: not every process of a cluster runs"),
        (errors.InputError.exit_code, "a command, setting, file or user job cannot be used. Nothing was measured"),
        (EXITS["invalid"], "invalid"),
        (errors.MachineError.exit_code, "this machine lacks something, such as Java: nothing was measured"),
        (errors.EngineError.exit_code, "the engine did not start"), (errors.DriverError.exit_code, "the driver failed"),
        (DEFECT_EXIT, "a defect of streamgauge"),
    ]  # fmt: skip
    by_code = {end: [what for other, what in ends if other == end] for end, _ in sorted(ends)}
    return table(("exit code", "what happened"), [(str(end), "; ".join(what)) for end, what in by_code.items()])


def experiment_keys() -> str:
    """Every key of an experiment file that has an option on the command line, by the settings themselves."""
    from streamgauge.config.options_and_settings import SETTINGS
    from streamgauge.config.setting_info import COMMANDS

    rows = []
    for name, info in SETTINGS.items():
        takers = [command for command in COMMANDS if command in info.commands]
        defaults = {command: _default(info.in_command(command)) for command in takers}
        usual = defaults[takers[0]]
        rest = "".join(f"; {command}: {value}" for command, value in defaults.items() if value != usual)
        rows.append((code(name), usual + rest, code(info.flag), ", ".join(takers), info.help))
    return table(("key", "default", "option", "commands", "meaning"), rows)


def _default(info: Any) -> str:
    if info.required:
        return "required"
    if info.default_text:
        return str(info.default_text)
    return code(str(info.default).lower() if info.is_switch else info.default)


def metrics() -> str:
    """Every metric for Prometheus."""
    from streamgauge.trial.prometheus.endpoint import METRICS

    rows = [
        (
            code(f"streamgauge_{info.name}{'_total' * (info.kind == 'counter')}"),
            ", ".join(map(code, info.labels)),
            info.text,
        )
        for info in METRICS
    ]
    return table(("metric", "labels", "value"), rows)


def check_list() -> str:
    """The checks of `verdict.criteria` with the limits that stand there."""
    from streamgauge.config.thresholds import BATCHES_MIN, BOUND_S_MIN, WINDOWS_MIN
    from streamgauge.harness.recorder_heartbeat import STILL_US_MIN
    from streamgauge.verdict.criteria import driver as d
    from streamgauge.verdict.criteria.backlog_trend import BACKLOG_SLOPE_SHARE_MAX
    from streamgauge.verdict.criteria.output_trend import OUTPUT_SLOPE_MAX
    from streamgauge.verdict.criteria.registry import CHECKS

    rows = {
        "driver": (
            f"in every second at least {d.PLAN_SHARE_MIN:.0%} of the plan was offered in time; schedule delay p99 is "
            f"at most {d.SCHEDULE_DELAY_US_MAX / 1000:.0f} ms or {d.DELAY_SHARE_OF_LATENCY:.0%} of the event-time p50 "
            "(where no latencies are known, of how far the output is behind, median), whichever is larger; "
            f"no driver process waited longer than {d.CORE_WAIT_US_MAX / 1000:.0f} ms for a core, on average "
            "each time it was ready; no latency is negative; generators delivered events, the recorder worked on "
            f"results, and it wrote them to its disk each for at most {d.BUSY_SHARE_MAX:.0%} of the span, "
            f"{d.BUSY_SHARE_MAX_IF_SLOW:.0%} where the system was not seen to keep up; the recorder stood still "
            f"for at most {d.STALL_SHARE_MAX:.0%} of the span, not counting the first {STILL_US_MIN / 1000:.0f} ms of "
            "each time",
            "invalid",
        ),
        "connected": (
            "no process of the SUT died; in the span no read was cut off before it was taken whole (a job of your own "
            "may), and no task was retried",
            "not sustained",
        ),
        "backlog_trend": (
            f"the slope of the backlog is at most {BACKLOG_SLOPE_SHARE_MAX:.0%} of the rate",
            "not sustained",
        ),
        "output_trend": (
            f"planned time - output frontier grows by at most {OUTPUT_SLOPE_MAX:g} s per second; batches that seem "
            "to get longer would not fill their interval in one more span",
            "not sustained",
        ),
        "latency_trend": (
            "nothing shows that the results' latency, from the delivery of their last event, grows by more than "
            f"{OUTPUT_SLOPE_MAX:g} s per second",
            "not sustained",
        ),
        "queue_bound": (
            "the backlog stayed below the queue's bound; where memory cuts the bound below "
            f"{BOUND_S_MIN:.0f} s of the rate, or was full by what is in flight or kept for a repeat while less than "
            "that waited, the trial is invalid",
            "not sustained, or invalid",
        ),
        "answers": (
            "0 rows are missing, extra, duplicate, wrong or late; where nothing was judged, undecided",
            "not sustained, or undecided",
        ),
        "evidence": (
            f"at least {BATCHES_MIN} batches, and for windowed flows {WINDOWS_MIN} windows closed; the backlog of "
            "the start was gone before the span began",
            "undecided",
        ),
    }
    return table(("check", "holds when", "else"), [(code(spec.name), *rows[spec.name]) for spec in CHECKS])


def codes_of(name: str) -> str:
    """The codes of an enumeration in `causes`, each with what it means; they stand in one column, and are no fields."""
    from streamgauge.results import causes

    return table(("meaning", "code"), [(one.meaning, code(one)) for one in getattr(causes, name)])


WHERE_FROM = ("date", "commit", "machine", "reference work", "command")
"""Columns that say how a figure was made: where all rows agree, they stand once, below the table."""
AS_CODE = ("application", "operator", "option", "command")


def rows_of(file: Path) -> list[dict[str, str]]:
    """The rows of a data file; ValueError where one has more or fewer cells than the head, or none says what it is."""
    with file.open(newline="", encoding="utf-8") as lines:
        reader = csv.DictReader(lines)
        rows = list(reader)
    names = list(reader.fieldnames or ())
    for number, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise ValueError(f"{file.name}, line {number}: must have {len(names)} cells, as the head has")
        if not row[names[0]]:
            raise ValueError(f"{file.name}, line {number}: must say its {names[0]}")
    if not rows:
        raise ValueError(f"{file.name}: must have rows")
    return rows


SPLIT: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "application-rates": (
        ("application", "holds", "next rate up", "latency p50", "p95", "p99", "max"),
        ("application", "what limits"),
        ("application", "operators", "exercises"),
        ("application", "trials", "reference work", "date", "machine", "commit"),
    ),
    "application-changes": (
        ("what", "before", "after"),
        ("what", "note"),
        ("what", "reference work", "date", "commit"),
    ),
    "operator-profiles": (
        ("application", "operator", "type", "rows arrive", "selectivity", "bytes of a tuple"),
        ("application", "operator", "time of a tuple p50", "p99"),
        ("application", "operator", "instances (cumulative)", "instances (immediate)", "instances (Bordin 2017)"),
    ),
}
"""Data too wide for a page: the columns of each table. The first column is in all; other columns are in the file."""


def results(file: Path) -> str:
    """Measured figures as a table, or as several if they are too wide for a page."""
    rows = rows_of(file)
    if file.stem not in SPLIT:
        return _results(rows, file.name)
    parts = [_results([{name: row[name] for name in names} for row in rows], file.name) for names in SPLIT[file.stem]]
    return "\n\n".join([*parts, f"All columns: [{file.name}](data/{file.name})."])


def _results(rows: Sequence[dict[str, str]], name: str) -> str:
    """A table; with a column `series`, a row for each `what` and a column for each series."""
    if "series" in rows[0]:
        return _by_series(rows, name)
    head = [name for name in rows[0] if any(row[name] for row in rows)]
    shared = [name for name in head if name in WHERE_FROM and len({row[name] for row in rows}) == 1]
    shown = [name for name in head if name not in shared]
    text = table(shown, ([_cell(name, row[name]) for name in shown] for row in rows))
    return f"{text}\n\n{_where_from(rows[0], shared)}" if shared else text


def _by_series(rows: Sequence[Mapping[str, str]], name: str) -> str:
    cells = {(row["what"], row["series"]): row["figure"] for row in rows}
    if len(cells) < len(rows):
        raise ValueError(f"{name}: must have one figure for each what and series")
    series = list(dict.fromkeys(row["series"] for row in rows))
    whats = dict.fromkeys(row["what"] for row in rows)
    text = table(("", *series), ((what, *(cells.get((what, one)) or "-" for one in series)) for what in whats))
    first = {one: next(row for row in rows if row["series"] == one) for one in series}
    return f"{text}\n\n" + "\n".join(f"- {one}: {_where_from(first[one], WHERE_FROM)}" for one in series)


def _cell(name: str, text: str) -> str:
    return (code(text) if name in AS_CODE else text) if text else "-"


def _where_from(row: Mapping[str, str], names: Iterable[str]) -> str:
    """How figures were made, in words."""
    said = {name: _cell(name, row[name]) for name in names if row.get(name)}
    return "; ".join(f"{name} {text}" if name in ("commit", "reference work") else text for name, text in said.items())


WORKS = ("Karimov et al. 2018", "latency study of Spark Streaming", "Ehrenstein 2020", "Bordin 2017")
STATUSES = ("works", "differs", "partial", "missing")


def coverage_rows() -> list[dict[str, str]]:
    """What the four works ask for; ValueError where an id comes twice, or a status or its reason is not one."""
    rows = rows_of(COVERAGE)
    ids = [row["id"] for row in rows]
    for row in rows:
        if ids.count(row["id"]) > 1:
            raise ValueError(f"coverage.csv: {row['id']} must have one row")
        if row["work"] not in WORKS or row["status"] not in STATUSES:
            raise ValueError(f"coverage.csv, {row['id']}: no such work or status: {row['work']}, {row['status']}")
        if row["status"] != "works" and not row["why"]:
            raise ValueError(f"coverage.csv, {row['id']}: must say why, where the status is {row['status']}")
    return rows


def coverage_summary() -> str:
    rows = coverage_rows()

    def counts(of: Sequence[Mapping[str, str]]) -> list[int]:
        return [len(of), *(sum(row["status"] == status for row in of) for status in STATUSES)]

    lines = [(work, *counts([row for row in rows if row["work"] == work])) for work in WORKS]
    return table(
        ("work", "requirements", *STATUSES), [tuple(map(str, line)) for line in [*lines, ("all", *counts(rows))]]
    )


def coverage_of(work: str) -> str:
    rows = [row for row in coverage_rows() if row["work"] == work]
    return table(
        ("id", "what is asked", "command or page", "status", "how it differs, what is missing"),
        [(row["id"], row["asked"], row["here"] or "-", row["status"], row["why"] or "-") for row in rows],
    )


def checklist_rows() -> list[dict[str, str]]:
    """Every line of Ehrenstein's specification; ValueError where a line has no reason, or a test does not exist."""
    rows = rows_of(CHECKLIST)
    for row in rows:
        where, (path, _, name) = f"{CHECKLIST.name}, {row['id']}", row["test"].partition("::")
        if row["status"] not in (*STATUSES, "not yet"):
            raise ValueError(f"{where}: no such status: {row['status']}")
        if row["status"] != "works" and not row["why"]:
            raise ValueError(f"{where}: must say why, where the status is {row['status']}")
        if row["status"] == "works" and not name:
            raise ValueError(f"{where}: must name a test, where the status is works")
        file = DOCS.parent / path
        if name and not (file.is_file() and f"\ndef {name}(" in file.read_text()):
            raise ValueError(f"{where}: no such test: {row['test']}")
    return rows


def checklist() -> str:
    return table(
        ("id", "what is asked", "command", "status", "test", "what is missing, or differs"),
        [
            (
                row["id"], row["asked"], row["here"] or "-", row["status"],
                code(row["test"].partition("::")[2]) if row["test"] else "-", row["why"] or "-",
            )
            for row in checklist_rows()
        ],
    )  # fmt: skip


_RATE = re.compile(r"([0-9.]+) ([kM]?)/s")


def _per_s(text: str) -> float:
    match = _RATE.match(text)
    if match is None:
        raise ValueError(f"must begin with a rate: {text!r}")
    return float(match[1]) * {"": 1.0, "k": 1e3, "M": 1e6}[match[2]]


def application_brackets() -> str:
    """How far apart both ends of the applications' searches lie, and how many have no upper end."""
    rows = [row for row in rows_of(DATA / "application-rates.csv") if row["holds"]]
    ended = [row for row in rows if _RATE.match(row["next rate up"])]
    widths = [round(100 * (_per_s(row["next rate up"]) / _per_s(row["holds"]) - 1)) for row in ended]
    failed = sum("undecided" not in row["next rate up"] for row in ended)
    if len(ended) + sum(row["next rate up"] == "no upper end was found" for row in rows) < len(rows):
        raise ValueError("application-rates.csv: must have a rate or `no upper end was found` as next rate up")
    far = f"{min(widths)} to {max(widths)} % above the rate that holds"
    return (
        f"- {len(ended)} of {len(rows)} applications have an upper end, {far}.\n"
        f"  {failed or 'None'} of these upper ends was shown to fail; the others are undecided.\n"
        f"- For {len(rows) - len(ended)} of them no upper end was found: no judged rate failed before the\n"
        "  allowed trials were used. They may sustain much more."
    )


def makers() -> dict[str, Callable[[], str]]:
    """Every table that there is, by the name in its markers."""
    from streamgauge.workloads.registry import names

    found: dict[str, Callable[[], str]] = {
        "workloads": workload_list, "features": features, "engines": engine_matrix, "engine options": engine_options,
        "words of engines": words_of_engines, "transport options": transport_options, "pairs": pairs,
        "packages": packages, "tuning profiles": tuning_profiles,
        "commands": command_list, "exit codes": exit_codes, "experiment keys": experiment_keys, "checks": check_list,
        "metrics": metrics,
        "causes": partial(codes_of, "Cause"), "warning codes": partial(codes_of, "WarningCode"),
        "search ends": partial(codes_of, "SearchEnd"),
        "published latencies": published_latencies, "application brackets": application_brackets,
    }  # fmt: skip
    for file in sorted(DATA.glob("*.csv")):
        found[f"results: {file.stem}"] = partial(results, file)
    found["results: tuning-profiles"] = partial(measured_profiles, DATA / "tuning-profiles.csv")
    for name in dataflow_blocks():
        found[name] = partial(dataflow_blocks().__getitem__, name)
    for name in field_tables():
        found[name] = partial(field_tables().__getitem__, name)
    found["coverage: summary"] = coverage_summary
    found["coverage: scalability checklist"] = checklist
    for work in WORKS:
        found[f"coverage: {work}"] = partial(coverage_of, work)
    found["entry point of the example"] = example_entry_point
    for name in ("PythonConsumerPlugin", "PythonConsumerEngine", "lowered", "Consumer"):
        found[f"example code: {name}"] = partial(example_code, name)
    for name in names():
        found[f"parameters of {name}"] = partial(parameters_of, name)
        found[f"flow of {name}"] = partial(flow_of, name)
    return found


_BLOCK = re.compile(r"<!-- generated: (?P<name>[^>]+?) -->\n.*?<!-- end of (?P=name) -->", re.DOTALL)


def renewed(text: str) -> str:
    """A page's text with every table as it must be; KeyError where a marker names no table."""
    there = makers()

    def block(match: re.Match[str]) -> str:
        name = match["name"]
        return f"<!-- generated: {name} -->\n{there[name]()}\n<!-- end of {name} -->"

    return _BLOCK.sub(block, text)


def stale() -> list[str]:
    """The pages whose tables are not what the code says."""
    pages = [page for page in sorted(DOCS.rglob("*.md")) if page.read_text() != renewed(page.read_text())]
    return [str(page.relative_to(DOCS)) for page in pages]


def main() -> int:
    wrong = stale()
    if "--check" in sys.argv:
        print(
            "\n".join(f"{name}: tables are out of step with the code: python tools/docs_tables.py" for name in wrong),
            end="",
        )
        return 1 if wrong else 0
    for name in wrong:
        page = DOCS / name
        page.write_text(renewed(page.read_text()))
        print(f"wrote {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
