"""What encodings have in common: writing events as messages, decoding them in an engine, and reading results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from streamgauge.core.schema import ColumnTypes

if TYPE_CHECKING:
    import pyarrow as pa


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
        values: list[bytes] = encoded.to_pylist()
        return values


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

    @abstractmethod
    def table(self, values: Sequence[bytes], schema: pa.Schema) -> pa.Table | None:
        """The fields of all messages by `schema`; None unless every message surely is one of this format."""

    @abstractmethod
    def fields(self, value: bytes) -> dict[str, Any]:
        """The fields that one message has. A value of a wrong type stays as it is. Raises Foreign."""


class Foreign(Exception):
    """The reason why a message is no result."""


BOM = b"\xef\xbb\xbf"
"""A byte order mark. Some parsers skip it and others do not, so a message that begins with one is foreign."""


def any_marked(lines: bytes) -> bool:
    """Whether one of the messages that these lines hold begins with a byte order mark."""
    return lines.startswith(BOM) or b"\n" + BOM in lines


def unmarked_text_of(value: bytes) -> str:
    """A message as text without a byte order mark. Raises Foreign."""
    if value.startswith(BOM):
        raise Foreign("it begins with a byte order mark")
    return text_of(value)


def is_text(value: bytes) -> bool:
    """Whether it is UTF-8."""
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def text_of(value: bytes) -> str:
    """A message as text. Raises Foreign."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Foreign("it is not UTF-8") from None
