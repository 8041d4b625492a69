"""Which messages are results of a program, and what becomes of every other one."""

import json
from dataclasses import replace
from typing import Literal

import pytest

from streamgauge.core.clock import US
from streamgauge.transports.kafka.program_results import Parsed, ResultParser
from streamgauge.transports.topic_names import MessageFormat, OutputTopic

NOW_US = 1_800_000_000 * US
NOW_MS = NOW_US // 1000
TYPES = {"user_id": "bigint", "price": "double", "city": "string", "ts": "bigint"}
FORMAT = OutputTopic(TYPES, ("user_id", "ts"), "ts")
RIGHT = {"user_id": 7, "price": 1.5, "city": "Ulm", "ts": NOW_MS}


def parsed(*values: object, of: OutputTopic = FORMAT) -> Parsed:
    """Objects as JSON, other values as they are."""
    raw = [json.dumps(one).encode() if isinstance(one, dict) else one for one in values]
    return ResultParser(of).parse(raw, list(range(len(raw))), NOW_US)


def rows(outcome: Parsed, *names: str) -> list[tuple[object, ...]]:
    return list(zip(*(outcome.results.column(name).to_pylist() for name in names), strict=True))


def test_results_get_their_event_time_and_their_stamp() -> None:
    """The time field in its unit, as microseconds; fields that are not declared are left out."""
    outcome = parsed(RIGHT | {"more": [1]}, RIGHT | {"price": 2, "city": None})
    assert rows(outcome, "price", "city", "event_time", "emission_time") == [
        (1.5, "Ulm", NOW_US, 0), (2.0, None, NOW_US, 1)
    ]  # fmt: skip
    assert (outcome.foreign, outcome.first) == (0, "")


def test_a_window_counts_from_its_end() -> None:
    """Without a time of its own a result is as late as its window's last microsecond."""
    of = OutputTopic({"n": "bigint", "closed": "timestamp"}, ("closed",), "", "closed")
    outcome = parsed({"n": 1, "closed": NOW_MS}, of=of)
    ((closed, window_end, event_time),) = rows(outcome, "closed", "window_end", "event_time")
    assert closed == window_end
    assert event_time == NOW_US - 1


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "it has no value: a tombstone"),
        (b"", "it is empty"),
        (b"\x00\x01binary", "it is not JSON"),
        (json.dumps(RIGHT).encode("utf-16"), "it is not UTF-8"),
        (b'"text"', "it is a text, not an object"),
        (b"null", "it is null, not an object"),
        (b"[1]", "it is an array, not an object"),
        ({name: value for name, value in RIGHT.items() if name != "user_id"}, "it has no field user_id"),
        (RIGHT | {"ts": None}, "its ts is null"),
        (RIGHT | {"user_id": "7"}, "its user_id is a text, not a whole number"),
        (RIGHT | {"user_id": 7.5}, "its user_id is a number, not a whole number"),
        (RIGHT | {"user_id": 2**63}, "its user_id is too large for a bigint"),
        (RIGHT | {"user_id": 1e300}, "its user_id is too large for a bigint"),
        (RIGHT | {"city": "\ud800"}, "its city is a text with half a surrogate pair"),
        (b"[" * 200_000, "it is nested too deeply"),
        (RIGHT | {"price": True}, "its price is a truth value, not a number"),
        (RIGHT | {"city": 5}, "its city is a number, not a text"),
        (RIGHT | {"ts": NOW_MS // 1000}, "its ts is in 1970 in the declared time_unit; it fits s"),
        (RIGHT | {"ts": 5}, "its ts is in 1970 in the declared time_unit"),
        (b"\xef\xbb\xbf" + json.dumps(RIGHT).encode(), "it begins with a byte order mark"),
        (RIGHT | {"ts": NOW_US}, "its ts is out of range in the declared time_unit; it fits us"),
    ],
)
def test_a_foreign_message_is_counted_and_named(value: object, reason: str) -> None:
    """Between two results, which stay."""
    outcome = parsed(RIGHT, value, RIGHT)
    assert (outcome.results.num_rows, outcome.foreign) == (2, 1)
    assert outcome.first.endswith(f"({reason})")
    assert outcome.results.column("emission_time").to_pylist() == [0, 2]


