"""What is asked: frozen values, from the command line or a TOML file; unknown keys are refused, all problems at once.

Engine and transport names stay strings here; `run.check` knows which there are.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from streamgauge.errors import InputError, Problem, attempt, choices_of, nearest, rule_of
from streamgauge.events import US, parse_duration, parse_rate, parse_share, parse_whole

Command = Literal["run", "sustain", "generate", "anatomy"]

DURATIONS_S: dict[str, float] = {"run": 60.0, "sustain": 30.0, "generate": 60.0, "anatomy": 30.0}
"""The measured span where none is asked for: a search makes many trials, and so may an anatomy."""

FLAGS = {
    "engine": "--engine",
    "transport": "--transport",
    "transport_options": "--transport-option",
    "master": "--master",
    "isolation": "--isolation",
    "parameters": "--set",
    "options": "--option",
    "load.rate": "--rate",
    "load.profile": "--profile",
    "load.duration": "--duration",
    "load.warmup": "--warmup",
    "load.generators": "--generators",
    "load.seed": "--seed",
    "load.start": "--start",
    "load.of": "--of",
    "load.chunk": "--chunk",
    "load.bound": "--bound",
    "load.memory": "--memory",
    "load.frontier": "--frontier",
    "search.tolerance": "--tolerance",
    "search.quick": "--quick",
    "search.start_rate": "--start-rate",
    "search.trials_max": "--trials-max",
    "search.resume": "--resume",
    "anatomy.rates": "--rates",
    "anatomy.batch_windows": "--batch-windows",
    "anatomy.record_sizes": "--record-size",
    "limits": "--limit",
    "bind": "--bind",
    "port": "--port",
    "out": "--out",
    "keep_results": "--keep-results",
}
"""Setting to the command line's option for it."""

_OF_SEARCHES, _OF_ANATOMIES = (
    tuple(name for name in FLAGS if name.startswith(of)) for of in ("search.", "anatomy.")
)  # fmt: skip
NOT_TAKEN: dict[str, tuple[str, ...]] = {
    "run": ("load.start", "load.of", *_OF_SEARCHES, *_OF_ANATOMIES),
    "sustain": ("load.start", "load.of", "load.rate", "load.profile", *_OF_ANATOMIES),
    "generate": (
        *_OF_SEARCHES, *_OF_ANATOMIES, "limits", "bind", "port", "load.chunk", "load.bound", "load.memory",
        "load.frontier",
    ),
    "anatomy": (
        *_OF_SEARCHES, "load.start", "load.of", "load.rate", "load.profile", "limits", "keep_results", "bind", "port",
        "load.bound", "load.memory", "load.frontier",
    ),
}  # fmt: skip
"""Command to the settings for which it has no option, because they would change nothing of what it is asked for."""

DATA = "data"
"""The parameter that every built-in workload has besides its own: a file whose rows it gets."""
DATA_TIME = ".time"
"""After it: which of the file's columns is the time of the data."""

CLIENT = "client"
"""The option of a transport that names a file by which clients log in."""

_EXAMPLES = {
    "load.generators": "2",
    "load.seed": "1",
    "search.tolerance": "5%",
    "search.trials_max": "16",
    "anatomy.rates": "20k,50k",
    "anatomy.batch_windows": "0s,500ms",
    "anatomy.record_sizes": "25,1000",
    "port": "5000",
}


def is_data(name: str) -> bool:
    """Whether a parameter names a file of data: `data`, or `data.STREAM`."""
    return name == DATA or (name.startswith(f"{DATA}.") and not is_data_time(name))


def is_data_time(name: str) -> bool:
    """Whether a parameter names the column that is the time of data: `data.time`, or `data.STREAM.time`."""
    return name.startswith(f"{DATA}.") and name.endswith(DATA_TIME)


def parse_setting(parse: Callable[..., Any], setting: str, value: Any) -> Any:
    """`parse(value)`; its problems name the setting, and the option in the way out, whatever `parse` calls them."""
    try:
        return parse(value)
    except InputError as error:
        raise InputError([_named(problem, setting) for problem in error.problems]) from None


