"""The names and addresses that a program gets: by environment variables, and by placeholders in its command."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamgauge.dataflow.program import PLACEHOLDER

PREFIX = "STREAMGAUGE_"


@dataclass(frozen=True)
class Surroundings:
    """Addresses and names of one run. `inputs`: stream to its topic; `output`: the topic of the results."""

    brokers: str
    group: str
    run: str
    scratch: str
    inputs: Mapping[str, str]
    output: str

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of the program."""
        values = {name: self.value(name) for name in ("brokers", "group", "run", "scratch", "output")}
        values |= {f"input_{stream}": topic for stream, topic in self.inputs.items()}
        if len(self.inputs) == 1:
            values["input"] = self.value("input")
        return {PREFIX + name.upper(): value for name, value in values.items()}

    def value(self, name: str) -> str:
        """The value of a placeholder. Raises KeyError for a stream that does not exist."""
        if name == "python":
            return sys.executable
        if name == "input":
            return next(iter(self.inputs.values()))
        if name.startswith("input."):
            return self.inputs[name.removeprefix("input.")]
        return str(getattr(self, name))

    def filled(self, command: Sequence[str]) -> list[str]:
        """The command with its placeholders replaced; other braces stay."""
        return [PLACEHOLDER.sub(lambda found: self.value(found[1]), word) for word in command]
