"""The nodes that the synthetic engine runs, and its options: capacity, batches and planted faults.

Capacities of instances add up.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from streamgauge.core.clock import US
from streamgauge.core.errors import collected, refuse, require
from streamgauge.core.plugin_options import Setting, problems_of, with_defaults
from streamgauge.core.units import parse_duration, parse_rate
from streamgauge.dataflow.nodes import Explode, Node, Select, Source, Where, WindowAggregate

KINDS: tuple[type[Node], ...] = (Source, Select, Where, Explode, WindowAggregate)
"""The node kinds of a flow that it runs: by the reference it could run more, and needs none to show a pace."""
FAULTS = ("none", "drop", "double", "alter", "late", "invent", "untime")

SETTINGS = (
    Setting("capacity", "100k", "events per second that one instance works off, exactly; --parallelism sets instances"),
    Setting("batch", "0s", "time from one micro-batch to the next; 0s reads on continuously"),
    Setting("stall", "none", "LENGTH@AFTER: sleeps once, so long after its first event by event time, such as 2s@12s"),
    Setting("jitter", "0", "share of its time by which a batch may end early or late, by chance; the pace stays"),
    Setting("slowing", "0", "each batch takes longer by this share of the event time since the first event"),
    Setting("fault", "none", "what happens to a result between the engine and the recorder", FAULTS),
    Setting("fault_every", "1000", "one result in so many gets the fault"),
)


@dataclass(frozen=True)
class Stall:
    """Sleeps `length_us` once, `after_us` of event time after the first event."""

    length_us: int
    after_us: int


@dataclass(frozen=True)
class SyntheticOptions:
    """The parsed options."""

    capacity_per_s: float
    batch_us: int
    stall: Stall | None
    jitter: float
    degradation: float
    fault: str
    fault_every: int


def read_options(options: Mapping[str, str]) -> SyntheticOptions:
    """Parses the options. Raises one InputError with every problem."""
    problems, parsed = list(problems_of(options, SETTINGS, "known")), dict[str, Any]()
    values = with_defaults(options, SETTINGS)
    for name, read in _READERS.items():
        with collected(problems):
            parsed[name] = read(name, values[name])
    refuse(problems)
    return SyntheticOptions(
        parsed["capacity"], parsed["batch"], parsed["stall"], parsed["jitter"], parsed["slowing"], values["fault"],
        parsed["fault_every"],
    )  # fmt: skip


def _rate(name: str, text: str) -> float:
    return parse_rate(text, f"option {name}", way_out=f"--option {name}=100k")


def _time_us(name: str, text: str, example: str = "1s") -> int:
    return round(parse_duration(text, f"option {name}", way_out=f"--option {name}={example}") * US)


def _stall(name: str, text: str) -> Stall | None:
    if text == "none":
        return None
    length, at, after = text.partition("@")
    example = "2s@12s"
    require(at, f"option {name}", "must be none or LENGTH@AFTER", text, f"--option {name}={example}")
    return Stall(_time_us(name, length, example), _time_us(name, after, example))


def _share(name: str, text: str) -> float:
    require(
        re.fullmatch(r"0|0?\.\d+", text), f"option {name}", "must be a share from 0 to below 1", text,
        f"--option {name}=0.2",
    )  # fmt: skip
    return float(text)


def _every(name: str, text: str) -> int:
    require(
        text.isdecimal() and 1 <= int(text) <= 10**9, f"option {name}", f"must be a whole number from 1 to {10**9}",
        text, f"--option {name}=1000",
    )  # fmt: skip
    return int(text)


_READERS: dict[str, Callable[[str, str], Any]] = {
    "capacity": _rate, "batch": _time_us, "stall": _stall, "jitter": _share, "slowing": _share, "fault_every": _every,
}  # fmt: skip
"""Setting to what parses its text."""