def _named(problem: Problem, setting: str) -> Problem:
    option, blank, example = problem.way_out.partition(" ")
    ours = option.startswith("--") and setting in FLAGS
    way_out = f"{FLAGS[setting]}{blank}{example}" if ours else problem.way_out
    return Problem(setting, problem.rule, problem.got, way_out)


Rate = Annotated[float, BeforeValidator(parse_rate)]
Duration = Annotated[float, BeforeValidator(parse_duration)]
Share = Annotated[float, BeforeValidator(parse_share)]


def _interval(text: Any) -> float:
    """An interval of batches, seconds, which Spark takes in whole milliseconds."""
    interval_s = parse_duration(text)
    if round(US * interval_s) % 1000:
        raise InputError(Problem("interval", "must be whole milliseconds", text, ""))
    return interval_s


def _record_size(text: Any) -> int:
    from streamgauge.load.stamped import RECORD_BYTES_MAX, RECORD_BYTES_MIN

    return parse_whole(text, "record size", RECORD_BYTES_MIN, RECORD_BYTES_MAX, "")


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]


def _each(setting: str, parse: Callable[[Any], Any]) -> BeforeValidator:
    """Several values, in a list or apart by commas, each once; those that are wrong are told all at once."""

    def read(given: Any) -> tuple[Any, ...]:
        texts = given.split(",") if isinstance(given, str) else given
        problems: list[Problem] = []
        found = [attempt(partial(parse, text), problems) for text in _listed(texts)]
        if problems:
            way_out = f"{FLAGS[setting]} {_EXAMPLES[setting]}"
            raise InputError([Problem(setting, one.rule, one.got, way_out) for one in problems])
        return tuple(dict.fromkeys(found))

    return BeforeValidator(read)


class Asked(BaseModel):
    """Base of every part of an experiment: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Load(Asked):
    """What is offered: the rate over time, and who makes it.

    `profile` is `constant`, `step:RATE@TIME,...`, `ramp:RATE` or `burst:FACTOR@TIME+LENGTH`; `rate` is where it begins.
    `start` and `of` are for `generate` alone: the start of the input, or the run whose input it is.
    """

    rate: Rate = 100_000.0
    profile: str = "constant"
    duration: Duration = 60.0
    warmup: Duration | None = None
    generators: int | None = Field(default=None, ge=1, le=256)
    seed: int = Field(default=1, ge=0, lt=2**63)
    start: str | None = None
    of: str | None = None
    chunk: Duration | None = None
    bound: Duration = 30.0
    memory: str | None = None
    frontier: Literal["common", "free"] = "common"


class Search(Asked):
    """How the highest sustained rate is looked for [method 3]."""

    tolerance: Share = Field(default=0.05, gt=0, lt=1)
    quick: bool = False
    start_rate: Rate | None = None
    trials_max: int = Field(default=16, ge=3)
    resume: str | None = None


class Anatomy(Asked):
    """The trials of an anatomy: every rate with every interval of batches, in seconds, and every size of a record, in
    bytes; of none: as the engine and the workload have it.
    """

    rates: Annotated[tuple[float, ...], _each("anatomy.rates", parse_rate), Field(min_length=1)] = (20_000.0,)
    batch_windows: Annotated[tuple[float, ...], _each("anatomy.batch_windows", _interval)] = ()
    record_sizes: Annotated[tuple[int, ...], _each("anatomy.record_sizes", _record_size)] = ()


class Experiment(Asked):
    """One question, whole: `streamgauge experiment FILE` asks the same as the command that `--print-toml` printed."""

    command: Command = "run"
    workload: str
    engine: str = "spark"
    transport: str = "flight"
    transport_options: dict[str, str] = Field(default_factory=dict)
    master: str | None = None
    isolation: Literal["shared", "pinned"] = "shared"
    parameters: dict[str, Any] = Field(default_factory=dict)
    options: dict[str, str] = Field(default_factory=dict)
    load: Load = Load()
    search: Search = Search()
    anatomy: Anatomy | None = None
    limits: tuple[str, ...] = ()
    bind: str = "127.0.0.1"
    port: int | None = Field(default=None, ge=1024, le=65000)
    out: str | None = None
    keep_results: bool = False

    @model_validator(mode="before")
    @classmethod
    def _with_duration(cls, values: Any) -> Any:
        """Where no duration is asked for, the command's own."""
        load = values.get("load", {}) if isinstance(values, dict) else None
        if not isinstance(load, dict) or values.get("command") not in DURATIONS_S:
            return values
        return {**values, "load": {"duration": DURATIONS_S[values["command"]], **load}}


