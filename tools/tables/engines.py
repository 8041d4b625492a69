"""Tables of engines and transports: what each can run, its options, and the example of an engine."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import partial

from streamgauge.engines.registry import capabilities, matrix, streaming_engines, transport_rows
from streamgauge.report.terminal.catalogue import DELIVERY, LISTS, TRUTH, guarantee_of
from streamgauge.transports.registry import transport as transport_of
from streamgauge.workloads.registry import names
from tables.compatibility import incompatibility, on_jvms
from tables.markdown import DOCS, code, described, listed, table

EXAMPLE = DOCS.parent / "examples" / "engine_plugin"


def makers() -> dict[str, Callable[[], str]]:
    return {
        "engines": engine_matrix,
        "engine options": engine_options,
        "batch steps": batch_steps,
        "words of engines": words_of_engines,
        "transport options": transport_options,
        "pairs": pairs,
        "what works": what_works,
        "tuning profiles": tuning_profiles,
        "entry point of the example": example_entry_point,
        **{
            f"example code: {name}": partial(example_code, name)
            for name in ("PythonConsumerPlugin", "PythonConsumerEngine", "lowered")
        },
    }


def engine_matrix() -> str:
    """What each engine can do; which operators it runs stands in `words_of_engines`."""
    engines = matrix()
    rows = [
        (label, *(_yes(e[key]) for e in engines))
        for label, key in (("runs streams", "streams"), ("computes truth", "truth"), ("several sinks", "several_sinks"))
    ]
    rows += [(label, *(_yes(node in engine["nodes"]) for engine in engines)) for node, label in JOBS.items()]
    rows += [
        (label, *(", ".join(engine[key]) or "-" for engine in engines))
        for label, key in LISTS.items()
        if key != "tuning_profiles"
    ]
    rows.append((DELIVERY, *map(guarantee_of, engines)))
    return f"{table(('', *(code(engine['name']) for engine in engines)), rows)}\n\n{TRUTH}"


def batch_steps() -> str:
    """The steps of batches that engines declare."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, each in capabilities().items():
        for step, label in each.batch_steps.items():
            found.setdefault((code(f"{step}_ms"), label), []).append(code(name))
    rows = [(step, label, ", ".join(engines)) for (step, label), engines in found.items()]
    return table(("step", "label", "engines"), rows)


def pairs() -> str:
    """Every workload on every engine over every transport that it reads, by the check before a run. Workloads that run
    in the same places share a row.
    """
    able = {name: each for name, each in capabilities().items() if "Select" in each.nodes}
    ways = [(name, transport) for name in streaming_engines() if name in able for transport in able[name].transports]
    alike: dict[tuple[str, ...], list[str]] = {}
    for workload in names():
        alike.setdefault(tuple(_yes(runs(workload, *way)) for way in ways), []).append(workload)
    head = ("workloads", *(f"{code(name)}, {transport}" for name, transport in ways))
    return table(head, [(listed(workloads), *cells) for cells, workloads in alike.items()])


def what_works() -> str:
    """How many built-in workloads run on each engine, and what else can be measured."""
    count = len(names())

    def number(engine: str, transport: str) -> str:
        able = sum(runs(workload, engine, transport) for workload in names())
        return f"all {count}" if able == count else f"{able} of {count}"

    jvms = [capabilities()[engine].summary.partition(",")[0].removeprefix("Apache ") for engine in on_jvms()]
    rows = [
        ("Spark micro-batch, built-in workloads", number("spark", "memory"), number("spark", "kafka")),
        ("Spark micro-batch, a PySpark function of yours", "yes", "yes"),
        ("Spark real-time mode", "no", number("spark-rtm", "kafka")),
        ("Spark DStreams", number("spark-dstream", "memory"), f"no; over sockets {number('spark-dstream', 'socket')}"),
        (", ".join(jvms), "no", " / ".join(dict.fromkeys(number(engine, "kafka") for engine in on_jvms()))),
        ("a program of yours over Kafka, any language", "no", "yes"),
    ]
    return table(("", "in memory", "over Kafka (own broker or yours)"), rows)


def runs(workload: str, engine: str, transport: str) -> bool:
    return not incompatibility(workload, engine, transport)


