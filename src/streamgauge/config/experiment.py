"""What is asked: frozen values, from the command line or a TOML file; unknown keys are refused, all problems at once.

Engine and transport names stay strings here; `preflight.validate` knows which there are.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from streamgauge.config.settings import COMMANDS, NAMED, Command, SettingInfo, setting, settings_of
from streamgauge.core.clock import US
from streamgauge.core.errors import InputError, Problem, attempt, choices_of, nearest, rule_of
from streamgauge.core.units import parse_duration, parse_rate, parse_share, parse_whole

DATA = "data"
"""The parameter that every built-in workload has besides its own: a file whose rows it gets."""
DATA_TIME = ".time"
"""After it: which of the file's columns is the time of the data."""

CLIENT = "client"
"""The option of a transport that names a file by which clients log in."""


def is_data(name: str) -> bool:
    """Whether a parameter names a file of data: `data`, or `data.STREAM`."""
    return name == DATA or (name.startswith(f"{DATA}.") and not is_data_time(name))


def is_data_time(name: str) -> bool:
    """Whether a parameter names the column that is the time of data: `data.time`, or `data.STREAM.time`."""
    return name.startswith(f"{DATA}.") and name.endswith(DATA_TIME)


def parse_setting(parse: Callable[..., Any], name: str, value: Any) -> Any:
    """`parse(value)`; its problems name the setting, and the option in the way out, whatever `parse` calls them."""
    try:
        return parse(value)
    except InputError as error:
        raise InputError([_named(problem, name) for problem in error.problems]) from None


def _named(problem: Problem, name: str) -> Problem:
    """The problem with the setting's own name, and its option in the way out."""
    option, _, example = problem.way_out.partition(" ")
    way_out, info = problem.way_out, SETTINGS.get(name)
    if info is not None and option.startswith("--"):
        way_out = f"{info.flag} {example}" if example and not info.example else info.way_out
    return Problem(name, problem.rule, problem.got, way_out)


Weights = Literal["cumulative", "immediate"]
"""Sin_i of eq. 3.4: rows of the input for each event of the application, or the selectivity of the operator before."""
Tuning = Literal["tuned", "idiomatic"]
"""The tuning profiles; each engine says what they set on it."""
TUNABLE = ("run", "sustain", "anatomy", "characterize")
"""The commands that start an engine."""
Rate = Annotated[float, BeforeValidator(parse_rate)]
Duration = Annotated[float, BeforeValidator(parse_duration)]
Share = Annotated[float, BeforeValidator(parse_share)]


def _interval(text: Any) -> float:
    """An interval of batches, seconds, which Spark takes in whole milliseconds."""
    interval_s = parse_duration(text)
    if round(US * interval_s) % 1000:
        raise InputError(Problem("interval", "must be whole milliseconds", text, "--interval"))
    return interval_s


def _record_size(text: Any) -> int:
    from streamgauge.loadgen.datasets.timestamped_text import RECORD_BYTES_MAX, RECORD_BYTES_MIN

    return parse_whole(text, "--record-size", RECORD_BYTES_MIN, RECORD_BYTES_MAX, "")


def _parsed_whole(least: int, greatest: int, text: Any) -> int:
    return parse_whole(text, "--number", least, greatest, "")


def _whole(least: int, greatest: int) -> BeforeValidator:
    """`10k` as 10000, between these."""
    return BeforeValidator(partial(_parsed_whole, least, greatest))


def _each(parse: Callable[[Any], Any]) -> BeforeValidator:
    """Several values, in a list or apart by commas, each once; those that are wrong are told all at once."""

    def read(given: Any) -> tuple[Any, ...]:
        texts = given.split(",") if isinstance(given, str) else given
        problems: list[Problem] = []
        found = [attempt(partial(parse, text), problems) for text in _listed(texts)]
        if problems:
            raise InputError(problems)
        return tuple(dict.fromkeys(found))

    return BeforeValidator(read)


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]


