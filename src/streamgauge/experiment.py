"""What is asked: frozen values, from the command line or a TOML file; unknown keys are refused, all problems at once.

Engine and transport names stay strings here; `run.check` knows which there are.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from streamgauge.errors import InputError, Problem
from streamgauge.events import parse_duration, parse_rate

Command = Literal["run", "sustain", "generate"]


def _rate(value: Any) -> float:
    return parse_rate(value)


def _duration(value: Any) -> float:
    return parse_duration(value)


Rate = Annotated[float, BeforeValidator(_rate)]
Duration = Annotated[float, BeforeValidator(_duration)]


class Asked(BaseModel):
    """Base of every part of an experiment: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Load(Asked):
    """What is offered: the rate over time, and who makes it.

    `profile` is `constant`, `step:RATE@TIME,...`, `ramp:RATE` or `burst:FACTOR@TIME+LENGTH`; `rate` is where it begins.
    """

    rate: Rate = 100_000.0
    profile: str = "constant"
    duration: Duration = 60.0
    warmup: Duration | None = None
    generators: int | None = Field(default=None, ge=1, le=256)
    seed: int = Field(default=1, ge=0, lt=2**63)
    start: str | None = None
    chunk: Duration | None = None
    bound: Duration = 30.0
    memory: str = "4GiB"
    frontier: Literal["common", "free"] = "common"


class Search(Asked):
    """How the highest sustained rate is looked for [method 3]."""

    tolerance: float = Field(default=0.05, gt=0, lt=1)
    quick: bool = False
    start_rate: Rate | None = None
    trials_max: int = Field(default=16, ge=3)
    resume: str | None = None


class Experiment(Asked):
    """One question, whole: `streamgauge experiment FILE` asks the same as the command that `--print-toml` printed."""

    command: Command = "run"
    workload: str
    engine: str = "spark"
    transport: str = "flight"
    master: str | None = None
    isolation: Literal["shared", "pinned"] = "shared"
    parameters: dict[str, Any] = Field(default_factory=dict)
    options: dict[str, str] = Field(default_factory=dict)
    load: Load = Load()
    search: Search = Search()
    limits: tuple[str, ...] = ()
    bind: str = "127.0.0.1"
    port: int | None = Field(default=None, ge=1024, le=65000)
    out: str | None = None
    keep_results: bool = False


def problems_of(error: ValidationError) -> list[Problem]:
    """A pydantic error as our own problems, each with the setting's dotted name."""
    found = []
    for item in error.errors():
        setting = ".".join(str(part) for part in item["loc"])
        inner = item.get("ctx", {}).get("error")
        if isinstance(inner, InputError):
            found += [Problem(setting, problem.rule, problem.got, problem.way_out) for problem in inner.problems]
        elif item["type"] == "extra_forbidden":
            found.append(
                Problem(setting, "is not a setting there is", item["input"], "remove it, or mend its spelling")
            )
        else:
            found.append(Problem(setting, item["msg"].lower(), item["input"], f"another value for {setting}"))
    return found


def build(values: dict[str, Any]) -> Experiment:
    """An experiment from plain values; raises one `InputError` that holds every problem."""
    try:
        return Experiment.model_validate(values)
    except ValidationError as error:
        raise InputError(problems_of(error)) from None


def read(path: Path) -> Experiment:
    """An experiment from a TOML file."""
    try:
        values = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise InputError(Problem("FILE", "must be a file that exists", str(path), "check the path")) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, IsADirectoryError) as error:
        raise InputError(Problem("FILE", f"must be TOML ({error})", str(path), "mend that line")) from None
    return build(values)


def to_toml(experiment: Experiment) -> str:
    """The experiment as TOML that `read` gives back."""
    import tomli_w

    return tomli_w.dumps(experiment.model_dump(exclude_none=True, mode="json"))
