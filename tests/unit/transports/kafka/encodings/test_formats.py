"""The formats of a program's messages: what is written is what is read, and what is read is by their specifications."""

import base64
import json
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.schema import ColumnTypes
from streamgauge.transports.kafka.encodings.api import Foreign, ProgramFormat
from streamgauge.transports.kafka.encodings.avro import Avro, leaves
from streamgauge.transports.kafka.encodings.choice import format_of
from streamgauge.transports.kafka.encodings.protobuf import fields_of
from streamgauge.transports.topic_names import InputTopic, MessageFormat, OutputTopic, ProgramTopics

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


def descriptor_set(*messages: str) -> str:
    """What `protoc` makes of a file with these messages, each a purchase, in base64. Fields have presence."""
    file = FileDescriptorProto(name="shop.proto", package="shop", syntax="proto2")
    for name in messages:
        message = file.message_type.add(name=name)
        user = message.nested_type.add(name="User")
        for number, (field, kind) in enumerate((("id", Field.TYPE_SINT64), ("city", Field.TYPE_STRING)), 1):
            user.field.add(name=field, number=number, type=kind, label=Field.LABEL_OPTIONAL)
        path = f".shop.{name}.User"
        message.field.add(name="user", number=1, type=Field.TYPE_MESSAGE, type_name=path, label=Field.LABEL_OPTIONAL)
        for number, (field, kind) in enumerate((("dear", Field.TYPE_BOOL), ("price", Field.TYPE_DOUBLE)), 2):
            message.field.add(name=field, number=number, type=kind, label=Field.LABEL_OPTIONAL)
    return base64.b64encode(FileDescriptorSet(file=[file]).SerializeToString()).decode()


FORMATS = {
    "protobuf": MessageFormat("protobuf", schema=descriptor_set("Purchase")),
    "protobuf-confluent": MessageFormat(
        "protobuf-confluent", schema=descriptor_set("Other", "Purchase"), schema_id=7, message="shop.Purchase"
    ),
    "json": MessageFormat(),
    "csv": MessageFormat("csv", ";"),
    "avro": MessageFormat("avro", schema=SCHEMA),
    "avro-confluent": MessageFormat("avro-confluent", schema=SCHEMA, schema_id=7),
}
ROW = {"user.id": 7, "user.city": "Ulm", "dear": True, "price": 1.5}
PLAIN_AVRO = b"\x0e\x02\x06Ulm\x00\x01\x02" + bytes.fromhex("000000000000f83f")


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


@pytest.mark.parametrize(("kind", "change", "message"), [
    ("json", {}, b'{"user":{"id":7,"city":"Ulm"},"dear":true,"price":1.5}'),
    ("csv", {"user.city": 'U;"m'}, b'7;"U;""m";true;1.5'),
    ("csv", {"user.city": None}, b"7;;true;1.5"),
    ("csv", {"user.city": ""}, b'7;"";true;1.5'),
    ("avro", {}, PLAIN_AVRO),
    ("avro-confluent", {}, b"\0\0\0\0\x07" + PLAIN_AVRO),
    ("avro", {"user.city": None, "dear": None, "price": None}, b"\x0e\x00\x02\x00"),
])  # fmt: skip
def test_messages_by_hand(kind: str, change: dict[str, Any], message: bytes) -> None:
    """A dot in a name is a level; CSV quotes what it must, and a null is empty. Avro by its specification: zigzag
    numbers, branches of unions in their order, texts with their length; Confluent's five bytes before it.
    """
    assert written(format_of(FORMATS[kind], COLUMNS), [ROW | change]) == [message]


def test_empty_bytes_are_no_null_in_csv() -> None:
    """A pair of quotes, as of an empty text."""
    raw = format_of(FORMATS["csv"], (("n", "bigint"), ("raw", "binary")))
    batch = pa.record_batch({"n": [1, 2, 3], "raw": pa.array([b"", None, b"\0"], pa.binary())})
    assert raw.messages(raw.encode(batch)) == [b'1;""', b"2;", b"3;AA=="]


def test_protobuf_by_its_specification() -> None:
    """Tags, zigzag numbers, lengths; Confluent's header has the place of the message in its file."""
    plain = bytes.fromhex("0a07" + "080e" + "1203") + b"Ulm" + bytes.fromhex("1001" + "19000000000000f83f")
    by, framed = (format_of(FORMATS[kind], COLUMNS) for kind in ("protobuf", "protobuf-confluent"))
    assert written(by, [ROW]) == [plain]
    assert written(framed, [ROW]) == [b"\0\0\0\0\x07" + b"\x02\x02" + plain]
    assert framed.fields(b"\0\0\0\0\x09\0" + plain) == ROW  # the first message of a file
    assert by.fields(b"") == dict.fromkeys(ROW)
    for message in (plain, b"\0\0\0\0\x07", b"\0\0\0\0\x07\x80", b"\0\0\0\0\x07\0" + plain[:-1]):
        assert framed.table([message], schema_of(COLUMNS)) is None
        with pytest.raises(Foreign):
            framed.fields(message)


@pytest.mark.parametrize(
    ("schema", "message", "words"),
    [
        ("nonsense", "", "it is no descriptor set"),
        (descriptor_set("A", "B"), "", "shop.A, shop.B: name one"),
        (descriptor_set("A"), "shop.C", "it lacks shop.C"),
    ],
)
def test_descriptor_sets_that_name_no_message(schema: str, message: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        fields_of(schema, message)


@pytest.mark.parametrize("framed", [False, True])
def test_foreign_avro_is_found(framed: bool) -> None:
    """A message that is cut short anywhere, or longer, or of another branch, between two right ones."""
    by = Avro(COLUMNS, SCHEMA, 7 if framed else None)
    (right,) = written(by, [ROW])
    for message in [right[:end] for end in range(len(right))] + [right + b"\0", right[:-9] + b"\x06" + right[-8:]]:
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
    ("schema", "rule"),
    [
        ("{", "it is not JSON"),
        ('"string"', "it is not a record"),
        (SCHEMA.replace('["null", "string"]', '["null", "string", "long"]'), "user.city is a union of other than null"),
        (SCHEMA.replace('["null", "string"]', '{"type": "array", "items": "long"}'), "user.city is"),
    ],
)
def test_schemas_that_are_not_supported(schema: str, rule: str) -> None:
    """Named by their field."""
    with pytest.raises(ValueError, match=rule):
        leaves(schema)


def test_topics_have_names_of_the_run_unless_the_program_gives_them() -> None:
    """And streams carry their planned time unless it wants that of sending."""
    topics = ProgramTopics(
        {"purchases": InputTopic("orders", FORMATS["avro"], "sent")},
        {"totals": OutputTopic({"n": "bigint"}, ("n",), "ts"), "other": OutputTopic({"n": "bigint"})},
    )  # fmt: skip
    assert topics.input_topics("r") == {"purchases": "orders"}
    assert topics.planned == set()
    outputs = {"totals": "streamgauge-r.results-totals", "other": "streamgauge-r.results-other"}
    assert topics.output_topics("r") == outputs
