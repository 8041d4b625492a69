"""What a program's file is answered that is wrong or nearly right: one message that names what is meant."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from streamgauge.core.errors import JobError
from streamgauge.loadgen.plan import Plan
from streamgauge.user_workloads.program import program
from tests.helpers_recording import append_and_return
from tests.unit.user_workloads.helpers_programs import FIELDS, TIMELESS, problem_of, written

REFERENCE = 'reference = "SELECT user_id, price, ts FROM purchases WHERE price > 90"\n'
COUNTS = 'reference = "SELECT user_id, price, count(*) AS n, max(ts) AS ts FROM purchases GROUP BY user_id, price"\n'


SALES = '[inputs.sales]\ntime = "ts"\nfields.user_id = { kind = "key", domain = 9 }\n'
BIG = f'[output.big]\nkeys = ["user_id"]\n{REFERENCE}'
HEADER, OUTPUT = "[inputs.purchases.fields]", "[output]"


IN_S = ('[output]\nkeys = ["user_id", "ts"]\ntime = "ts"\n', '[output]\ntime_unit = "s"\nkeys = ["ts"]\ntime = "ts"\n')
WINDOW = "SELECT user_id, sum(price) AS spent, (ts // 2000 + 1) * 2 AS closed FROM purchases GROUP BY ALL"
BOTH = "SELECT user_id, max(ts) AS ts, ts // 2000 * 2000 + 2000 AS closed FROM purchases GROUP BY user_id, closed"
BOTH_TIMES = f'time_unit = "s"\nkeys = ["user_id", "closed"]\ntime = "ts"\nwindow_end = "closed"\nreference = "{BOTH}"'
OUT_OF_RANGE = "got 's, in which the time ts of a result is out of range'"
IN_1970 = "got 'us, in which the time ts of a result is in 1970'"


PRICE = 'price = { kind = "integer", low = 1, high = 100 }'
WRONG_SETTINGS: list[tuple[str, str, str | tuple[str, ...]]] = [
    ('kind = "program"', 'kind = "job"', 'must have kind = "program"'),
    ('kind = "program"\n', "", "an experiment file: streamgauge experiment"),
    ('kind = "program"', 'kind = "program"\ncomands = 1', "is not a setting; these are: kind, title, answers, command"),
    ("[inputs.purchases.fields]", "[inputs.purchases.feilds]", "is not a setting; these are: topic, format"),
    ('reference = "SELECT user_id', 'reference = "SELECT userid', "must be DuckDB SQL over its inputs (purchases)"),
    ('reference = "SELECT', 'reference = "-- SELECT', "must be DuckDB SQL over its inputs (purchases)"),
    ("price > 90", "price > 90; -- of the dear ones", 'syntax error at or near ";"'),
    ("user_id, price, ts FROM", "map() AS m, user_id, ts FROM", "must have columns that JSON can hold"),
    ("price, ts FROM", "price FROM", "must be a column of the reference: user_id, price"),
    ("price, ts FROM", "price, ts::VARCHAR AS ts FROM", "must be a whole number of ms, or a timestamp"),
    ("price, ts FROM", "price, ts::VARCHAR AS ts FROM", "CAST(ts AS TIMESTAMP) AS ts in the reference"),
    ("price, ts FROM", "price, ts::DOUBLE AS ts FROM", "CAST(ts AS BIGINT) AS ts in the reference"),
    ('"user_id", "ts"]', '"user", "ts"]', '"user_id", or add user to the reference'),
    ('reach = "0s"', 'reach = "soon"', "reach"),
    ('key = "user_id"', 'key = "user"', 'key = "user_id"'),
    ('time = "ts"', 'time = "price"', "must differ from"),
    ('kind = "key", domain', 'kind = "keys", domain', 'kind = "key"'),
    ("domain = 1000", "domains = 1000", "is not a setting of a key"),
    ("domain = 1000", 'distribution = "zipf"', "must be given for a key"),
    ("low = 1", "low = 1000", "low..high must rise"),
    ("{python}", "no-such-program-anywhere", "must begin with a program that exists"),
    ("{input}", "{input.orders}", "{input.purchases}"),
    ("[output]", 'ready_line = "up"\n[output]', "must be a table of settings"),
    ('kind = "program"', 'kind = "program"\nready_line = "up"', 'must be given with ready = "line"'),
    ('kind = "program"', 'kind = "program"\nready = "line"\nready_line = "(["', "must be a regular expression"),
    ('kind = "program"', 'kind = "program"\ntimeout = "long"', "timeout"),
    ('kind = "program"', 'kind = "program"\ntimeout = "0s"', "must be above 0s"),
    ('kind = "program"', 'kind = "program"\nready = "soon"', "must be one of consumer, committed, line, started"),
    ('reach = "0s"', 'mode = "upsert"', "must be one of append, update"),
    (
        'time = "ts"\nreach',
        'latency_key = ["user"]\nreach',
        "must be a column of the reference: user_id, price, ts",
    ),
    ('time = "ts"\nreach', 'time = "ts"\nlatency_key = ["ts"]\nreach', "without time and window_end only"),
    ('reach = "0s"', 'delivery = "once"', "must be one of exactly_once, at_least_once, at_most_once"),
    ('reach = "0s"', 'delivery = "at_most_once"', "loss_max: must be given with at_most_once"),
    ('reach = "0s"', "loss_max = 0.1", "loss_max: must be given with at_most_once, and only with it"),
    ('reach = "0s"', 'delivery = "at_most_once"\nloss_max = 1.5', "loss_max: must be below 1"),
    ('reach = "0s"', 'mode = "update"\ndelivery = "at_least_once"', 'applies to mode = "append" only'),
    ('keys = ["user_id", "ts"]', 'mode = "update"', "must name the fields whose values are updated"),
    ('reach = "0s"', 'time_unit = "ns"', "must be one of s, ms, us"),
    ('key = "user_id"', 'record_timestamp = "plan"', 'try: record_timestamp = "planned"'),
    ('key = "user_id"', 'key = "user_id"\nsample = "purchases.json"', "got 'both'"),
    # Topics and formats.
    ("[output]", '[output]\ntopic = "a b"', "must have letters, digits, . _ and - only"),
    ("[output]", '[output]\nformat = "xml"', "must be one of json, csv, text, avro"),
    ("[output]", '[output]\nformat = "text"', "text needs a reference of one column of text"),
    ("[output]", '[output]\nformat = "avro"', "must be given for the format avro"),
    ("[output]", '[output]\nformat = "avro"\nschema_file = "none.avsc"', "No such file"),
    ("[output]", '[output]\nformat = "protobuf"\nschema_file = "other.avsc"', "it is no descriptor set"),
    ("[output]", '[output]\nmessage = "shop.Total"', "applies to the format protobuf or protobuf-confluent only"),
    ("[output]", '[output]\nformat = "avro"\nschema_file = "other.avsc"', "must have user_id in its schema"),
    ("[output]", '[output]\ndelimiter = ";"', "applies to the format csv only"),
    ("[output]", '[output]\nformat = "csv"\ndelimiter = ";;"', "must be one character"),
    ("[inputs.purchases]", '[inputs.purchases]\nformat = "text"', "text needs one field"),
    ("{input}", "{output.dear}", "{output.results}"),
    # In the words of TOML, with a value that is right.
    ('reach = "0s"', 'reach = "soon"', ("output.reach: must be a time", 'try: reach = "5s", or "unbounded"')),
    ('reach = "0s"', "reach = 5", ("output.reach: must be a text", 'try: reach = "5s"')),
    ("domain = 1000", 'domain = "many"', ("user_id.domain: must be an integer, not a string", "domain = 1000")),
    ("low = 1,", "low = 1.5,", ("price.low: must be an integer, not a float", "try: low = 1")),
    ('"key", domain', '"key", distribution = 5, domain', ("must be a string, not an integer", '"zipf"')),
    ("domain = 1000", "domain = true", ("must be an integer, not a boolean",)),
    ('"integer", low = 1, high = 100', '"text", words = 2.5', ("price.words: must be an integer, not a float",)),
    ('"integer", low = 1, high = 100', '"payload", size_bytes = 2.5', ("must be an integer, not a float", "= 100")),
    ('"integer", low = 1', '"decimal", low = "a"', ("price.low: must be an integer or a float, not a string",)),
    ("user_id = {", '"" = {', ("inputs.purchases.fields.: must have a name", "try: user_id = {")),
    ("domain = 1000", "domain = 2024-01-01", ("must be an integer, not a date or time",)),
    ('{ kind = "key"', '{ kind = ["key"]', ("user_id.kind: must be one of key, integer",)),
    ('kind = "integer"', 'kind = "float"', ("price.kind: must be one of key, integer", 'try: kind = "decimal"')),
    ('{ kind = "integer", low = 1, high = 100 }', '"integer"', ("try: price = { kind = ", "low = 1, high = 100 }")),
    ("[output]", "[environment]\nTHREADS = 4\n[output]", ("environment.THREADS: must be a text", 'THREADS = "4"')),
]
WRONG_CHOICES = [
    ('values = "Paris"', ("city.values: must be an array, not a string", 'try: values = ["Paris", "Rome"]')),
    ('values = ["Paris", 5]', ("city.values: must be strings, integers, floats or booleans, all of one type",)),
    ("values = []", ("city.values: must be strings",)),
    ("values = [[1]]", ("city.values: must be strings",)),
    ('values = ["a", "b"], weights = 3', ("city.weights: must be an array, not an integer", "weights = [3, 1]")),
    ('values = ["a", "b"], weights = [3, "x"]', ("must be an array of numbers, not of a string",)),
    ('values = ["a", "b"], weights = [3, true]', ("must be an array of numbers, not of a boolean",)),
    ('values = ["a", "b"], weights = [3]', ("city.weights: must have a weight for each of the 2 values",)),
    ("values = [1, 99999999999999999999]", ("64 bits", 'try: values = ["Paris", "Rome"]')),
]
WRONG_PROGRESS = [
    ('"groups"', ('progress: must be "group", "results" or the folders of checkpoints', "got 'groups'")),
    ("{ spark_checkpoint = [] }", ("progress: must be", 'try: progress = { spark_checkpoint = ["{scratch}/check')),
    ('{ spark_checkpoint = "{scratch}/x" }', ("progress: must be",)),
    ('{ spark_checkpoints = ["{scratch}/x"] }', ("progress: must be",)),
    (
        '{ spark_checkpoint = ["s3a://bucket/x"] }',
        (
            "progress.spark_checkpoint: must be a folder of this machine",
            "no remote file system",
            "'s3a://bucket/x'",
        ),
    ),
    ('{ spark_checkpoint = ["dbfs:/x"] }', ("must be a folder of this machine",)),
    ('{ spark_checkpoint = ["{home}/x"] }', ("must have no placeholders except {scratch} and {run}", "'{home}'")),
    ('{ spark_checkpoint = ["x", "x"] }', ("must name each checkpoint once",)),
]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        *WRONG_SETTINGS,
        *((PRICE, f'{PRICE}\ncity = {{ kind = "choice", {given} }}', words) for given, words in WRONG_CHOICES),
        *(
            ("reference =", f'ready = "started"\nprogress = {given}\nreference =', words)
            for given, words in WRONG_PROGRESS
        ),
    ],
)
def test_a_wrong_setting_gets_one_message(tmp_path: Path, old: str, new: str, words: str | tuple[str, ...]) -> None:
    """It names the file, the setting, the rule, the value and the way out, and no type of Python's."""
    message = problem_of(written(tmp_path, (old, new)))
    assert all(each in message for each in ((words,) if isinstance(words, str) else words)), message
    assert message.startswith("program.toml: ")
    assert not re.search(r"\b(str|int|list|tuple|dict)\b|--program|Choice\(", message)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        # A table or setting in another place: its right name, or the place where it belongs.
        (((OUTPUT, f"{BIG}[output]"),), ("output.big", "try: [outputs.big]")),
        (((HEADER, "[input.purchases.fields]"), ("[inputs.purchases]", "[input.purchases]")), ("[inputs.purchases]",)),
        (((HEADER, "[inputs.purchases.field]"),), ("inputs.purchases.field", "try: [inputs.purchases.fields]")),
        (((OUTPUT, "[ouput]"),), ("ouput", "try: [output]")),
        (((OUTPUT, "[outputs]"),), ("outputs: must be a table for each topic", "settings keys, time, reach")),
        (((HEADER, "[inputs.fields]"), ("[inputs.purchases]", "[inputs]")), ("inputs: must be a table for each",)),
        (((OUTPUT, "[programme]\nx = 1\n[output]"),), ("one of [environment], [inputs], [output], [outputs]",)),
        ((('key = "user_id"', 'group = "mine"'),), ("try: group at the top of the file",)),
        ((('kind = "program"', 'kind = "program"\nkeys = ["ts"]'),), ("try: keys below [output]",)),
        ((('reach = "0s"', "share = 0.5"),), ("try: share below [inputs.NAME]",)),
        ((('reach = "0s"', 'colour = "red"'),), ("try: leave it out",)),
        # Shares, of the only input, and of several.
        ((('key = "user_id"', "share = 0.5"),), ("purchases.share: must be 1 for the only input", "leave it out")),
        ((('key = "user_id"', "share = 0"),), ("inputs.purchases.share: must be above 0",)),
        (
            (("[inputs.purchases]", f"[inputs.ads]\nshare = 0.4\n[inputs.ads.fields]{FIELDS}[inputs.purchases]"),
             ("{input}", "{input.ads}")),
            ("share of the inputs: shares must sum to 1, or be left out", "got 'ads: 0.4, purchases: none'"),
        ),
        # Unknown placeholders would reach the program as they are.
        (
            (("--from={input}", "--from={broker}"),),
            ("command: must be one of the placeholders {py", "{brokers}; ",
             "to pass on the braces themselves: {{broker}}"),
        ),
        ((("--from={input}", '{"in":{inptu}}'.replace('"', "'")),), ("try: {input};",)),
        (((OUTPUT, '[environment]\nWHERE = "{scratsh}/x"\n[output]'),), ("environment.WHERE: ", "{scratch}")),
        # A dry run of the reference, over some events.
        ((IN_S,), ("output.time_unit", OUT_OF_RANGE, '= "ms"')),
        (((OUTPUT, '[output]\ntime_unit = "us"'),), (IN_1970, '"ms"')),
        (
            ((REFERENCE, f'reference = "{WINDOW}"\n'), ('time = "ts"\nreach', 'window_end = "closed"\nreach'),
             ('keys = ["user_id", "ts"]', 'keys = ["user_id"]')),
            ("got 'ms, in which the window_end closed of a result is in 1970'", 'try: time_unit = "s"'),
        ),
        (
            ((REFERENCE, REFERENCE.replace("price, ts", "1 / (price - 91) AS p, CAST(price || 'x' AS INT) AS q, ts")),),
            ("reference: must run over events of its inputs", "Conversion Error"),
        ),
        (
            ((REFERENCE, COUNTS), ('reach = "0s"', 'mode = "update"'), ('"user_id", "ts"]', '"user_id"]')),
            ("output.keys: must identify one row of the reference", 'try: keys = ["user_id", "price"]', "GROUP BY"),
        ),
        # One unit is one problem, though both times of a result have it.
        (((REFERENCE, ""), ('keys = ["user_id", "ts"]\ntime = "ts"', BOTH_TIMES)), ("output.time_unit",)),
        # DuckDB says only where it stumbled.
        (
            (("user_id, price, ts FROM", "user_id, at FROM"),),
            ("a field whose name is a word of SQL needs double quotes",),
        ),
        # Names are those of topics and of variables.
        (
            ((HEADER, '[inputs.Purchases.fields]\nuser_id = { kind = "key", domain = 10 }\n' + HEADER),
             ("{input}", "{input.purchases}")),
            ("must differ from purchases by more than upper and lower case",),
        ),
        (
            (("[inputs.purchases]", '[inputs."käufe"]'), (HEADER, '[inputs."käufe".fields]'),
             ("FROM purchases", "FROM käufe")),
            ("inputs.käufe: must have a name of letters (a to z), digits and _",),
        ),
        # Fields that name a record do so in one input, with its types.
        (
            (TIMELESS, ("SELECT user_id, price", "SELECT user_id::DOUBLE AS user_id, price")),
            ("user_id is int; got 'user_id float'",),
        ),
        (
            (TIMELESS, ("[inputs.purchases]", f"{SALES}[inputs.purchases]"),
             ("{input}", "{input.purchases}")),
            ("must be fields of exactly one input; these have them: sales, purchases",),
        ),
    ],
)  # fmt: skip
def test_a_setting_that_is_nearly_right(
    tmp_path: Path, changes: tuple[tuple[str, str], ...], words: tuple[str, ...]
) -> None:
    message = problem_of(written(tmp_path, *changes))
    assert all(each in message for each in words), message


