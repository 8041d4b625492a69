"""The JSON Schema of program files: it takes what the reader takes, and finds what an editor can find."""

import re
from pathlib import Path

import pytest

from streamgauge.user_workloads.program_fields import program_schema
from tests.docs.helpers_pages import fences
from tests.helpers_modules import ROOT
from tests.unit.helpers_file_schemas import assert_well_formed, found, unexplained
from tests.unit.user_workloads.helpers_programs import GOOD

PROGRAMS = sorted((ROOT / "examples").rglob("program.toml"))
SCHEMA = program_schema()


def changed(old: str, new: str) -> list[str]:
    """What is found in the good file with a text replaced."""
    assert old in GOOD
    return found(SCHEMA, GOOD.replace(old, new, 1))


def test_the_schema_is_one() -> None:
    assert_well_formed(SCHEMA)


def test_every_key_is_explained() -> None:
    for table in (SCHEMA, SCHEMA["$defs"]["InputTable"], SCHEMA["$defs"]["OutputTable"]):
        assert unexplained(table) == []


@pytest.mark.parametrize("path", PROGRAMS, ids=[path.parent.name for path in PROGRAMS])
def test_shipped_files_are_valid(path: Path) -> None:
    assert found(SCHEMA, path.read_text()) == []


def test_the_file_in_the_reference_is_valid() -> None:
    """As it is shown, and with the lines that it shows as comments."""
    page = (ROOT / "docs" / "reference" / "wire.md").read_text()
    (shown,) = [code for _, language, code in fences(page) if language == "toml"]
    assert found(SCHEMA, shown) == []
    whole = re.sub(r"^# (?=[\w.]+ = |\[)", "", shown, flags=re.MULTILINE)
    assert whole.count("#") < shown.count("#")
    assert found(SCHEMA, whole) == []


@pytest.mark.parametrize(("old", "new"), [
    ("command =", 'progress = "group"\ncommand ='), ("command =", 'timeout = "2m"\ncommand ='),
    ("command =", 'timeout = 60\nprogress = { spark_checkpoint = ["{scratch}/checkpoint"] }\ncommand ='),
    ("[output]", 'address.city = { kind = "text", words = 1 }\n[output]'),
    ("[output]", 'size = { kind = "choice", values = ["a", "b"], weights = [3, 1] }\n[output]'),
    ("[output]", "[outputs.dear]"),
])  # fmt: skip
def test_each_form_of_a_value_is_valid(old: str, new: str) -> None:
    assert changed(old, new) == []


@pytest.mark.parametrize(("old", "new", "place"), [
    ("command =", "comand =", "(file)"), ("time =", "times =", "inputs.purchases"),
    ("reach =", "reachs =", "output"), ("[output]", "[outputs]", "outputs.keys"),
    ("domain =", "domian =", "inputs.purchases.fields.user_id"),
    ('kind = "integer"', 'kind = "int"', "inputs.purchases.fields.price"),
    ('kind = "integer", ', "", "inputs.purchases.fields.price"),
    ("low = 1", "low = 1.5", "inputs.purchases.fields.price"),
    ('kind = "program"', 'kind = "programme"', "kind"), ("command =", "ready = true\ncommand =", "ready"),
    ("command =", 'progress = "offsets"\ncommand =', "progress"),
    ("command =", 'timeout = "2 mins"\ncommand =', "timeout"),
    ("[output]", "share = 1.5\n[output]", "inputs.purchases.fields.share"),
])  # fmt: skip
def test_a_fault_is_found(old: str, new: str, place: str) -> None:
    """Misspelt keys in each kind of table, wrong choices and wrong types."""
    assert place in changed(old, new)


def test_a_file_without_inputs_is_found() -> None:
    assert found(SCHEMA, 'kind = "program"') == ["(file)"]
    assert found(SCHEMA, 'kind = "program"\ninputs = {}') == ["inputs"]
