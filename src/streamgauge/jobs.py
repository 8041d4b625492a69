"""The API by which a PySpark user job declares its inputs and its results.

    from streamgauge.jobs import Integer, Key, job, stream

    @job(stream("purchases", Key("user_id", 1_000_000), Key("pack", 1000, "zipf"), Integer("price", 1, 100)))
    def dear(spark, inputs):
        return inputs["purchases"].where("price > 90")

`streamgauge run FILE.py` measures it. The function stays as it is: it can be called and tested without us.
Each frame has the stream's fields, `timestamp` (the event time, for watermarks and windows), and the lineage, BIGINT
microseconds: `event_time`, `ingest_time`, and `event_id`. Results keep `event_time`; the other two where they can.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from streamgauge.core.clock import US
from streamgauge.core.engine_reports import Guarantee
from streamgauge.core.errors import JobError, Problem, Rule, broken, nearest, refuse
from streamgauge.core.schema import LINEAGE
from streamgauge.core.units import parse_duration
from streamgauge.loadgen.fields import Decimal, FieldSpec, Integer, Key, Payload, Text, is_number, not_of
from streamgauge.loadgen.fitted import Choice

__all__ = ["Choice", "Decimal", "Integer", "Key", "Payload", "Text", "job", "stream"]

DESCRIPTION = "__streamgauge__"
"""The function's attribute that holds its `Description`."""
UNBOUNDED = "unbounded"
DEFAULT_REACH = "20s"
TIME = "timestamp"

Function = TypeVar("Function", bound=Callable[..., Any])
Mode = Literal["append", "update"]
Reference = str | Callable[[Any], Any]


def _require(*rules: Rule) -> None:
    """Raises one JobError with every broken rule."""
    refuse(broken(*rules), JobError)


@dataclass(frozen=True)
class Input:
    """An input stream: fields, or the file that they are fitted to; `time` names the column with the event time.

    `key` names the field that is the key of its messages over a broker.
    """

    name: str
    fields: tuple[FieldSpec, ...]
    sample: Path | None
    share: float | None
    time: str
    key: str | None = None


@dataclass(frozen=True)
class RecordKey:
    """The columns of a result that hold the fields of the same name of one record of an input."""

    stream: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Description:
    """The arguments of `@job`. `reach_us` is None if it is unbounded; `assumed` names the defaults that were taken.

    The file of a program may also give the guarantee that it promises for its results, and `latency_key`, by which
    results without a time get that of an input record. `query` is the SQL of its reference.
    """

    inputs: tuple[Input, ...]
    mode: Mode
    keys: tuple[str, ...]
    reach_us: int | None
    reference: Reference | None
    assumed: tuple[str, ...]
    guarantee: Guarantee | None = None
    latency_key: RecordKey | None = None
    query: str = ""


def stream(
    name: str,
    *fields: FieldSpec,
    sample: str | Path | None = None,
    share: float | None = None,
    time: str = TIME,
    key: str | None = None,
) -> Input:
    """An input of a job.

    Args:
        name: its name in `inputs`.
        fields: its columns: `Key`, `Integer`, `Decimal`, `Text`, `Payload`, `Choice`.
        sample: in place of fields, a Parquet, CSV or JSON file like the real input, beside the job's file.
        share: its part of the rate; without any, all streams have the same.
        time: the column with the event time as a timestamp.
        key: over Kafka, the column with the key of each message, which decides its partition; without one, partitions
            take turns.
    """
    is_name = isinstance(name, str) and name.isidentifier() and not name.startswith("_")
    _require(Rule(is_name, "stream", "must have a name of letters, digits and _", name, 'stream("purchases", ...)'))
    setting, few_fields = f"stream {name!r}", 'Key("user_id", 1000), Integer("price", 1, 100)'
    has_sample = sample is not None
    _require(
        Rule(
            not has_sample or isinstance(sample, str | Path), f"{setting} sample", "must be a file's name", sample,
            'sample="purchases.parquet"',
        ),
        Rule(
            share is None or is_number(share), f"{setting} share",
            f"must be a number above 0 and at most 1{not_of(share)}", share, "share=0.5",
        ),
        Rule(_is_column(time), f"{setting} time", "must be a column's name, a text", time, 'time="ts"'),
    )  # fmt: skip
    _require(_no_list(setting, "fields", fields, f"stream({name!r}, {few_fields})"))
    _require(*(Rule(isinstance(one, FieldSpec), setting, "must be given fields", one, few_fields) for one in fields))
    names = [one.name for one in fields]
    _require(
        *(Rule(_is_column(one), setting, "must have fields with names", one, 'Key("user_id", 1000)') for one in names),
        Rule(
            bool(fields) != has_sample, setting, "needs its schema: either fields or a sample",
            "both" if fields else "neither",
            f'stream({name!r}, Key("user_id", 1000)) or stream({name!r}, sample="FILE.parquet")',
        ),
    )  # fmt: skip
    taken = (*LINEAGE, *names)
    is_free = time.lower() not in map(str.lower, taken)  # Spark does not tell Timestamp from timestamp
    is_key = key is None or (_is_column(key) and (not fields or key in names))
    _require(
        Rule(is_free, setting, f"its time column must differ from {', '.join(taken)}", time, 'time="ts"'),
        Rule(is_key, f"{setting} key", "must be the name of one of its columns", key,
             f'key="{nearest(key, names or ["user_id"])}"'),
    )  # fmt: skip
    return Input(name, fields, None if sample is None else Path(sample), share, time, key)


