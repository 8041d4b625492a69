"""What a program's file is answered that says something nearly right: one message that names what is meant."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from streamgauge.core.errors import JobError
from streamgauge.loadgen.plan import Plan
from streamgauge.user_workloads.program import program
from tests.helpers_recording import append_and_return
from tests.unit.user_workloads.test_program import GOOD

REFERENCE = 'reference = "SELECT user_id, price, ts FROM purchases WHERE price > 90"\n'
FIELDS = GOOD.partition("[inputs.purchases.fields]")[2].partition("[output]")[0]
COUNTS = 'reference = "SELECT user_id, price, count(*) AS n, max(ts) AS ts FROM purchases GROUP BY user_id, price"\n'


def written(folder: Path, *changes: tuple[str, str]) -> Path:
    """The good file with texts replaced, each of which it must have."""
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = folder / "program.toml"
    path.write_text(text)
    return path


def problem_of(folder: Path, *changes: tuple[str, str]) -> str:
    """The one problem of the changed file."""
    with pytest.raises(JobError) as refusal:
        program(written(folder, *changes))
    assert len(refusal.value.problems) == 1, refusal.value
    return str(refusal.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
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
    ],
)
def test_a_value_of_another_type(tmp_path: Path, old: str, new: str, words: tuple[str, ...]) -> None:
    """In the words of TOML, with a value that is right."""
    message = problem_of(tmp_path, (old, new))
    assert all(each in message for each in words), message
    assert not re.search(r"\b(str|int|list|tuple|dict)\b|--program", message)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ('values = "Paris"', ("city.values: must be an array, not a string", 'try: values = ["Paris", "Rome"]')),
        ('values = ["Paris", 5]', ("city.values: must be strings, integers, floats or booleans, all of one type",)),
        ("values = []", ("city.values: must be strings",)),
        ("values = [[1]]", ("city.values: must be strings",)),
        ('values = ["a", "b"], weights = 3', ("city.weights: must be an array, not an integer", "weights = [3, 1]")),
        ('values = ["a", "b"], weights = [3, "x"]', ("must be an array of numbers, not of a string",)),
        ('values = ["a", "b"], weights = [3, true]', ("must be an array of numbers, not of a boolean",)),
        ('values = ["a", "b"], weights = [3]', ("city.weights: must have a weight for each of the 2 values",)),
        ("values = [1, 99999999999999999999]", ("64 bits", 'try: values = ["Paris", "Rome"]')),
    ],
)
def test_a_choice_that_is_wrong(tmp_path: Path, given: str, words: tuple[str, ...]) -> None:
    """Its class speaks of Python."""
    city = f'price = {{ kind = "integer", low = 1, high = 100 }}\ncity = {{ kind = "choice", {given} }}'
    message = problem_of(tmp_path, ('price = { kind = "integer", low = 1, high = 100 }', city))
    assert all(each in message for each in words), message
    assert not re.search(r"tuple|Choice\(", message)


BIG = f'[output.big]\nkeys = ["user_id"]\n{REFERENCE}'
HEADER, OUTPUT = "[inputs.purchases.fields]", "[output]"


IN_S = ('[output]\nkeys = ["user_id", "ts"]\ntime = "ts"\n', '[output]\ntime_unit = "s"\nkeys = ["ts"]\ntime = "ts"\n')
WINDOW = "SELECT user_id, sum(price) AS spent, (ts // 2000 + 1) * 2 AS closed FROM purchases GROUP BY ALL"
BOTH = "SELECT user_id, max(ts) AS ts, ts // 2000 * 2000 + 2000 AS closed FROM purchases GROUP BY user_id, closed"
BOTH_TIMES = f'time_unit = "s"\nkeys = ["user_id", "closed"]\ntime = "ts"\nwindow_end = "closed"\nreference = "{BOTH}"'
OUT_OF_RANGE = "got 's, in which the time ts of a result is out of range'"
IN_1970 = "got 'us, in which the time ts of a result is in 1970'"


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
    ],
)  # fmt: skip
def test_a_setting_that_is_nearly_right(
    tmp_path: Path, changes: tuple[tuple[str, str], ...], words: tuple[str, ...]
) -> None:
    message = problem_of(tmp_path, *changes)
    assert all(each in message for each in words), message


@pytest.mark.parametrize(
    ("given", "words"),
    [
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
    ],
)
def test_progress_that_cannot_be_read(tmp_path: Path, given: str, words: tuple[str, ...]) -> None:
    """With a line that is right."""
    message = problem_of(tmp_path, ("reference =", f'ready = "started"\nprogress = {given}\nreference ='))
    assert all(each in message for each in words), message


def test_every_field_is_answered_at_once(tmp_path: Path) -> None:
    """One problem each."""
    with pytest.raises(JobError) as refusal:
        program(written(tmp_path, ("domain = 1000", "domain = true"), ("low = 1,", "low = 1.5,")))
    assert [one.setting.rpartition("fields.")[2] for one in refusal.value.problems] == ["user_id.domain", "price.low"]


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
    (tmp_path / "program.toml").write_text(
        GOOD.replace("[output]", 'raw = { kind = "payload", size_bytes = 3_000_000 }\n\n[output]', 1)
    )
    program(tmp_path / "program.toml")
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
    text = GOOD.replace(REFERENCE, f'reference = "{reference}"\n').replace('["user_id", "ts"]', '["user_id"]')
    if keys == "append":
        text = text.replace('time = "ts"\nreach', 'time = "ts"\ntime_unit = "s"\nreach')
    if keys == "update":
        text = text.replace('reach = "0s"', 'mode = "update"')
    (tmp_path / "program.toml").write_text(text)
    assert program(tmp_path / "program.toml")


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
    assert f"program.toml: reference: {words}" in problem_of(tmp_path, above)
    assert f"program.toml: output.reference: {words}" in problem_of(tmp_path, (REFERENCE, ""), below)


@pytest.mark.parametrize(
    ("unit", "time", "meant"),
    [("s", 1_700_000_000_123, "ms"), ("us", 1_700_000_000_123, "ms"), ("ms", 1_700_000_000, "s")],
)
def test_the_unit_of_a_sample(tmp_path: Path, unit: str, time: int, meant: str) -> None:
    """By the times that its messages have."""
    rows = [{"user_id": number % 3, "price": 95, "ts": time + number} for number in range(20)]
    (tmp_path / "sample.jsonl").write_text("\n".join(map(json.dumps, rows)))
    changes = (
        (HEADER + FIELDS, ""), ('time = "ts"', f'time = "ts"\nsample = "sample.jsonl"\ntime_unit = "{unit}"'),
    )  # fmt: skip
    message = problem_of(tmp_path, *changes)
    words = ("inputs.purchases.time_unit: must be the unit of the times in its sample", str(time + 19))
    assert all(each in message for each in (*words, f'try: time_unit = "{meant}"')), message


def test_a_sample_whose_times_are_of_no_unit(tmp_path: Path) -> None:
    """They may count from another day."""
    rows = [{"user_id": number % 3, "price": 95, "ts": number} for number in range(20)]
    (tmp_path / "sample.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert program(written(tmp_path, (HEADER + FIELDS, ""), ('time = "ts"', 'time = "ts"\nsample = "sample.jsonl"')))
