"""The experiment model. Each field declares one setting, which is a key of the TOML file and a command-line option.

Unknown keys are refused, and one error reports all problems. Engine and transport names stay strings here:
`preflight.settings_checks` checks them.
"""

import math
from functools import partial
from operator import attrgetter
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from streamgauge.config.cpu_settings import Cpus, are_separate
from streamgauge.config.named_files import is_program
from streamgauge.config.setting_info import (
    COMMANDS,
    ENGINE_UNDER_LOAD,
    NAME_VALUE,
    TABLES,
    Command,
    Duration,
    Loads,
    Rate,
    SettingInfo,
    Share,
    Shares,
    file_line,
    line_meant,
    list_of,
    parse_interval,
    parse_number,
    parse_record_size,
    setting,
    settings_of,
    whole,
    without_tables,
)
from streamgauge.core.errors import Fault, InputError, faults_of, nearest, problems_of, require
from streamgauge.core.formatting import leaves
from streamgauge.core.former_names import TransportName
from streamgauge.core.plugin_options import TUNED, Tuning
from streamgauge.core.units import PARTITION_BITS, parse_rate
from streamgauge.results.profile import Weights


def _with_option(name: str, way_out: str) -> str:
    """The way out with the setting's own option, whatever option a parser named."""
    option, _, example = way_out.partition(" ")
    info = SETTINGS.get(name)
    if info is None or not option.startswith("--"):
        return way_out
    return f"{info.flag} {example}" if example and not info.example else info.way_out


TUNABLE = ("run", "sustain", "scale", "sweep", "anatomy", "characterize")
"""The commands that start an engine."""