def test_only_the_first_foreign_message_is_shown() -> None:
    """And no more than its beginning."""
    outcome = parsed(b"x" * 500, b"y")
    assert outcome.foreign == 2
    assert len(outcome.first) < 200


def test_a_message_of_several_lines() -> None:
    """Written over lines it is one result; two results in one message are none."""
    pretty = json.dumps(RIGHT, indent=2).encode()
    two = b"\n".join([json.dumps(RIGHT).encode()] * 2)
    assert parsed(pretty, RIGHT).results.num_rows == 2
    assert parsed(two, RIGHT).foreign == 1
    assert parsed(b'{"id":1}{"id":2}', b"", of=SAME).foreign == 2  # as many objects as messages


def test_whole_numbers_may_have_a_point() -> None:
    """As JavaScript or a JSON library of doubles writes them."""
    assert rows(parsed(RIGHT | {"user_id": 7.0}), "user_id") == [(7,)]


def test_arrays() -> None:
    """Of plain values."""
    of = OutputTopic({"ids": "array<bigint>", "ts": "bigint"}, ("ts",), "ts")
    outcome = parsed(*({"ids": ids, "ts": NOW_MS} for ids in ([1, 2], ["a"], 3)), of=of)
    assert (rows(outcome, "ids"), outcome.foreign) == ([([1, 2],)], 2)


def test_fields_of_objects_within() -> None:
    """A dot in a name is a level; what is no object there is named."""
    of = OutputTopic({"user.id": "bigint", "user.home.city": "string", "ts": "bigint"}, ("user.id", "ts"), "ts")
    right = {"user": {"id": 7, "home": {"city": "Ulm"}}, "ts": NOW_MS}
    assert rows(parsed(right, right | {"user": {"id": 8}}, of=of), "user.id", "user.home.city") == [
        (7, "Ulm"), (8, None)
    ]  # fmt: skip
    strange = parsed(right | {"user": 7}, right | {"user": {}}, right, of=of)
    assert (strange.results.num_rows, strange.foreign) == (1, 2)
    assert strange.first.endswith("(its user is a number, not an object)")


CSV = OutputTopic({"id": "bigint", "city": "string", "ts": "bigint"}, ("id", "ts"), "ts", format=MessageFormat("csv"))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f"7,Ulm,{NOW_MS},9", "it has 4 fields, not 3"),
        ("", "it has 0 fields, not 3"),
        (f"x,Ulm,{NOW_MS}", "its id is a text, not a whole number"),
        (f",Ulm,{NOW_MS}", "its id is null"),
        ('7,"Ulm', "it is not CSV: unexpected end of data"),
        (f"\ufeff7,Ulm,{NOW_MS}", "it begins with a byte order mark"),
    ],
)
def test_a_foreign_line_of_csv(line: str, reason: str) -> None:
    """Between two results, one of them with a quoted text and an end of line."""
    outcome = parsed(f'7,"U,lm",{NOW_MS}\r\n'.encode(), line.encode(), f"8,,{NOW_MS}".encode(), of=CSV)
    assert rows(outcome, "id", "city") == [(7, "U,lm"), (8, None)]
    assert (outcome.foreign, outcome.first.endswith(f"({reason})")) == (1, True), outcome.first


def test_texts_have_no_time() -> None:
    """Their event time is null, so they are in no latency."""
    of = OutputTopic({"line": "string"}, format=MessageFormat("text"))
    outcome = parsed(b"one", "zwei €".encode(), b"\xff", of=of)
    assert rows(outcome, "line", "event_time") == [("one", None), ("zwei €", None)]
    assert outcome.first.endswith("(it is not UTF-8)")


@pytest.mark.parametrize("value", [json.dumps(RIGHT).encode(), f"7,Ulm,{NOW_MS}".encode()], ids=["json", "csv"])
def test_a_byte_order_mark_is_foreign_wherever_it_comes(value: bytes) -> None:
    """Also in the first message of a batch, whose mark parsers of files skip."""
    of = CSV if value.startswith(b"7") else FORMAT
    outcome = parsed(b"\xef\xbb\xbf" + value, value, of=of)
    assert (outcome.results.num_rows, outcome.foreign) == (1, 1)
    assert outcome.first.endswith("(it begins with a byte order mark)")


