"""The JSON form of every workload's flow is that of its golden file, and conforms to the JSON Schema of the package."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from streamgauge.workloads.registry import names
from tests.helpers_application_variants import operators_of, ways_of
from tests.helpers_modules import ROOT, load

TOOL = load(ROOT / "tools" / "flow_documents.py")
SCHEMA = json.loads(TOOL.SCHEMA.read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def golden(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((TOOL.FLOWS / f"{name}.json").read_text())
    return document


def test_files_are_those_of_the_code() -> None:
    """Every workload has its golden file, and the schema is that of the form."""
    assert list(TOOL.stale()) == [], "run `python tools/flow_documents.py` and look at the difference"


@pytest.mark.parametrize("name", names())
def test_golden_files_conform(name: str) -> None:
    assert list(VALIDATOR.iter_errors(golden(name))) == []


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("fault", ["range", "kind", "missing", "extra"])
def test_the_schema_finds_a_fault(fault: str) -> None:
    document = golden("windowed_aggregation")
    (node,) = document["nodes"]
    match fault:
        case "range":
            node["window"]["range_us"] = "8s"
        case "kind":
            node["kind"] = "aggregate"
        case "missing":
            del node["keys"]
        case _:
            node["window_us"] = 8
    assert list(VALIDATOR.iter_errors(document)) != []


def test_a_changed_golden_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another range, a missing file and a file of no workload; what is right is not named."""
    for path in TOOL.FLOWS.glob("*.json"):
        (tmp_path / path.name).write_text(path.read_text())
    monkeypatch.setattr(TOOL, "FLOWS", tmp_path)
    assert TOOL.stale() == {}
    changed = tmp_path / "windowed_aggregation.json"
    changed.write_text(changed.read_text().replace("8000000", "9000000"))
    (tmp_path / "identity.json").unlink()
    (tmp_path / "gone.json").touch()
    assert {path.stem for path in TOOL.stale()} == {"windowed_aggregation", "identity", "gone"}


KNOWN: list[tuple[str, dict[str, Any]]] = [
    ("click_analytics", {"window": "10s"}),
    ("log_processing", {"volume_counter_window": 60}),
    ("smart_grid", {"second_range": "20s"}),
    ("spam_filter", {"training_share": 0}),
    ("voipstream", {"filter": "bloom"}),
    ("word_count", {"window": "10s"}),
]


@pytest.mark.parametrize(("workload", "parameter"), KNOWN, ids=[name for name, _ in KNOWN])
def test_a_parameter_that_makes_another_flow_is_found(workload: str, parameter: dict[str, Any]) -> None:
    """Choices, numbers of which the least makes it, and numbers of which the least is the default: off."""
    operators = operators_of(workload, parameter)
    assert operators != operators_of(workload, {})
    (name,) = parameter
    assert name in {each for other, parameters in ways_of(workload) if other == operators for each in parameters}
