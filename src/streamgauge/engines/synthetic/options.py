"""The options of the synthetic engine: its capacity, how instances add up, batches and planted faults.

Capacity follows the Universal Scalability Law, so that a scalability study can be tried on it: n instances have
n / (1 + contention (n - 1) + coherency n (n - 1)) times the capacity of one. Both at 0 it is linear. Instances beyond a
knee add nothing. With noise, each start has a capacity of its own.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from streamgauge.core.clock import US
from streamgauge.core.errors import collected, refuse, require
from streamgauge.core.plugin_options import Setting, problems_of, with_defaults
from streamgauge.core.units import parse_duration, parse_rate

FAULTS = ("none", "drop", "double", "alter", "late", "invent", "untime")

SETTINGS = (
    Setting("capacity", "100k", "events per second that one instance works off, exactly"),
    Setting("contention", "0", "share of the work that instances do one after the other; --parallelism sets instances"),
    Setting("coherency", "0", "share of the work by which each instance waits for each other one"),
    Setting("knee", "0", "instances beyond this number add nothing; 0: each adds its part"),
    Setting("noise", "0", "standard deviation of the capacity from start to start, as a share of it"),
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
    scaling: ScalingOptions
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
    scaling = ScalingOptions(**{each.name: parsed.pop(each.name) for each in fields(ScalingOptions)})
    return SyntheticOptions(
        parsed["capacity"], scaling, parsed["batch"], parsed["stall"], parsed["jitter"], parsed["slowing"],
        parsed["fault"], parsed["fault_every"],
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


def _whole(least: int, most: int, example: int) -> Callable[[str, str], int]:
    def read(name: str, text: str) -> int:
        require(
            text.isdecimal() and least <= int(text) <= most, f"option {name}",
            f"must be a whole number from {least} to {most}", text, f"--option {name}={example}",
        )  # fmt: skip
        return int(text)

    return read


_READERS: dict[str, Callable[[str, str], Any]] = {
    "capacity": _rate, "contention": _share, "coherency": _share, "knee": _whole(0, 10**6, 4), "noise": _share,
    "batch": _time_us, "stall": _stall, "jitter": _share, "slowing": _share, "fault": lambda _, text: text,
    "fault_every": _whole(1, 10**9, 1000),
}  # fmt: skip
"""Setting to what parses its text."""


@dataclass(frozen=True)
class ScalingOptions:
    """`knee` 0: none; `noise`: the standard deviation of a start's capacity, as a share of it."""

    contention: float = 0.0
    coherency: float = 0.0
    knee: int = 0
    noise: float = 0.0

    def capacity(self, of_one_per_s: float, instances: int, chance: random.Random | None = None) -> float:
        """Events per second of so many instances; `chance` draws the noise of this start."""
        n = min(instances, self.knee) if self.knee else instances
        capacity = of_one_per_s * n / (1 + self.contention * (n - 1) + self.coherency * n * (n - 1))
        noise = (chance or random.Random()).gauss(0.0, self.noise) if self.noise else 0.0
        return capacity * max(0.1, 1 + noise)