class ConfigModel(BaseModel):
    """Base of every part of an experiment: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


_everywhere = partial(setting, only=COMMANDS)
_judged = partial(setting, only=("run", "sustain"))
_searched = partial(setting, only=("sustain",))
_generated = partial(setting, only=("generate",))
_dissected = partial(setting, only=("anatomy",))
_characterized = partial(setting, only=("characterize",))


class Load(ConfigModel):
    """What is offered: the rate over time, and who makes it."""

    rate: Rate = setting(
        "100k", "events per second of all streams together: 100k, 1.5M", "RATE",
        only=("run", "generate", "characterize"),
        per_command={"characterize": {
            "default": "10k", "help": "how dense the input is in event time, which windows feel: 10k",
        }},
    )  # fmt: skip
    duration: Duration = setting(
        "60s", "the measured span; warm-up comes before, the tail after: 60s, 2m", "TIME",
        per_command={"sustain": {"default": "30s"}, "anatomy": {"default": "30s"}},
    )  # fmt: skip
    warmup: Duration | None = setting(
        None, "warm-up before the span", "TIME", example="45s",
        default_text="45s on a fresh JVM, 75s in real-time mode that keeps how far it is once a minute, more for spans "
        "above 70s",
    )  # fmt: skip
    generators: Annotated[int | None, Field(ge=1, le=256)] = setting(
        None, "generator processes, of 160 MB each", "N", example="2",
        default_text="one per SUT core, at most 8; 1 over kafka and socket",
    )  # fmt: skip
    seed: Annotated[int, Field(ge=0, lt=2**63)] = _everywhere(
        "1", "the same seed gives the same input, byte for byte", "N"
    )
    profile: str = setting(
        "constant", "constant | step:RATE@TIME,... | ramp:RATE | burst:FACTOR@TIME+LENGTH", "SHAPE",
        only=("run", "generate"),
    )  # fmt: skip
    start: str | None = _generated(
        None, "a run's start_time: write what a run of these settings was offered at least, warm-up and tail included; "
        "one that was extended or warmed up longer had more: see the next option", "TIMESTAMP",
        default_text="now, and the span alone",
    )  # fmt: skip
    of: str | None = _generated(
        None, "a run's folder: write all that this very run was offered, its extensions included", "RUN",
        default_text="none",
    )  # fmt: skip
    chunk: Duration | None = setting(
        None, "how much event time travels at once", "TIME", only=("run", "sustain", "anatomy"), example="50ms",
        default_text="50ms; 10ms below 200k/s with batches less than 1s apart; a fifth of both in real-time mode",
    )  # fmt: skip
    bound: Duration = _judged("30s", "the queue's bound, in seconds of the rate", "TIME")
    memory: str | None = _judged(
        None, "the queue's bound, in bytes, and of nothing else", "SIZE",
        default_text="4GiB, at most half of the memory with the generators",
    )  # fmt: skip
    frontier: Literal["common", "free"] = _judged(
        "common", "common: all partitions cut at one event time; free: each at its own", "HOW"
    )


class Search(ConfigModel):
    """How the highest sustained rate is looked for [method 3]."""

    tolerance: Annotated[Share, Field(gt=0, lt=1)] = _searched("5%", "relative width of the answer: 5%", "SHARE")
    quick: bool = _searched(False, "no confirmation on a fresh engine, and says so")
    start_rate: Rate | None = _searched(None, "where to begin", "RATE", default_text="an overload trial finds out")
    resume: str | None = _searched(None, "go on with a search that was ended", "RUN", default_text="a new one")
    trials_max: Annotated[int, Field(ge=3)] = _searched("16", "stop after so many trials", "N")


class Anatomy(ConfigModel):
    """The trials of an anatomy: every rate with every interval of batches, in seconds, and every size of a record, in
    bytes; of none: as the engine and the workload have it.
    """

    rates: Annotated[tuple[float, ...], _each(parse_rate), Field(min_length=1)] = _dissected(
        "20k", "a trial at each of them", "RATE,RATE", example="20k,50k"
    )
    batch_windows: Annotated[tuple[float, ...], _each(_interval)] = _dissected(
        (), "the same at each of these intervals of batches", "TIME,TIME", default_text="trigger's", example="0s,500ms"
    )
    record_sizes: Annotated[tuple[int, ...], _each(_record_size)] = _dissected(
        (), "the same at each of these sizes of a record, of stamped_text", "N,N", flag="--record-size",
        default_text="25", example="25,1000",
    )  # fmt: skip


class Characterize(ConfigModel):
    """How much is measured of each operator alone, and how instances are shared out [B eq. 3.4]."""

    slices: Annotated[int, _whole(1, 100_000)] = _characterized(
        "100", "slices that are timed; fewer than 100 carry no p99, so no advice", "N"
    )
    slice_events: Annotated[int, _whole(1, 10_000_000)] = _characterized("10k", "events of the input in a slice", "N")
    warmup_slices: Annotated[int, _whole(0, 100_000)] = _characterized(
        "20", "slices before them, which warm the engine up and are thrown away", "N"
    )
    target: Annotated[int, _whole(1, 1_000_000)] = _characterized("10", "instances that eq. 3.4 shares out", "K")
    weights: Weights = _characterized(
        "cumulative",
        "cumulative: rows of an input for each event; immediate: selectivity of the operator before",
        "HOW",
    )
    multipliers: Annotated[tuple[int, ...], _each(partial(_parsed_whole, 1, 10_000))] = _characterized(
        "1,2,4,8", "what instances are multiplied by, in the thesis's three ways", "N,N"
    )
    apply: bool = _characterized(False, "run it with the instances advised, where Spark has any")

    @property
    def slices_in_all(self) -> int:
        return self.slices + self.warmup_slices


class Experiment(ConfigModel):
    """One question, whole: `streamgauge experiment FILE` asks the same as the command that `--print-toml` printed."""

    command: Command = "run"
    workload: str
    search: Search = Search()
    anatomy: Anatomy | None = None
    characterize: Characterize | None = None
    engine: str = setting("spark", "engine under test (streamgauge engines)", "NAME")
    parameters: dict[str, Any] = _everywhere(
        {}, "a workload parameter, or data=FILE: rows of your own in the place of made ones; repeatable", NAMED,
        flag="--set", repeatable=True, default_text="none",
    )  # fmt: skip
    options: dict[str, str] = _everywhere(
        {}, "an engine setting or lowering, such as spark.sql.shuffle.partitions=4", NAMED,
        flag="--option", repeatable=True, default_text="none",
    )  # fmt: skip
    tuning: Tuning = setting(
        "tuned", "tuned: the fastest correct form; idiomatic: what a competent user writes without tricks",
        "PROFILE", only=TUNABLE,
    )  # fmt: skip
    transport: str = setting(
        "flight", "how events travel; flight: from memory; kafka: over a broker; socket: as lines of text", "NAME"
    )
    transport_options: dict[str, str] = setting(
        {}, "a setting of the transport, such as encoding=json over kafka; repeatable", NAMED,
        flag="--transport-option", repeatable=True, default_text="none",
    )  # fmt: skip
    master: str | None = setting(None, "Spark master", "URL", default_text="local[all cores]")
    isolation: Literal["shared", "pinned"] = setting(
        "shared", "shared: same cores for driver and SUT; pinned: cores apart", "HOW"
    )
    load: Load = Load()
    limits: tuple[str, ...] = _judged(
        (), 'a service level: "event_time_p99<=2s"; repeatable', "RULE", flag="--limit", repeatable=True,
        default_text="none", example='"event_time_p99<=2s"',
    )  # fmt: skip
    bind: str = _judged("127.0.0.1", "address that endpoints listen on", "ADDRESS")
    port: Annotated[int | None, Field(ge=1024, le=65000)] = _judged(
        None, "first port of the endpoints", "N", default_text="free ones", example="5000"
    )
    out: str | None = _everywhere(
        None, "where run folders go", "DIR", default_text="runs", example="DIR",
        per_command={"generate": {
            "help": "folder to write to: DIR/<stream>/part-<partition>.parquet", "default_text": "", "required": True,
        }},
    )  # fmt: skip
    keep_results: bool = setting(
        False, "keep every result as results[-SINK].parquet", only=("run", "sustain", "generate")
    )

    @model_validator(mode="before")
    @classmethod
    def _with_defaults_of_command(cls, values: Any) -> Any:
        """Where no rate or duration is asked for, the command's own."""
        load = values.get("load", {}) if isinstance(values, dict) else None
        if not isinstance(load, dict) or values.get("command") not in COMMANDS:
            return values
        own = {name: SETTINGS[f"load.{name}"].in_command(values["command"]).default for name in ("rate", "duration")}
        return {**values, "load": {**own, **load}}


SETTINGS = {info.name: info for info in settings_of(Experiment)}
"""Every setting that the command line has an option for, by its name."""


def setting_of(name: str) -> SettingInfo | None:
    """The setting that a dotted name is, or is an entry of: `parameters.range`."""
    return SETTINGS.get(name) or SETTINGS.get(name.partition(".")[0])


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


def _way_out(name: str, item: Any) -> str:
    """An option with a value that would do; without an option, the file's line."""
    info, choices = setting_of(name), choices_of(item)
    meant = nearest(item["input"], choices) if choices else ""
    if info is None:
        return f'{name} = "{meant}"' if meant else f"another value for {name or 'the file'}"
    if info.metavar == NAMED:
        return f"{info.flag} {name.partition('.')[2] or 'name'}=VALUE"
    return f"{info.flag} {meant}" if meant else info.way_out


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