SAME = OutputTopic({"id": "bigint", "city": "string", "dear": "boolean", "home.zip": "bigint"}, ("id",))


@pytest.mark.parametrize(
    ("kind", "message", "row"),
    [
        ("csv", b'7,"",true,1', (7, "", True, 1)),
        ("csv", b"7,,true,1", (7, None, True, 1)),
        ("csv", b'7,"U""l,m",,', (7, 'U"l,m', None, None)),
        ("csv", b'7,"U"lm,false,"1"', (7, "Ulm", False, 1)),
        ("csv", b'7,Ulm,true,""', (7, "Ulm", True, None)),
        ("csv", b"0x1F,Ulm,true,1", (31, "Ulm", True, 1)),
        ("csv", b"7,Ulm,1,1", None),
        ("csv", b"7,Ulm,TRUE,1", None),
        ("csv", b'7,"Ulm,true,1', None),
        ("json", b'{"id":7,"city":"\xff"}', None),
        ("json", b'{"id":7,"other":"\xed\xa0\x80"}', None),
        ("json", b'{"id":7,"home":null}', (7, None, None, None)),
        ("json", b'{"id":7,"home":{}}', (7, None, None, None)),
        ("json", b'{"id":7,"home":{"zip":9}}', (7, None, None, 9)),
        ("json", b' {"id":7}', (7, None, None, None)),
    ],
)
def test_what_a_message_says_does_not_hang_on_those_beside_it(
    kind: Literal["json", "csv"], message: bytes, row: tuple[object, ...] | None
) -> None:
    """Messages are read in slices, and one by one in a slice with a foreign one."""
    of = replace(SAME, format=MessageFormat(kind))
    for beside in ([], [b"\xff"]):
        outcome = parsed(message, *beside, of=of)
        assert rows(outcome, *SAME.types) == ([] if row is None else [row]), beside
        assert outcome.foreign == len(beside) + (row is None)


AVRO = '{"type": "record", "name": "r", "fields": [{"name": "ts", "type": "long"}, {"name": "closed", "type": "long"}]}'


def varint(number: int) -> bytes:
    """Avro's whole number of at least 0."""
    number, encoded = number << 1, b""
    while number > 0x7F:
        encoded, number = encoded + bytes([number & 0x7F | 0x80]), number >> 7
    return encoded + bytes([number])


def message(kind: str, ts: int, closed: int) -> bytes:
    if kind == "avro":
        return varint(ts) + varint(closed)
    return f"{ts},{closed}".encode() if kind == "csv" else json.dumps({"ts": ts, "closed": closed}).encode()


DAY_MS = 86_400_000
FAR = pytest.mark.parametrize(("far_ms", "foreign"), [
    (DAY_MS, 0), (-DAY_MS, 0), (DAY_MS + 1, 1), (-DAY_MS - 1, 1),
])  # fmt: skip


@FAR
@pytest.mark.parametrize("kind", ["json", "csv", "avro"])
@pytest.mark.parametrize("field", ["ts", "closed"])
@pytest.mark.parametrize("beside", [[], [b"\xff"]])
def test_each_time_must_be_near(
    kind: Literal["json", "csv", "avro"], field: str, beside: list[bytes], far_ms: int, foreign: int
) -> None:
    """The event time and the end of the window, in every format, alone and beside a foreign message; to a day."""
    types = {"ts": "bigint", "closed": "bigint"}
    of = OutputTopic(types, ("ts", "closed"), "ts", "closed", format=MessageFormat(kind, schema=AVRO))
    outcome = parsed(message(kind, **{"ts": NOW_MS, "closed": NOW_MS, field: NOW_MS + far_ms}), *beside, of=of)
    assert (outcome.results.num_rows, outcome.foreign) == (1 - foreign, foreign + len(beside))
    assert not foreign or f"its {field} is in" in outcome.first


@FAR
def test_the_end_of_a_window_is_judged_itself(far_ms: int, foreign: int) -> None:
    """And not the event time that follows from it, which is a microsecond before."""
    of = OutputTopic({"closed": "bigint"}, ("closed",), "", "closed")
    assert parsed({"closed": NOW_MS + far_ms}, of=of).foreign == foreign