WORDS = {
    "Source": "source(...)", "Select": ".select(...)", "Where": ".where(...)", "Explode": ".explode(...)",
    "Lookup": ".lookup(...)", "Union": "union(...)", "WindowAggregate": ".window(hop(...)).aggregate(...)",
    "SessionAggregate": ".window(session(...)).aggregate(...)", "RunningAggregate": ".running(...)",
    "WindowJoin": ".join(...)", "IntervalJoin": ".interval_join(...)", "Distinct": ".distinct(...)",
    "TopN": ".top(...)", "Process": ".process(...)",
}  # fmt: skip
"""Node of a flow to the word that makes it; user jobs and programs, which are nodes too, have none."""
JOBS = {"UserJobNode": "PySpark user jobs", "ProgramNode": "programs over Kafka"}
"""Nodes that no word makes, and what they are."""
MADE_OF = {".window(count(...)).aggregate(...)": "Process"}
"""Words that make a node of another word."""


def words_of_engines() -> str:
    """The words that each engine lacks, by what each states of itself."""
    engines = [engine for engine in matrix() if engine["name"] != "external"]
    words = [(word, node) for node, word in WORDS.items()] + list(MADE_OF.items())
    lacks: dict[tuple[str, ...], list[str]] = {}
    for engine in engines:
        nodes = {*engine["nodes"], *(["WindowAggregate"] if engine["windows_so_far"] else [])}
        lacks.setdefault(tuple(word for word, node in words if node not in nodes), []).append(engine["name"])
    return described((listed(names), f"all but {listed(those)}" if those else "all") for those, names in lacks.items())


def _yes(holds: bool) -> str:
    return "yes" if holds else "-"


def engine_options() -> str:
    """Every option (`--option`) of a real engine with its default; engines that share one are named together."""
    takers: dict[tuple[str, str, str], list[str]] = {}
    for engine in (engine for engine in matrix() if engine["name"] != "known"):
        for option in engine["options"]:
            unsaid = [choice for choice in option["choices"] if not re.search(rf"\b{choice}:", option["meaning"])]
            choices = f" ({' or '.join(unsaid)})" if unsaid else ""
            row = (code(option["name"]), code(option["default"]), option["meaning"] + choices)
            takers.setdefault(row, []).append(engine["name"])
    rows = (
        (f"{name} ({default}; {', '.join(engines)})", meaning) for (name, default, meaning), engines in takers.items()
    )
    return described(rows)


def transport_options() -> str:
    rows = [option for transport in transport_rows() for option in transport["options"]]
    return table(
        ("option (`--transport-option`)", "default", "choices", "meaning"),
        [(code(o["name"]), code(o["default"]) if o["default"] else "-", listed(o["choices"]), o["meaning"])
         for o in rows],
    )  # fmt: skip


def tuning_profiles() -> str:
    """What each tuning profile sets, on each engine that has more than one; an entry that a profile does not make is
    the option's default. Engines with the same values share a row.
    """
    engines = [capabilities()[name] for name in streaming_engines()]
    profiles = list(dict.fromkeys(name for engine in engines for name in engine.profiles))
    rows: dict[tuple[str, ...], list[str]] = {}
    for engine in (engine for engine in engines if len(engine.profiles) > 1):
        here = [engine.profiles[name] for name in profiles]
        defaults = {each.name: each for each in engine.settings}
        for option in dict.fromkeys(option for profile in here for option in profile.options):
            values = (code(profile.options.get(option, defaults[option].default)) for profile in here)
            rows.setdefault((f"`--option {option}`", *values), []).append(code(engine.name))
        for way in dict.fromkeys(way for profile in here for way in profile.transport_options):
            settings = {each.name: each for each in transport_of(way).settings}
            sets = [profile.transport_options.get(way, {}) for profile in here]
            for option in dict.fromkeys(option for each in sets for option in each):
                values = (code(each.get(option, settings[option].default)) for each in sets)
                flag = f"`--transport-option {option}`, over {way}"
                rows.setdefault((flag, *values), []).append(code(engine.name))
    alone = [code(engine.name) for engine in engines if len(engine.profiles) == 1]
    head = ("engine", "option", *map(code, profiles))
    lines = [(", ".join(names), *row) for row, names in rows.items()]
    return f"{table(head, lines)}\n\nThese engines have the profile `tuned` only: {', '.join(alone)}."


def example_entry_point() -> str:
    """The entry point in the example's pyproject.toml."""
    text = (EXAMPLE / "pyproject.toml").read_text()
    start = text.index("[project.entry-points")
    return f"```toml\n{text[start : text.index(chr(10) * 2, start)]}\n```"


def example_code(name: str) -> str:
    """A function or class of the example of an engine."""
    text = (EXAMPLE / "streamgauge_python_consumer.py").read_text()
    node = next(each for each in ast.parse(text).body if getattr(each, "name", None) == name)
    return f"```python\n{ast.get_source_segment(text, node)}\n```"
