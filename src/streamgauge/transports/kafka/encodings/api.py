"""What encodings have in common: writing events as messages, decoding them in an engine, and reading results."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from struct import Struct
from typing import Any

import pyarrow as pa

from streamgauge.core.schema import ColumnTypes

HEADER = Struct(">bI")
"""That of Confluent's framing: a zero byte and the id of the schema."""
UNFRAMED = "it has no header of Confluent's framing: a zero byte and the id of a schema"


class Encoding(ABC):
    """Encodes batches of events ahead of time; slices are sent when due.

    Args:
        columns: (name, SQL type) of each field.
    """

    def __init__(self, columns: ColumnTypes) -> None:
        self.columns = columns

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.columns]

    @abstractmethod
    def encode(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        """One message per event, shape (rows,); `batch` has the columns by name."""

    def messages(self, encoded: pa.BinaryArray) -> list[bytes]:
        """The result of `encode`, or a slice of it, as a list for a Kafka client."""
        return encoded.to_pylist()


class EngineEncoding(Encoding):
    """An encoding that an engine decodes by expressions of SQL."""

    @abstractmethod
    def opened(self, value: str) -> str:
        """SQL that parses a message in the column `value` once."""

    @abstractmethod
    def expressions(self, opened: str) -> dict[str, str]:
        """Column to SQL that extracts it from the parsed column `opened`."""


class ProgramFormat(Encoding):
    """A format of a program's messages, in which its results are read too.

    Dots in a name are levels of nesting. Results have no timestamps, which are numbers in messages.
    """

    words: str
    """What a message is, for people."""

    def table(self, values: Sequence[bytes], schema: pa.Schema) -> pa.Table | None:
        """The fields of all messages by `schema`; None unless every message surely is one of this format."""
        try:
            return self.parsed(values, schema)
        except (Foreign, OverflowError, UnicodeDecodeError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None

    @abstractmethod
    def parsed(self, values: Sequence[bytes], schema: pa.Schema) -> pa.Table | None:
        """As `table`. Instead of None it may raise Foreign, an error of Arrow, or that a text is not UTF-8."""

    @abstractmethod
    def fields(self, value: bytes) -> dict[str, Any]:
        """The fields that one message has. A value of a wrong type stays as it is. Raises Foreign."""


def cast_to(schema: pa.Schema, columns: Mapping[str, Any]) -> pa.Table:
    """The columns with the types of a schema. Raises an error of Arrow if a value does not fit."""
    return pa.table({field.name: columns[field.name].cast(field.type) for field in schema}, schema=schema)


class Foreign(Exception):
    """The reason why a message is no result."""


BOM = b"\xef\xbb\xbf"
"""A byte order mark. Some parsers skip it and others do not, so a message that begins with one is foreign."""


def unmarked_text_of(value: bytes) -> str:
    """A message as text without a byte order mark. Raises Foreign."""
    if value.startswith(BOM):
        raise Foreign("it begins with a byte order mark")
    return text_of(value)


def text_of(value: bytes) -> str:
    """A message as text. Raises Foreign."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Foreign("it is not UTF-8") from None