class ConfigModel(BaseModel):
    """Base of every part of an experiment: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


_IN_TRANSPORT, _IN_VERDICT, _IN_OUTPUT = "Transport", "Verdict", "Output"
"""Groups of options in `--help`, for settings whose section is another one."""
_all_commands = partial(setting, only=COMMANDS)
_judged = partial(setting, only=("run", "sustain", "scale", "sweep"))
_searches = partial(setting, only=("sustain", "scale"))
_sustain_only = partial(setting, only=("sustain",))
_scale_only = partial(setting, only=("scale",))
_sweep_only = partial(setting, only=("sweep",))
_generate_only = partial(setting, only=("generate",))
_anatomy_only = partial(setting, only=("anatomy",))
_characterize_only = partial(setting, only=("characterize",))


class Load(ConfigModel):
    """The offered load: the rate over time and the processes that produce it."""

    rate: Rate = setting(
        "100k", "events per second of all streams together: 100k, 1.5M", "RATE",
        only=("run", "scale", "generate", "characterize"),
        per_command={
            "scale": {"help": "events per second where --load is another dimension: 100k"},
            "characterize": {
                "default": "10k", "help": "events per second of event time, which sets how full windows are: 10k",
            },
        },
    )  # fmt: skip
    duration: Duration = setting(
        "60s", "length of the measured span, without warm-up and tail: 60s, 2m", "TIME",
        per_command={
            "sustain": {"default": "30s"},
            "scale": {"default": None, "default_text": "30s; 360s with --criterion ehrenstein"},
            "anatomy": {"default": "30s"},
        },
    )  # fmt: skip
    events: Annotated[int, whole(1, 10**12)] | None = setting(
        None, "events of all streams in the measured span, instead of --duration: 100M; only at a constant rate", "N",
        only=("run", "generate"), example="100M", default_text="by --duration",
    )  # fmt: skip
    warmup: Duration | None = setting(
        None, "length of the warm-up before the measured span", "TIME", example="45s",
        default_text="45s on a fresh JVM; 75s in real-time mode with a checkpoint a minute; more for spans above 70s",
    )  # fmt: skip
    generators: Annotated[int | None, Field(ge=1, le=256)] = setting(
        None, "number of generator processes, 160 MB each; each writes partitions of its own", "N", example="2",
        default_text="one per SUT core, at most 8; 1 over kafka and socket",
    )  # fmt: skip
    seed: Annotated[int, Field(ge=0, lt=2**63)] = _all_commands(
        "1", "seed of the generated input; the same seed gives the same bytes", "N"
    )
    profile: str = setting(
        "constant", "the rate over time: constant | step:RATE@TIME,... | ramp:RATE | burst:FACTOR@TIME+LENGTH", "SHAPE",
        only=("run", "generate"), flag="--load-shape",
    )  # fmt: skip
    early_stop: bool = setting(
        True, "with --no-early-stop, a trial that cannot sustain its rate goes on to its end, or until the queue is "
        "full",
        only=("run",), flag="--no-early-stop", group=_IN_VERDICT,
    )  # fmt: skip
    start: str | None = _generate_only(
        None, "start_time of a run with these settings: writes its planned input with warm-up and tail. For an "
        "extended run, use the next option", "TIMESTAMP",
        default_text="now, measured span only",
    )  # fmt: skip
    of: str | None = _generate_only(
        None, "folder of a run: writes exactly the input that this run was offered, extensions included", "RUN",
        default_text="none",
    )  # fmt: skip
    chunk: Duration | None = setting(
        None, "event time per record batch", "TIME", only=ENGINE_UNDER_LOAD, example="50ms",
        default_text="50ms; 10ms below 200k/s with batches less than 1s apart; a fifth of both in real-time mode",
    )  # fmt: skip
    bound: Duration = _judged(
        "30s", "limit of the driver's queue, in seconds of input", "TIME", flag="--queue-limit", group=_IN_TRANSPORT
    )
    memory: str | None = _judged(
        None, "limit of the driver's queue, in bytes", "SIZE", flag="--queue-memory", group=_IN_TRANSPORT,
        default_text="4GiB or 10 s of the rate, at most half of the memory with the generators",
    )  # fmt: skip
    frontier: Literal["common", "free"] = _judged(
        "common", "where batches end; common: all partitions at one event time; free: each partition at its own", "HOW",
        group=_IN_TRANSPORT,
    )  # fmt: skip


class Search(ConfigModel):
    """The search for the highest sustained rate."""

    tolerance: Annotated[Share, Field(gt=0, lt=1)] = _searches(
        "5%", "relative width of the result: 5%", "SHARE",
        per_command={"scale": {"help": "greatest step between loads of a range A..B: 5%"}},
    )  # fmt: skip
    quick: bool = _sustain_only(False, "leave out the fresh engine and the trial at 90 %; the result says so")
    start_rate: Rate | None = setting(
        None, "rate of the first trial", "RATE", only=("sustain", "sweep"), default_text="found by an overload trial",
        per_command={"sweep": {"help": "rate of the first trial of a search for 100 %"}},
    )  # fmt: skip
    resume: str | None = setting(
        None, "folder of an interrupted search to continue", "RUN", only=("sustain", "scale", "sweep"),
        default_text="a new search",
        per_command={
            "scale": {"help": "folder of an interrupted study to continue", "default_text": "a new study"},
            "sweep": {"help": "folder of an interrupted sweep to continue", "default_text": "a new sweep"},
        },
    )  # fmt: skip
    trials_max: Annotated[int, Field(ge=3)] = _sustain_only("16", "most trials of the search", "N")


class Scale(ConfigModel):
    """The grid of a scalability study: levels of resources, and loads in ascending difficulty."""

    resources: Annotated[tuple[int, ...], list_of(partial(parse_number, 1, 4096))] = _scale_only(
        (), "levels of resources: 1,2,4", "N,N", default_text="required", example="1,2,4"
    )
    loads: Loads = _scale_only(
        (), "loads from easy to hard: a list, or a range such as 4096..131072", "LOAD,LOAD",
        default_text="required", example="4096..131072",
    )  # fmt: skip
    load: str = _scale_only(
        "rate", "dimension of the loads: rate (events per second), or a parameter of the workload", "NAME"
    )
    resource: str = _scale_only("parallelism", "setting that the levels of resources set", "NAME")
    repeat: Annotated[int, Field(ge=1, le=99)] = _scale_only(
        "1", "trials of each cell; more than half of them decide", "N", group=_IN_VERDICT
    )
    criterion: Literal["slope", "ehrenstein"] = _scale_only(
        "slope",
        "slope: the checks of a run; ehrenstein: over 360 s after 180 s of warm-up, the lag grows by less than 100 "
        "records, mean over partitions",
        "HOW",
        group=_IN_VERDICT,
    )


class Sweep(ConfigModel):
    """The loads of a sweep, as shares of one rate, which is 100 %."""

    loads: Shares = _sweep_only(
        "10%..110%", "loads as shares of one rate: 20%,50%,80%, or a range in steps of 10 %", "SHARE,SHARE",
        example="10%..110%",
    )  # fmt: skip
    of: Rate | None = _sweep_only(
        None, "rate that is 100 %: 200k", "RATE", default_text="the sustained rate, which a quick search finds first",
        example="200k",
    )  # fmt: skip


class Anatomy(ConfigModel):
    """The trials of an anatomy: the product of rates (events/s), batch intervals (s) and record sizes (bytes)."""

    rates: Annotated[tuple[float, ...], list_of(parse_rate), Field(min_length=1)] = _anatomy_only(
        "20k", "rates: 20k,50k; one trial at each", "RATE,RATE", example="20k,50k"
    )
    batch_windows: Annotated[tuple[float, ...], list_of(parse_interval)] = _anatomy_only(
        (), "batch intervals: 0s,500ms; one trial at each", "TIME,TIME", default_text="trigger's", example="0s,500ms"
    )
    record_sizes: Annotated[tuple[int, ...], list_of(parse_record_size)] = _anatomy_only(
        (), "record sizes in bytes, for stamped_text: 25,1000; one trial at each", "N,N",
        default_text="25", example="25,1000",
    )  # fmt: skip


class Characterize(ConfigModel):
    """Sample sizes of the operator profile, and how it distributes instances (Bordin et al. 2020, equation 3.4)."""

    slices: Annotated[int, whole(1, 100_000)] = _characterize_only(
        "100", "timed slices of the input; fewer than 100 give no p99 and no advice", "N"
    )
    slice_events: Annotated[int, whole(1, 10_000_000)] = _characterize_only("10k", "input events in a slice", "N")
    warmup_slices: Annotated[int, whole(0, 100_000)] = _characterize_only(
        "20", "untimed slices that warm the engine up first", "N"
    )
    target: Annotated[int, whole(1, 1_000_000)] = _characterize_only(
        "10", "instances that the advice distributes over the operators", "K"
    )
    weights: Weights = _characterize_only(
        "cumulative",
        "weight of an operator; cumulative: its input rows per event; immediate: selectivity of the operator before",
        "HOW",
    )
    multipliers: Annotated[tuple[int, ...], list_of(partial(parse_number, 1, 10_000))] = _characterize_only(
        "1,2,4,8", "factors for the instances, in the three methods of Bordin's thesis", "N,N"
    )
    apply: bool = _characterize_only(False, "run the workload with the advised instances, where the engine takes them")

    @property
    def total_slices(self) -> int:
        return self.slices + self.warmup_slices


class Matrix(BaseModel):
    """The section `[matrix]`: settings that vary. Every other key is a dotted setting with a list of values."""

    # config.matrix expands and checks it.
    model_config = ConfigDict(frozen=True, extra="allow")

    repeat: Annotated[int, Field(ge=1, le=1000, description="how often each combination runs, with the same seed")] = 1
    order: Annotated[Literal["listed", "random"], Field(description="random shuffles each repetition")] = "listed"
    seed: Annotated[int, Field(ge=0, lt=2**63, description="seed of that shuffle")] = 1
    include: Annotated[tuple[dict[str, Any], ...], Field(description="further cells, as tables of settings")] = ()
    exclude: Annotated[
        tuple[dict[str, Any], ...],
        Field(description="combinations that do not run: those with all values of an entry"),
    ] = ()
    no_cells: Annotated[dict[str, str], Field(description="what has no cell here, each with the reason")] = {}
    left_out: Annotated[tuple[dict[str, Any], ...], Field(description="written by `--quick`")] = ()


class Quick(ConfigModel):
    """The trials of `--quick`."""

    rate: Annotated[Rate | None, Field(description="rate, which a search must have")] = None
    duration: Annotated[Duration, Field(description="span, not extended")] = 20.0
    warmup: Annotated[Duration, Field(description="warm-up")] = 20.0
    profile: Annotated[str | None, Field(description="rate over time")] = None
    parameters: Annotated[dict[str, Any], Field(description="parameters that differ")] = {}
    look: Annotated[bool, Field(description="written by `--quick`")] = False


class Paper(ConfigModel):
    """The section `[paper]`: a published table that the page shows, and in whose form it shows the cells."""

    work: Annotated[str, Field(min_length=1, description="the work and its year")]
    table: Annotated[str, Field(min_length=1, description="the table in it")]
    hardware: Annotated[str, Field(min_length=1, description="what it was measured on")]
    published: Annotated[str, Field(description="CSV file in a folder `published`, beside this file or its folder")]
    where: Annotated[dict[str, Any], Field(description="column and value that its rows have")] = {}
    columns: Annotated[tuple[str, ...], Field(description="its columns; without them, all but `where`")] = ()


class Experiment(ConfigModel):
    """One experiment. `streamgauge experiment FILE` does the same as the command that `--print-toml` printed."""

    command: Annotated[Command, Field(description="the command that performs the experiment")] = "run"
    workload: Annotated[str, Field(description="a workload's name, or the path of a user job or program")]
    search: Search = Search()
    sweep: Sweep | None = None
    scale: Scale | None = None
    anatomy: Anatomy | None = None
    characterize: Characterize | None = None
    matrix: Matrix | None = None
    paper: Paper | None = None
    quick: Quick | None = None
    engine: str = setting("spark", "engine under test (streamgauge engines lists them)", "NAME")
    parameters: dict[str, Any] = _all_commands(
        {}, "a workload parameter, or data=FILE to replace generated rows by your own; repeatable", NAME_VALUE,
        flag="--set", repeatable=True, default_text="none", group="Load",
    )  # fmt: skip
    options: dict[str, str] = _all_commands(
        {}, "an engine setting or a lowering, such as spark.sql.shuffle.partitions=4; repeatable", NAME_VALUE,
        flag="--option", repeatable=True, default_text="none",
    )  # fmt: skip
    tuning: Tuning = setting(
        TUNED, "tuned: the fastest correct form; idiomatic: what a competent user writes", "PROFILE", only=TUNABLE
    )
    transport: TransportName = setting(
        "memory", "how events travel; memory: by queues in memory; kafka: over a broker; socket: lines of text", "NAME",
        default_text="memory, or the engine's first", group=_IN_TRANSPORT,
    )  # fmt: skip
    transport_options: dict[str, str] = setting(
        {}, "a transport setting, such as encoding=json with kafka; repeatable", NAME_VALUE,
        only=ENGINE_UNDER_LOAD, flag="--transport-option", repeatable=True, default_text="none", group=_IN_TRANSPORT,
    )  # fmt: skip
    master: str | None = setting(
        None, "URL of the engine's cluster", "URL", only=ENGINE_UNDER_LOAD, default_text="local[all cores]"
    )
    partitions: Annotated[int | None, Field(ge=1, le=2**PARTITION_BITS)] = setting(
        None, "partitions of each stream: queues in memory, or partitions of its topic", "N", example="4",
        default_text="as many as generators", group=_IN_TRANSPORT,
    )  # fmt: skip
    parallelism: Annotated[int | None, Field(ge=1, le=4096)] = setting(
        None, "cores of the engine, in a cluster of all executors together; also tasks after an exchange", "N",
        only=("run", "sustain", "sweep", "anatomy"), example="2",
        default_text="all cores; tasks: as many as partitions, at least 2",
    )  # fmt: skip
    isolation: Literal["shared", "pinned"] = setting(
        "shared", "shared: driver and engine use the same cores; pinned: separate cores", "HOW"
    )
    cpus: Cpus = Cpus()
    load: Load = Load()
    limits: tuple[str, ...] = _judged(
        (), 'a latency limit: "event_time_p99<=2s"; repeatable', "RULE", flag="--limit", repeatable=True,
        default_text="none", example='"event_time_p99<=2s"', group=_IN_VERDICT,
    )  # fmt: skip
    bind: str = _judged("127.0.0.1", "address on which the driver listens", "ADDRESS", group=_IN_TRANSPORT)
    port: Annotated[int | None, Field(ge=1024, le=65000)] = _judged(
        None, "first port on which the driver listens", "N", default_text="free ports", example="5000",
        group=_IN_TRANSPORT,
    )  # fmt: skip
    prometheus: Annotated[int | None, Field(ge=1024, le=65535)] = _judged(
        None, "port on loopback from which Prometheus can read the figures of the run", "PORT", default_text="none",
        example="9464", group=_IN_OUTPUT,
    )  # fmt: skip
    out: str | None = _all_commands(
        None, "folder for run folders", "DIR", default_text="runs", example="DIR", group=_IN_OUTPUT,
        per_command={"generate": {
            "help": "folder for the files DIR/<stream>/part-<partition>.parquet", "default_text": "", "required": True,
        }},
    )  # fmt: skip
    keep_results: bool = setting(
        False, "store every result as results[-SINK].parquet", only=("run", "sustain", "scale"), group=_IN_OUTPUT
    )

    @property
    def is_quick_look(self) -> bool:
        """Whether `--quick` made it: its trials are short, and what they find is no figure."""
        return self.quick is not None and self.quick.look

    @model_validator(mode="before")
    @classmethod
    def _with_defaults_of_command(cls, values: Any) -> Any:
        """Fills in the command's default rate and duration, a program's engine, and the isolation that `cpus` states.

        Takes settings out of the tables of `TABLES`.
        """
        if not isinstance(values, dict):
            return values
        values = without_tables(values)
        command, load = values.get("command"), values.get("load", {})
        if are_separate(values.get("cpus")):
            values = {**values, "isolation": "pinned"}
        if is_program(str(values.get("workload"))):
            settable = {
                name: value for name, value in PROGRAM_DEFAULTS.items() if (command or "run") in SETTINGS[name].commands
            }
            values = {**settable, **values}
        if not isinstance(load, dict) or command not in COMMANDS:
            return values
        defaults = {name: SETTINGS[f"load.{name}"].in_command(command).default for name in ("rate", "duration")}
        if command == "scale":
            scale = values.get("scale")
            criterion = str(scale.get("criterion")) if isinstance(scale, dict) else ""
            defaults |= CRITERION_SPANS.get(criterion, CRITERION_SPANS["slope"])
        if load.get("events") is not None:
            del defaults["duration"]
        return {**values, "load": {**defaults, **load}}

    @model_validator(mode="after")
    def _with_span_of_events(self) -> Self:
        """Fills in the duration that follows from the number of events. A dump has both, and is read again."""
        load = self.load
        if load.events is None:
            return self
        span_s = load.events / load.rate
        same = "duration" not in load.model_fields_set or math.isclose(load.duration, span_s)
        rule = "must not be given together with another duration than that of so many events at the rate"
        require(same, "load.events", rule, load.events, "only one of --events and --duration")
        return self.model_copy(update={"load": load.model_copy(update={"duration": span_s})})


PROGRAM_DEFAULTS = {"engine": "external", "transport": "kafka"}
"""The defaults of a program of the user's own."""
CRITERION_SPANS = {"slope": {"duration": "30s"}, "ehrenstein": {"warmup": "180s", "duration": "360s"}}
"""The spans of a trial by the criterion of `scale`, unless others are given."""