@pytest.mark.parametrize(
    ("changes", "settings"),
    [
        (
            [("domain = 1000", "domain = true"), ("low = 1,", "low = 1.5,")],
            ["inputs.purchases.fields.user_id.domain", "inputs.purchases.fields.price.low"],
        ),
        ([(OUTPUT, '[outputs.more]\ntime = "ts"\nreference = "SELECT 1"\n[output]')], ["output", "reference"]),
        (
            [("[inputs.purchases]", '[inputs.purchases]\nformat = "avro"\nschema_file = "more.avsc"')],
            ["inputs.purchases.schema_file", "inputs.purchases.fields"],
        ),
        (
            [('kind = "program"', 'kind = "program"\nattach = true')],
            ["command", "brokers", "group", "inputs.purchases.topic", "output.topic"],
        ),
    ],
)
def test_all_problems_are_answered_at_once(tmp_path: Path, changes: list[tuple[str, str]], settings: list[str]) -> None:
    with pytest.raises(JobError) as refusal:
        program(written(tmp_path, *changes))
    assert [problem.setting for problem in refusal.value.problems] == [f"program.toml: {each}" for each in settings]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Shell variables, doubled braces and JSON are the program's.
        *(("--from={input}", word) for word in ("${HOME}", "{{print}}", "{'a': 1}", "{}", "{1}")),
        # The only input may say that it has everything, as the documents show it.
        ('key = "user_id"', "share = 1.0"),
    ],
)
def test_what_is_right_all_the_same(tmp_path: Path, old: str, new: str) -> None:
    assert program(written(tmp_path, (old, new)))


