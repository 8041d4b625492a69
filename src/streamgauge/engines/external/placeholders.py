"""The names and addresses that a program gets: by environment variables, and by placeholders in its command."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamgauge.user_workloads.program_node import ESCAPED, PLACEHOLDER

PREFIX = "STREAMGAUGE_"
_BRACES = re.compile(f"{ESCAPED.pattern}|{PLACEHOLDER.pattern}")


@dataclass(frozen=True)
class ProgramEnvironment:
    """What a program must know of its run. `inputs`: stream to its topic; `outputs`: sink to its topic."""

    brokers: str
    group: str
    run: str
    scratch: str
    parallelism: int
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of the program, without the parallelism, which its file must name."""
        values = {name: self.value(name) for name in ("brokers", "group", "run", "scratch")}
        for kind, topics in (("input", self.inputs), ("output", self.outputs)):
            values |= {f"{kind}_{name}": topic for name, topic in topics.items()}
            if len(topics) == 1:
                values[kind] = self.value(kind)
        return {PREFIX + name.upper(): value for name, value in values.items()}

    def value(self, name: str) -> str:
        """The value of a placeholder. Raises KeyError for an input or output that does not exist."""
        if name == "python":
            return sys.executable
        kind, _, of = name.partition(".")
        if kind in ("input", "output"):
            topics = self.inputs if kind == "input" else self.outputs
            return topics[of] if of else next(iter(topics.values()))
        return str(getattr(self, name))

    def filled(self, texts: Sequence[str]) -> list[str]:
        """Texts with their placeholders replaced. Doubled braces around a word become single ones; others stay."""
        return [_BRACES.sub(lambda found: found[1] or self.value(found[2]), text) for text in texts]