SETTINGS = {info.name: info for info in settings_of(Experiment)}
"""Every setting with a command-line option, by dotted name."""


def setting_of(name: str) -> SettingInfo | None:
    """The setting of a dotted name, which may be an entry of a table: `parameters.range`."""
    return SETTINGS.get(name) or SETTINGS.get(name.partition(".")[0])


SHORTHANDS = {"brokers": "transport_options.brokers", "transport.brokers": "transport_options.brokers"}
"""Options of the command line that are no settings of a file, and the setting that each one gives."""


TABLES_OF_USER = [name for name, info in SETTINGS.items() if info.metavar == NAME_VALUE]
"""The settings that are tables of names which the user chooses."""


def _joined_name(fault: Fault) -> Fault:
    """TOML reads an unquoted name with dots as tables: the fault of the whole name, if a text was expected."""
    is_entry = fault.name.partition(".")[0] in TABLES_OF_USER and len(fault.location) == 2
    if not (is_entry and isinstance(fault.got, dict) and fault.got):
        return fault
    name, value = next(leaves(fault.got))
    return Fault(_UNQUOTED, (*fault.location, name), value, {})


def _unknown(fault: Fault) -> tuple[str, str]:
    tables = {name.partition(".")[0] for name in SETTINGS if "." in name} | TABLES.keys() | {"paper"}
    of_paper = {name: f"paper.{name}" for name in Paper.model_fields if fault.name.startswith("paper.")}
    meant = line_meant(fault.name, fault.got, SETTINGS, SHORTHANDS | of_paper, tables)
    return "is not a setting", meant or "remove it, or correct its spelling"