def test_a_dry_run_of_large_events_takes_fewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of as many bytes as a batch may have."""
    made: list[pa.RecordBatch] = []
    batch = Plan.batch
    monkeypatch.setattr(Plan, "batch", lambda *given: append_and_return(made, whole := batch(*given), whole))
    program(written(tmp_path, ("[output]", 'raw = { kind = "payload", size_bytes = 3_000_000 }\n\n[output]')))
    assert 1 < made[0].num_rows < 30


@pytest.mark.parametrize(
    ("reference", "keys"),
    [
        ("SELECT user_id, price, ts - ts AS ts FROM purchases", "append"),
        ("SELECT user_id, ts FROM purchases UNION ALL SELECT user_id, ts * 1000 FROM purchases", "append"),
        (
            "SELECT user_id, ts // 2000 AS window_start, count(*) AS n, max(ts) AS ts FROM purchases GROUP BY ALL",
            "update",
        ),
        ("SELECT user_id, ts // 2000 AS n, max(ts) AS ts FROM purchases GROUP BY ALL", ""),
    ],
)
def test_what_a_dry_run_lets_through(tmp_path: Path, reference: str, keys: str) -> None:
    """Times that no unit explains, and windows that tell the values of a key apart. Only updates need such keys."""
    changes = [(REFERENCE, f'reference = "{reference}"\n'), ('["user_id", "ts"]', '["user_id"]')]
    changes += [('time = "ts"\nreach', 'time = "ts"\ntime_unit = "s"\nreach')] if keys == "append" else []
    changes += [('reach = "0s"', 'mode = "update"')] if keys == "update" else []
    assert program(written(tmp_path, *changes))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("SELECT userid FROM purchases", "must be DuckDB SQL over its inputs (purchases)"),
        ("SELECT CAST('x' || price AS INT) AS p, user_id, ts FROM purchases", "must run over events of its inputs"),
        ("SELECT map() AS m, user_id, ts FROM purchases", "must have columns that JSON can hold"),
    ],
)
def test_a_reference_is_named_where_it_stands(tmp_path: Path, wrong: str, words: str) -> None:
    """At the top of the file, or in the table of its output."""
    above, below = (REFERENCE, f'reference = "{wrong}"\n'), (OUTPUT, f'[output]\nreference = "{wrong}"')
    assert f"program.toml: reference: {words}" in problem_of(written(tmp_path, above))
    assert f"program.toml: output.reference: {words}" in problem_of(written(tmp_path, (REFERENCE, ""), below))


@pytest.mark.parametrize(
    ("unit", "time", "meant"),
    [("s", 1_700_000_000_123, "ms"), ("us", 1_700_000_000_123, "ms"), ("ms", 1_700_000_000, "s")],
)
def test_the_unit_of_a_sample(tmp_path: Path, unit: str, time: int, meant: str) -> None:
    """By the times that its messages have."""
    rows = [{"user_id": number % 3, "price": 95, "ts": time + number} for number in range(20)]
    (tmp_path / "sample.jsonl").write_text("\n".join(map(json.dumps, rows)))
    changes = (
        (HEADER + FIELDS, ""), ('time = "ts"', f'time = "ts"\nsample = "../sample.jsonl"\ntime_unit = "{unit}"'),
    )  # fmt: skip
    message = problem_of(written(tmp_path, *changes))
    words = ("inputs.purchases.time_unit: must be the unit of the times in its sample", str(time + 19))
    assert all(each in message for each in (*words, f'try: time_unit = "{meant}"')), message


def test_a_sample_whose_times_are_of_no_unit(tmp_path: Path) -> None:
    """They may count from another day."""
    rows = [{"user_id": number % 3, "price": 95, "ts": number} for number in range(20)]
    (tmp_path / "sample.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert program(written(tmp_path, (HEADER + FIELDS, ""), ('time = "ts"', 'time = "ts"\nsample = "../sample.jsonl"')))