def problems_of(error: ValidationError) -> list[Problem]:
    """A pydantic error as our own problems, each with the setting's dotted name."""
    return [problem for item in error.errors() for problem in _problems_of(item)]


def _problems_of(item: Any) -> list[Problem]:
    setting = ".".join(str(part) for part in item["loc"])
    inner = item.get("ctx", {}).get("error")
    if isinstance(inner, InputError):
        return [_named(problem, setting) for problem in inner.problems]
    if item["type"] == "extra_forbidden":
        return [Problem(setting, "is not a setting there is", item["input"], "remove it, or mend its spelling")]
    return [Problem(setting, rule_of(item), item["input"], _way_out(setting, item))]


def _way_out(setting: str, item: Any) -> str:
    """An option with a value that would do; without an option, the file's line."""
    head, _, tail = setting.partition(".")
    if head in ("parameters", "options", "transport_options", "limits"):
        return f"{FLAGS[head]} {tail or 'name'}=VALUE" if head != "limits" else '--limit "event_time_p99<=2s"'
    choices = choices_of(item)
    example = nearest(item["input"], choices) if choices else _EXAMPLES.get(setting, "")
    if setting in FLAGS:
        return f"{FLAGS[setting]} {example}".rstrip() if example else f"{FLAGS[setting]} with another value"
    return f'{setting} = "{example}"' if example else f"another value for {setting or 'the file'}"


def build(values: dict[str, Any]) -> Experiment:
    """An experiment from plain values; raises one `InputError` that holds every problem."""
    try:
        return Experiment.model_validate(values)
    except ValidationError as error:
        raise InputError(problems_of(error)) from None


def read(path: Path) -> Experiment:
    """An experiment from a TOML file; an own job or data in it: looked for from the working folder, then the file's."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        rule, way_out = "must be a file that exists", "check the path"
    except IsADirectoryError:
        rule, way_out = "must be a file, and this is a folder", f"a file in it, such as {path / 'experiment.toml'}"
    except PermissionError:
        rule, way_out = "must be readable", f"look at who may read {path}"
    except OSError as error:
        rule, way_out = f"must be a file that can be read ({error.strerror})", "another file"
    except UnicodeDecodeError as error:
        rule, way_out = f"must be TOML, which is UTF-8 text ({error.reason})", "a file such as --print-toml shows"
    except tomllib.TOMLDecodeError as error:
        rule, way_out = f"must be TOML ({error})", "mend that line"
    else:
        return _with_files_beside(build(values), path)
    raise InputError(Problem("FILE", rule, str(path), way_out))


def _with_files_beside(experiment: Experiment, path: Path) -> Experiment:
    """With the whole paths of an own job, of data and of a client's file that lie, as they are named, where the file
    does and not where we are.
    """
    folder, job = path.resolve().parent, experiment.workload
    data = {name: _beside(str(file), folder) for name, file in experiment.parameters.items() if is_data(name)}
    carried = experiment.transport_options
    client = {name: _beside(file, folder) for name, file in carried.items() if name == CLIENT}
    return experiment.model_copy(
        update={
            "workload": _beside(job, folder) if job.endswith(".py") else job,
            "parameters": {**experiment.parameters, **data},
            "transport_options": {**carried, **client},
        }
    )


def _beside(named: str, folder: Path) -> str:
    if "\0" in named or Path(named).exists() or not (folder / named).is_file():
        return named
    return str(folder / named)


def to_toml(experiment: Experiment) -> str:
    """The experiment as TOML that `read` gives back."""
    import tomli_w

    return tomli_w.dumps(experiment.model_dump(exclude_none=True, mode="json"))