def _way_out(fault: Fault, offered: str) -> str:
    """An option with an accepted value; without an option, the line of the file."""
    name = fault.name
    if offered:
        return _with_option(name, offered)
    if fault.kind == _UNQUOTED:
        return file_line(name, str(fault.got))
    if name == "workload":
        return 'workload = "windowed_aggregation"; streamgauge workloads lists them all'
    info, meant = setting_of(name), nearest(fault.got, fault.choices) if fault.choices else ""
    if info is None and fault.kind in ("missing", "string_too_short"):
        return file_line(name, "...")
    if info is None:
        return f'{name} = "{meant}"' if meant else f"another value for {name or 'the file'}"
    if info.metavar == NAME_VALUE:
        return f"{info.flag} {name.partition('.')[2] or 'name'}=VALUE"
    return f"{info.flag} {meant}" if meant else info.way_out


_UNQUOTED = "unquoted_name"
_RULES = {_UNQUOTED: "must be a text, and a name with dots must be quoted", "string_too_short": "must not be empty"}


def build(values: dict[str, Any]) -> Experiment:
    """An experiment from plain values. One InputError holds every problem."""
    try:
        return Experiment.model_validate(values)
    except ValidationError as error:
        faults = map(_joined_name, faults_of(error))
        raise InputError(problems_of(faults, attrgetter("name"), _unknown, _way_out, _RULES)) from None


def left_out(experiment: Experiment, *names: str) -> dict[str, Any]:
    """What the values of an experiment for another one leave out: `names`, and what follows from others."""
    left: dict[str, Any] = dict.fromkeys((*names, *undecided(experiment)), True)
    return left if experiment.load.events is None else {**left, "load": {"duration"}}


def undecided(experiment: Experiment) -> set[str]:
    """The settings whose default depends on the engine, unless the user or the checks before a start set them."""
    return {"transport"} - experiment.model_fields_set
