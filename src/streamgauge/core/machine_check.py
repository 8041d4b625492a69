"""What a package finds on this machine before a run, in one form: `doctor` shows it, and a run refuses by it."""

import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, Self

from streamgauge.core.errors import MissingOnMachine, Problem, Rule, broken

Status = Literal["good", "warning", "missing"]


@dataclass(frozen=True)
class MachineCheck:
    """One thing that runs need of this machine.

    Attributes:
        name: stable name, lower case with underscores.
        found: what was found, in words.
        problems: the rules that do not hold; empty if all is good.
        prevents_start: whether no run starts that needs it. Otherwise the problems are warnings.
        needed_with: the options of the runs that need it; empty for every run.
    """

    name: str
    found: str
    problems: tuple[Problem, ...] = ()
    prevents_start: bool = True
    needed_with: str = ""

    @classmethod
    def warning(cls, name: str, found: str, *rules: Rule) -> Self:
        """A check whose broken rules are warnings."""
        return cls(name, found, tuple(broken(*rules)), prevents_start=False)

    @property
    def status(self) -> Status:
        if not self.problems:
            return "good"
        return "missing" if self.prevents_start else "warning"

    def to_json(self) -> dict[str, Any]:
        """As plain data with stable keys."""
        return {
            "name": self.name,
            "status": self.status,
            "found": self.found,
            "problems": [
                {"setting": one.setting, "rule": one.rule, "got": str(one.got), "way_out": one.way_out}
                for one in self.problems
            ],
            "needed_with": self.needed_with,
        }


def refuse_missing(checks: Iterable[MachineCheck]) -> None:
    """Raises one MissingOnMachine with the problems of all checks that prevent a start, if there are any."""
    if problems := [one for check in checks if check.status == "missing" for one in check.problems]:
        raise MissingOnMachine(problems)


def port_problem(host: str, port: int) -> str:
    """Why no server can listen there; empty if one can."""
    with socket.socket() as probe:
        # Servers bind like this too, so a connection that has just ended does not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.strerror or str(error)
    return ""