def _no_list(setting: str, of: str, given: tuple[object, ...], way_out: str) -> Rule:
    return Rule(
        not any(isinstance(one, list | tuple) for one in given), setting,
        f"must be given its {of} one after the other", "a list of them", way_out,
    )  # fmt: skip


def _is_column(name: object) -> bool:
    return isinstance(name, str) and bool(name.strip())


def job(
    *inputs: Input,
    mode: Mode = "append",
    keys: str | Sequence[str] = (),
    reach: str | float | None = None,
    reference: Reference | None = None,
) -> Callable[[Function], Function]:
    """Marks the function `(spark, inputs) -> DataFrame` that is the job.

    Args:
        inputs: its streams.
        mode: `append` for final rows, `update` for successive values of a key.
        keys: the columns that tell one result from another (with `window_start`, where there is one). Without:
            `event_id` where results keep it, else the first columns that do so, else whole rows.
        reach: how far in event time one event can influence results (`"12s"`, `"unbounded"`): the load goes on for so
            long, so that every measured result closes by itself.
        reference: the same question as DuckDB SQL over tables named as the streams, or as a function that takes a
            DuckDB connection with those tables and returns a relation. Without: the function itself, run by Spark in
            batch.
    """
    is_bare = len(inputs) == 1 and callable(inputs[0])
    _require(_has_schema(not is_bare, getattr(inputs[0], "__name__", "the function") if is_bare else ""))
    _require(
        _has_schema(inputs, "the function"),
        _no_list("@job", "streams", inputs, '@job(stream("clicks", ...), stream("views", ...))'),
    )
    _require(
        *(Rule(isinstance(one, Input), "@job", "must be given streams", one, '@job(stream("purchases", ...))')
          for one in inputs)
    )  # fmt: skip
    names, modes, key_names = [one.name for one in inputs], get_args(Mode), _key_names(keys)
    _require(
        Rule(len({*names}) == len(names), "@job", "streams must have different names", names, "rename one"),
        Rule(
            mode in modes, "@job mode", f"must be one of {', '.join(modes)}", mode, f'mode="{nearest(mode, modes)}"'
        ),
        Rule(
            mode != "update" or key_names, "@job keys", "must name the columns whose values are updated", "none",
            '@job(..., mode="update", keys="user_id")',
        ),
    )  # fmt: skip
    _check_reference(reference)
    reach_us, assumed = _reach(reach, mode)
    description = Description(inputs, mode, key_names, reach_us, reference, assumed)

    def mark(function: Function) -> Function:
        way_out = "def results(spark, inputs):"
        _require(Rule(inspect.isfunction(function), "@job", "must stand above a function", function, way_out))
        _check_signature(function)
        setattr(function, DESCRIPTION, description)
        return function

    return mark


def _check_reference(reference: object) -> None:
    """Refuses what is neither SQL nor a function. DuckDB checks the SQL when the streams are known."""
    file = str(reference).strip() if isinstance(reference, str | Path) else ""
    is_sql_file = file.lower().endswith(".sql") and "\n" not in file and "--" not in file
    _require(
        Rule(
            not isinstance(reference, Path) and not is_sql_file, "@job reference",
            "must be DuckDB SQL as text or a function, and not the name of a file", file,
            f'reference=Path(__file__).with_name("{Path(file).name}").read_text()',
        ),
        Rule(
            reference is None or isinstance(reference, str | Path) or callable(reference), "@job reference",
            "must be DuckDB SQL or a function that takes a DuckDB connection and returns a relation", reference,
            'reference="SELECT ..."',
        ),
    )  # fmt: skip


def _key_names(keys: Any) -> tuple[str, ...]:
    """The names in what is a column's name, or a sequence of them."""
    names = (keys,) if isinstance(keys, str) else keys
    _require(
        Rule(
            isinstance(names, Sequence) and all(map(_is_column, names)), "@job keys",
            "must be a column's name, or a list of columns' names", keys, 'keys="user_id", or keys=["user_id", "pack"]',
        )
    )  # fmt: skip
    return tuple(names)


_REACH_ASSUMED = (
    f"reach not declared: taken as {DEFAULT_REACH} of event time, by which warm-up and tail are longer; "
    'a job without windows or state has reach="0s"'
)


def _reach(reach: str | float | None, mode: Mode) -> tuple[int | None, tuple[str, ...]]:
    """(microseconds or None, what was assumed)."""
    if reach is None and mode == "update":
        return None, ("reach not declared: taken as unbounded, as results are updates",)
    if reach == UNBOUNDED:
        return None, ()
    given, assumed = (DEFAULT_REACH, (_REACH_ASSUMED,)) if reach is None else (reach, ())
    return round(parse_duration(given, "@job reach", way_out='reach="12s", or reach="unbounded"') * US), assumed


def _has_schema(inputs: object, function: str) -> Rule:
    return Rule(
        inputs, "@job", "needs the schema of its inputs, one stream at least", "none",
        f'@job(stream("purchases", Key("user_id", 1000), Integer("price", 1, 100))) above {function}',
    )  # fmt: skip


def _check_signature(function: Any) -> None:
    signature = inspect.signature(function)
    try:
        signature.bind(None, {})
    except TypeError:
        got, way_out = f"{function.__name__}{signature}", f"def {function.__name__}(spark, inputs):"
        raise JobError(Problem(function.__name__, "must take (spark, inputs)", got, way_out)) from None
