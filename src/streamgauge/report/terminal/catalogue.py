"""Lists the available workloads and engines, and what this machine has and lacks."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from streamgauge.core.formatting import format_size
from streamgauge.report.terminal.lines import AnswerConsole

MORE = "streamgauge workloads WORKLOAD: its streams, operators and parameters"


def show_workloads(rows: list[dict[str, Any]]) -> None:
    """The name, summary, streams and sinks of each workload."""
    console = AnswerConsole()
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for row in rows:
        streams, sinks = (", ".join(each["name"] for each in row[kind]) for kind in ("streams", "sinks"))
        table.add_row(row["name"], Text(f"{_sentence(row)}\n{streams} -> {sinks}"))
    console.print(table)
    console.print(MORE, soft_wrap=True)


def show_workload(row: dict[str, Any]) -> None:
    """All facts of one workload; a `name=value` is never folded, so that it can be copied."""
    console = AnswerConsole()
    console.print(Text(f"{row['name']}: {_sentence(row)}"))
    _show_part(console, "exercises", ((each["name"], each["meaning"]) for each in row["features"]))
    _show_part(console, "streams", ((each["name"], _stream(each)) for each in row["streams"]))
    operators = (
        (each["name"], f"{each['kind']}: {each['label']}; reads {', '.join(each['inputs'])}")
        for each in row["flow"]
        if each["inputs"]
    )
    _show_part(console, "operators and sinks", operators)
    parameters = ((f"{each['name']}={each['default']}", each["meaning"]) for each in row["parameters"])
    _show_part(console, "parameters (--set name=value)", parameters)


def _sentence(row: dict[str, Any]) -> str:
    """The summary of a workload, with its source in brackets."""
    return f"{row['summary']} [{row['source'].strip('[]')}]"


def _stream(stream: dict[str, Any]) -> str:
    fields = ", ".join(f"{name} {type_}" for name, type_ in stream["fields"].items())
    rule = f"; malformed: {stream['malformed']}" if stream["malformed"] else ""
    return f"{stream['share']:.0%} of the rate: {fields}{rule}"


def _show_part(console: Console, heading: str, entries: Iterable[tuple[str, str]]) -> None:
    """Entries of (head, meaning): each head on its own line, its meaning below."""
    console.print(Text(f"\n{heading}", "bold"))
    for head, meaning in entries:
        console.print(Text(f"  {head}"), soft_wrap=True)
        console.print(Padding(Text(meaning), (0, 0, 0, 6)))


TRUTH = "Reference of a user job: its own reference if it has one, else the same function in the engine's batch mode."

MORE_OF_ENGINE = "streamgauge engines ENGINE: its operators, options and what it fetches"
LISTS = {
    "sink modes": "sink_modes", "transports": "transports", "encodings": "encodings",
    "tuning profiles": "tuning_profiles",
}  # fmt: skip
"""What an engine has several of, by the word for it."""
DELIVERY = "promised delivery"
MARKS = {"runs streams": "streams", "computes truth": "truth", "several sinks": "several_sinks"}
"""What an engine can or cannot do, by the words for it."""


def show_engines(rows: list[dict[str, Any]]) -> None:
    """Each engine in a sentence, then what it can do, over which transports and in which sink modes."""
    console = AnswerConsole()
    for row in rows:
        console.print(Text(f"{row['name']}: {row['summary']}"), soft_wrap=True)
    console.print()
    table = Table("", *MARKS, "transports", "sink modes", box=None, pad_edge=False, header_style="bold")
    table.columns[0].no_wrap = True
    for row in rows:
        lists = (Text(", ".join(row[key]) or "-") for key in ("transports", "sink_modes"))
        table.add_row(row["name"], *("yes" if row[key] else "-" for key in MARKS.values()), *lists)
    console.print(table)
    console.print(TRUTH, soft_wrap=True)
    console.print(MORE_OF_ENGINE, soft_wrap=True)


def show_engine(row: dict[str, Any], transports: Sequence[dict[str, Any]] = ()) -> None:
    """All facts of one engine, with its options and those of its transports."""
    console = AnswerConsole()
    console.print(Text(f"{row['name']}: {row['summary']}"), soft_wrap=True)
    for label, values in (("operators", row["nodes"]), *((label, row[key]) for label, key in LISTS.items())):
        console.print(Text(f"{label}: {', '.join(values) or '-'}"))
    console.print(f"{DELIVERY}: {guarantee_of(row)}")
    used = [("--transport-option", one) for one in transports if one["name"] in row["transports"]]
    for flag, owner in (("--option", row), *used):
        read = {one["name"]: one["choices"] for one in owner["options"]}
        if "encoding" in read:
            read["encoding"] = row["encodings"] or read["encoding"]
        choices = {name: f" ({' | '.join(words)})" if words else "" for name, words in read.items()}
        options = (
            (f"{flag} {one['name']}={one['default']}{choices[one['name']]}", one["meaning"]) for one in owner["options"]
        )
        _show_part(console, f"options of {owner['name']}", options)
    fetches = ((f"{one['name']} ({format_size(one['bytes'])})", f"with {one['needed_with']}") for one in row["fetches"])
    _show_part(console, "fetches once", fetches)


STATUS_STYLES = {"good": "green", "warning": "yellow", "missing": "bold red"}


def show_machine(answer: dict[str, Any]) -> None:
    """Whether a default run can start, then each check: its status, its name, what was found, and what to do."""
    console = AnswerConsole()
    console.print(f"A default run {'can' if answer['can_start'] else 'cannot'} start on this machine.")
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in answer["checks"]:
        status, label = Text(check["status"], STATUS_STYLES[check["status"]]), check["name"].replace("_", " ")
        lines = [check["found"], *(f"do: {one['way_out']}" for one in check["problems"])]
        table.add_row(status, label, Text("\n".join(lines)))
    console.print(table)


def guarantee_of(row: dict[str, Any]) -> str:
    """What an engine promises of its results, in words."""
    promised = (row["delivery"] or "-").replace("_", " ")
    of_windows = row["delivery_of_windows"] or row["delivery"]
    return promised if of_windows == row["delivery"] else f"{promised}, of windows {of_windows.replace('_', ' ')}"
