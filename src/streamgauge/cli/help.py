"""The help of a command in plain text, with its options in groups, and the answers to the Tab key."""

from collections.abc import Callable, Iterable
from typing import Any

from streamgauge.cli.usage import Command

GROUPS = ("Load", "Engine", "Transport", "Verdict", "Output")
"""The groups that several commands share, in the order of help. A command's own group comes first."""
OUTPUT = GROUPS[-1]


def group_order(group: str) -> int:
    """The place of a group in help."""
    return GROUPS.index(group) if group in GROUPS else -1


class GroupedCommand(Command):
    """A command whose help shows each option below the heading of its group."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                groups.setdefault(group_of(parameter), []).append(record)
        for name, records in groups.items():
            with formatter.section(name):
                formatter.write_dl(records)


ARGUMENTS = "Arguments"


def group_of(parameter: Any) -> str:
    """The heading below which a parameter of a command stands."""
    if parameter.param_type_name == "argument":
        return ARGUMENTS
    return str(parameter.rich_help_panel or OUTPUT)


def completion(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """What the Tab key offers for a value that is one of some names."""
    return lambda incomplete: [name for name in names() if name.startswith(incomplete)]


def workload_names() -> Iterable[str]:
    from streamgauge.workloads.registry import names

    return names()


def engine_names() -> Iterable[str]:
    from streamgauge.engines.registry import streaming_engines

    return streaming_engines()


def transport_names() -> Iterable[str]:
    from streamgauge.transports.registry import NAMES

    return NAMES
