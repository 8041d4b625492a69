"""The example of an engine in a distribution of its own: discovered, and measured as any other."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streamgauge.cli import app
from streamgauge.config.experiment import build
from streamgauge.core.errors import InputError
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines import registry
from streamgauge.engines.spi import StartRequest
from streamgauge.preflight.settings_checks import check
from streamgauge.workloads.registry import get
from tests.helpers_broker_trials import require_jars
from tests.helpers_engine_plugin import ENGINE, EXAMPLE, install_example
from tests.helpers_modules import load


@pytest.fixture(autouse=True)
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Installed for one test."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    install_example(monkeypatch, folder)
    yield
    registry.declared.cache_clear()


def filtering(predicate: str) -> Flow:
    """The flow of the workload `filter`, with another condition."""
    workload = get("filter")
    flow = workload.build(workload.read({}), 1000.0).flow
    return Flow((replace(flow.sink, input=replace(flow.sink.input, predicate=predicate)),))


@pytest.mark.parametrize(
    ("predicate", "prices"), [("price > 90", [91]), (" price<=-3 ", [-4, -3]), ("price = 7", [7]), ("price < -4", [])]
)
def test_it_takes_comparisons_with_whole_numbers(predicate: str, prices: list[int]) -> None:
    """Rows whose value is null are left out, as by SQL."""
    module = load(EXAMPLE / "streamgauge_python_consumer.py")
    rows = [{"price": value} for value in (None, -4, -3, 7, 90, 91)]
    assert [row["price"] for row in module.lowered(filtering(predicate).sink.input)(rows)] == prices


def test_it_refuses_other_conditions_before_a_start() -> None:
    """With the text of the condition."""
    request = StartRequest(filtering("price > 90 or price < 3"), {}, None, "common")
    with pytest.raises(InputError, match="must compare a column with a whole number"):
        registry.entry(ENGINE).check(request)


def test_messages_are_json_by_default_and_nothing_else() -> None:
    """Over Kafka, as its capabilities say."""
    requested = {"workload": "filter", "engine": ENGINE, "transport": "kafka", "load": {"rate": "1k"}}
    assert check(build(requested)).transport_options == {"encoding": "json"}
    with pytest.raises(InputError, match="encoding: must be one that python-consumer reads: json"):
        check(build({**requested, "transport_options": {"encoding": "compact"}}))


@pytest.mark.process
@pytest.mark.long
@pytest.mark.parametrize("transport", ["memory", pytest.param("kafka", marks=pytest.mark.broker)])
def test_its_answers_are_right(tmp_path: Path, transport: str) -> None:
    """The whole path of a command; whether it keeps up is the machine's affair."""
    if transport == "kafka":
        require_jars(ENGINE)
    words = ["run", "filter", "--engine", ENGINE, "--rate", "5k", "--warmup", "1s", "--duration", "4s", "--generators"]
    words += ["2", "--transport", transport, "--out", str(tmp_path / "runs"), "--json"]
    result = json.loads(CliRunner().invoke(app.app, words).stdout)
    verification = result["verification"]
    assert verification["matched"] == verification["expected"] > 1000
    assert [verification[fault] for fault in ("missing", "extra", "duplicate", "wrong", "late")] == [0] * 5
    assert {check["name"]: check["state"] for check in result["verdict"]["checks"]}["connected"] == "ok"
    assert result["engine"] == ENGINE
