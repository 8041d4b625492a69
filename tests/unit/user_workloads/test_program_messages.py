"""What a program's file is answered that says something nearly right: one message that names what is meant."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.core.errors import JobError
from streamgauge.loadgen.plan import Plan
from streamgauge.user_workloads.program import program
from tests.unit.user_workloads.test_program import GOOD

REFERENCE = 'reference = "SELECT user_id, price, ts FROM purchases WHERE price > 90"\n'
FIELDS = GOOD.partition("[inputs.purchases.fields]")[2].partition("[output]")[0]
COUNTS = 'reference = "SELECT user_id, price, count(*) AS n, max(ts) AS ts FROM purchases GROUP BY user_id, price"\n'


def problem_of(folder: Path, *changes: tuple[str, str]) -> str:
    """The one problem of the good file with texts replaced, each of which it must have."""
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = folder / "program.toml"
    path.write_text(text)
    with pytest.raises(JobError) as caught:
        program(path)
    assert len(caught.value.problems) == 1, caught.value
    return str(caught.value)


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
    said = problem_of(tmp_path, (old, new))
    assert all(each in said for each in words), said
    assert not re.search(r"\b(str|int|list|tuple|dict)\b|--program", said)


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
    said = problem_of(tmp_path, ('price = { kind = "integer", low = 1, high = 100 }', city))
    assert all(each in said for each in words), said
    assert "tuple" not in said
    assert "Choice(" not in said


BIG = f'[output.big]\nkeys = ["user_id"]\n{REFERENCE}'
HEADER, OUTPUT = "[inputs.purchases.fields]", "[output]"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
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
    ],
)
def test_a_table_or_setting_in_another_place(
    tmp_path: Path, changes: tuple[tuple[str, str], ...], words: tuple[str, ...]
) -> None:
    """Its right name, or the place where it belongs."""
    said = problem_of(tmp_path, *changes)
    assert all(each in said for each in words), said


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ((('key = "user_id"', "share = 0.5"),), ("purchases.share: must be 1 for the only input", "leave it out")),
        ((('key = "user_id"', "share = 0"),), ("inputs.purchases.share: must be above 0",)),
        (
            (("[inputs.purchases]", f"[inputs.ads]\nshare = 0.4\n[inputs.ads.fields]{FIELDS}[inputs.purchases]"),
             ("{input}", "{input.ads}")),
            ("share of the inputs: shares must sum to 1, or be left out", "got 'ads: 0.4, purchases: none'"),
        ),
    ],
)  # fmt: skip
def test_shares(tmp_path: Path, changes: tuple[tuple[str, str], ...], words: tuple[str, ...]) -> None:
    """Of the only input, and of several."""
    said = problem_of(tmp_path, *changes)
    assert all(each in said for each in words), said


def test_every_field_is_answered_at_once(tmp_path: Path) -> None:
    """One problem each."""
    text = GOOD.replace("domain = 1000", "domain = true").replace("low = 1,", "low = 1.5,")
    (tmp_path / "program.toml").write_text(text)
    with pytest.raises(JobError) as caught:
        program(tmp_path / "program.toml")
    assert [one.setting.rpartition("fields.")[2] for one in caught.value.problems] == ["user_id.domain", "price.low"]


def test_the_only_input_may_say_that_it_has_everything(tmp_path: Path) -> None:
    """As the documents show it."""
    (tmp_path / "program.toml").write_text(GOOD.replace('key = "user_id"', "share = 1.0"))
    assert program(tmp_path / "program.toml")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ((("--from={input}", "--from={broker}"),), ("command: must be one of the placeholders {py", "{brokers}; ")),
        ((("--from={input}", "--from={broker}"),), ("to pass on the braces themselves: {{broker}}",)),
        ((("--from={input}", '{"in":{inptu}}'.replace('"', "'")),), ("try: {input};",)),
        (((OUTPUT, '[environment]\nWHERE = "{scratsh}/x"\n[output]'),), ("environment.WHERE: ", "{scratch}")),
    ],
)
def test_unknown_placeholders(tmp_path: Path, changes: tuple[tuple[str, str], ...], words: tuple[str, ...]) -> None:
    """They would reach the program as they are."""
    said = problem_of(tmp_path, *changes)
    assert all(each in said for each in words), said


@pytest.mark.parametrize("word", ["${HOME}", "{{print}}", "{'a': 1}", "{}", "{1}"])
def test_other_braces_are_the_programs(tmp_path: Path, word: str) -> None:
    """Shell variables, doubled braces and JSON."""
    (tmp_path / "program.toml").write_text(GOOD.replace("--from={input}", word))
    assert program(tmp_path / "program.toml")


IN_S = ('[output]\nkeys = ["user_id", "ts"]\ntime = "ts"\n', '[output]\ntime_unit = "s"\nkeys = ["ts"]\ntime = "ts"\n')
WINDOW = "SELECT user_id, sum(price) AS spent, (ts // 2000 + 1) * 2 AS closed FROM purchases GROUP BY ALL"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ((IN_S,), ("output.time_unit", "got 's, in which the time ts of a result is out of range'", '= "ms"')),
        (((OUTPUT, '[output]\ntime_unit = "us"'),), ("got 'us, in which the time ts of a result is in 1970'", '"ms"')),
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
    ],
)  # fmt: skip
def test_what_a_dry_run_finds(tmp_path: Path, changes: tuple[tuple[str, str], ...], words: tuple[str, ...]) -> None:
    """Of the reference, over some events."""
    said = problem_of(tmp_path, *changes)
    assert all(each in said for each in words), said


def test_a_dry_run_of_large_events_takes_fewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of as many bytes as a batch may have."""
    made: list[pa.RecordBatch] = []
    batch = Plan.batch

    def kept_batch(*given: Any) -> pa.RecordBatch:
        made.append(batch(*given))
        return made[-1]

    monkeypatch.setattr(Plan, "batch", kept_batch)
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


def test_one_unit_is_one_problem(tmp_path: Path) -> None:
    """Though both times of a result have it."""
    both = f'time_unit = "s"\nkeys = ["user_id", "closed"]\ntime = "ts"\nwindow_end = "closed"\nreference = "{BOTH}"'
    assert "output.time_unit" in problem_of(tmp_path, (REFERENCE, ""), ('keys = ["user_id", "ts"]\ntime = "ts"', both))


BOTH = "SELECT user_id, max(ts) AS ts, ts // 2000 * 2000 + 2000 AS closed FROM purchases GROUP BY user_id, closed"


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
    said = problem_of(tmp_path, *changes)
    assert "inputs.purchases.time_unit: must be the unit of the times in its sample" in said
    assert f'try: time_unit = "{meant}"' in said
    assert str(time + 19) in said


def test_a_sample_whose_times_are_of_no_unit(tmp_path: Path) -> None:
    """They may count from another day."""
    rows = [{"user_id": number % 3, "price": 95, "ts": number} for number in range(20)]
    (tmp_path / "sample.jsonl").write_text("\n".join(map(json.dumps, rows)))
    text = GOOD.replace(HEADER + FIELDS, "").replace('time = "ts"', 'time = "ts"\nsample = "sample.jsonl"', 1)
    (tmp_path / "program.toml").write_text(text)
    assert program(tmp_path / "program.toml")


def test_a_name_that_is_a_word_of_sql(tmp_path: Path) -> None:
    """DuckDB says only where it stumbled."""
    said = problem_of(tmp_path, ("user_id, price, ts FROM", "user_id, at FROM"))
    assert "a field whose name is a word of SQL needs double quotes" in said
