"""The formats of a program's messages: what is written is what is read, and what is read is by their specifications."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.schema import ColumnTypes
from streamgauge.transports.kafka.encodings.api import Foreign, ProgramFormat
from streamgauge.transports.kafka.encodings.avro import Avro, leaves
from streamgauge.transports.kafka.encodings.choice import format_of
from streamgauge.transports.spi import EndpointConfig
from streamgauge.transports.topics import InputTopic, MessageFormat, OutputTopic, ProgramTopics

ARROW = {"bigint": pa.int64(), "double": pa.float64(), "boolean": pa.bool_(), "string": pa.string()}
COLUMNS: ColumnTypes = (("user.id", "bigint"), ("user.city", "string"), ("dear", "boolean"), ("price", "double"))
SCHEMA = json.dumps({
    "type": "record", "name": "purchase", "fields": [
        {"name": "user", "type": {"type": "record", "name": "user", "fields": [
            {"name": "id", "type": "long"},
            {"name": "city", "type": ["null", "string"]},
        ]}},
        {"name": "dear", "type": ["boolean", "null"]},
        {"name": "price", "type": ["null", "double"]},
    ],
})  # fmt: skip
FORMATS = {
    "json": MessageFormat(),
    "csv": MessageFormat("csv", ";"),
    "avro": MessageFormat("avro", schema=SCHEMA),
    "avro-confluent": MessageFormat("avro-confluent", schema=SCHEMA, schema_id=7),
}
ROW = {"user.id": 7, "user.city": "Ulm", "dear": True, "price": 1.5}


def schema_of(columns: ColumnTypes) -> pa.Schema:
    return pa.schema([(name, ARROW[kind]) for name, kind in columns])


def written(by: ProgramFormat, rows: list[dict[str, Any]]) -> list[bytes]:
    table = pa.Table.from_pylist(rows, schema_of(by.columns)).combine_chunks()
    return by.messages(by.encode(table.to_batches()[0]))


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n"), max_size=9)
ROWS = st.fixed_dictionaries({
    "user.id": st.integers(-(2**63), 2**63 - 1),
    "user.city": st.none() | TEXTS,
    "dear": st.none() | st.booleans(),
    "price": st.none() | st.floats(allow_nan=False, allow_infinity=False),
})  # fmt: skip


@pytest.mark.parametrize("kind", FORMATS)
@given(rows=st.lists(ROWS, min_size=1, max_size=5))
def test_what_is_written_is_read(kind: str, rows: list[dict[str, Any]]) -> None:
    """By whole slices and one by one."""
    by = format_of(FORMATS[kind], COLUMNS)
    messages = written(by, rows)
    table = by.table(messages, schema_of(COLUMNS))
    assert table is not None
    assert table.to_pylist() == rows
    assert [by.fields(message) for message in messages] == rows


def test_json_is_nested() -> None:
    """A dot in a name is a level."""
    (message,) = written(format_of(FORMATS["json"], COLUMNS), [ROW])
    assert json.loads(message) == {"user": {"id": 7, "city": "Ulm"}, "dear": True, "price": 1.5}


def test_csv_quotes_what_it_must() -> None:
    """A null is empty, and an empty text or empty bytes are a pair of quotes."""
    by = format_of(FORMATS["csv"], COLUMNS)
    rows = [ROW | {"user.city": text} for text in ('U;"m', None, "")]
    assert written(by, rows) == [b'7;"U;""m";true;1.5', b"7;;true;1.5", b'7;"";true;1.5']
    raw = format_of(FORMATS["csv"], (("n", "bigint"), ("raw", "binary")))
    batch = pa.record_batch({"n": [1, 2, 3], "raw": pa.array([b"", None, b"\0"], pa.binary())})
    assert raw.messages(raw.encode(batch)) == [b'1;""', b"2;", b"3;AA=="]


def test_avro_by_its_specification() -> None:
    """Zigzag numbers, branches of unions in their order, texts with their length; Confluent's five bytes before it."""
    plain = bytes.fromhex("0e" + "02" + "06") + b"Ulm" + bytes.fromhex("00" + "01" + "02" + "000000000000f83f")
    assert written(format_of(FORMATS["avro"], COLUMNS), [ROW]) == [plain]
    assert written(format_of(FORMATS["avro-confluent"], COLUMNS), [ROW]) == [b"\0\0\0\0\x07" + plain]
    null = bytes.fromhex("0e" + "00" + "02" + "00")
    nothing = ROW | {"user.city": None, "dear": None, "price": None}
    assert written(format_of(FORMATS["avro"], COLUMNS), [nothing]) == [null]


@pytest.mark.parametrize("framed", [False, True])
def test_foreign_avro_is_found(framed: bool) -> None:
    """A message that is cut short anywhere, or longer, or of another branch, between two right ones."""
    by = Avro(COLUMNS, SCHEMA, 7 if framed else None)
    (right,) = written(by, [ROW])
    wrong = [right[:end] for end in range(len(right))] + [right + b"\0", right[:-9] + b"\x06" + right[-8:]]
    for message in wrong:
        assert by.table([right, message, right], schema_of(COLUMNS)) is None, message
        with pytest.raises(Foreign):
            by.fields(message)
    assert by.table([right, right], schema_of(COLUMNS)) is not None


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=5))
def test_any_bytes_are_read_or_foreign(messages: list[bytes]) -> None:
    """Nothing else happens, and both ways agree."""
    by = Avro(COLUMNS, SCHEMA)
    table = by.table(messages, schema_of(COLUMNS))
    try:
        rows = [by.fields(message) for message in messages]
    except Foreign:
        assert table is None
        return
    assert table is not None
    assert str(table.to_pylist()) == str(rows)  # as text, since NaN equals nothing


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("{", "it is not JSON"),
        ('"string"', "it is not a record"),
        (SCHEMA.replace('["null", "string"]', '["null", "string", "long"]'), "user.city is a union of other than null"),
        (SCHEMA.replace('["null", "string"]', '{"type": "array", "items": "long"}'), "user.city is"),
    ],
)
def test_schemas_that_are_not_supported(schema: str, words: str) -> None:
    """Named by their field."""
    with pytest.raises(ValueError, match=words):
        leaves(schema)


def test_an_endpoint_with_topics_is_plain_data() -> None:
    """Through JSON and back they are the same."""
    topics = ProgramTopics(
        {"purchases": InputTopic("orders", FORMATS["avro"], "sent")},
        {"totals": OutputTopic({"n": "bigint"}, ("n",), "ts"), "other": OutputTopic({"n": "bigint"})},
        group="mine", starts=(("orders", 0, 5),),
    )  # fmt: skip
    endpoint = EndpointConfig("", 0, "r", {"brokers": "b:1"}, topics)
    assert EndpointConfig.from_plain(json.loads(json.dumps(asdict(endpoint)))) == endpoint
    assert topics.input_topics("r") == {"purchases": "orders"}
    assert topics.planned == set()
    outputs = {"totals": "streamgauge-r.results-totals", "other": "streamgauge-r.results-other"}
    assert topics.output_topics("r") == outputs
