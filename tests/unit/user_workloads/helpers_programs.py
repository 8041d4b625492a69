"""The file of a program that is right, changed by tests, and what it is answered."""

from pathlib import Path

import pytest

from streamgauge.core.errors import JobError
from streamgauge.user_workloads.program import program

GOOD = """
kind = "program"
command = ["{python}", "consumer.py", "--from={input}"]
reference = "SELECT user_id, price, ts FROM purchases WHERE price > 90"

[inputs.purchases]
key = "user_id"
time = "ts"

[inputs.purchases.fields]
user_id = { kind = "key", domain = 1000 }
price = { kind = "integer", low = 1, high = 100 }

[output]
keys = ["user_id", "ts"]
time = "ts"
reach = "0s"
"""
FIELDS = GOOD.partition("[inputs.purchases.fields]")[2].partition("[output]")[0]
SCHEMA = """{"type": "record", "name": "purchase", "fields": [
  {"name": "user_id", "type": "long"}, {"name": "price", "type": ["null", "int"]}, {"name": "ts", "type": "long"}]}"""
TIMELESS = ('time = "ts"\nreach', 'latency_key = ["user_id", "ts"]\nreach')
"""Results that carry no time, but fields of their record."""


def written(folder: Path, *changes: tuple[str, str], name: str = "program.toml") -> Path:
    """The good file, in the folder `dear`, with texts replaced, each of which it must have.

    Beside it are its empty script and two schemas, each with another name for one of its fields.
    """
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = folder / "dear" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.with_name("consumer.py").touch()
    for schema, field, other in (("other.avsc", "user_id", "user"), ("more.avsc", '"price"', '"cost"')):
        path.with_name(schema).write_text(SCHEMA.replace(field, other))
    return path


def problem_of(path: Path) -> str:
    """The one problem of a bad file."""
    with pytest.raises(JobError) as refusal:
        program(path)
    assert [bool(problem.way_out) for problem in refusal.value.problems] == [True], refusal.value
    return str(refusal.value)
