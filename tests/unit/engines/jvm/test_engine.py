"""What the driver's side reads of a job on the JVM."""

from pathlib import Path
from typing import Any, cast

import pytest

from streamgauge.core.engine_reports import SeriesSample
from streamgauge.core.plugin_options import IDIOMATIC, with_defaults
from streamgauge.engines.flink.engine import FlinkEngine
from streamgauge.engines.jvm.plugin import JvmPlugin
from streamgauge.engines.kafka_streams.engine import KafkaStreamsEngine
from streamgauge.engines.registry import entry
from streamgauge.engines.storm.engine import StormEngine
from streamgauge.system.child_processes import ChildFailed


def test_series_are_those_of_whole_lines(tmp_path: Path) -> None:
    """The job may be in the middle of a line, or have written none."""
    engine = KafkaStreamsEngine()
    engine._folder = tmp_path
    assert engine.series() == []
    (tmp_path / "series").write_text('[1, "late rows", "rows", 2.0]\n[2, "late ro')
    assert engine.series() == [SeriesSample(1, "late rows", "rows", 2.0)]


class Holder:
    """In place of the holder of a JVM, which may write its state before it ends."""

    def __init__(self, folder: Path, code: int | None, state: str, gone: bool = False) -> None:
        self._file, self._code, self._state, self._gone = folder / "status", code, state, gone

    def ask(self, request: str, timeout_s: float) -> int | None:
        assert request == "exit_code"
        self._file.write_text(self._state)
        if self._gone:
            raise ChildFailed("holder 7 is gone")
        return self._code


@pytest.mark.parametrize(
    ("code", "state", "gone", "reason"),
    [
        (None, "running", False, ""),
        (None, "", False, ""),
        (None, "failed IOException: no space", False, "IOException: no space;"),
        (1, "failed OutOfMemoryError: Java heap space", False, "OutOfMemoryError: Java heap space;"),
        (3, "running", False, "code 3;"),
        (-9, "running", False, "signal 9;"),
        (None, "running", True, "holder 7 is gone;"),
        (None, "failed IOException: no space", True, "IOException: no space;"),
    ],
)
def test_a_job_that_fails_has_the_reason_that_it_wrote_or_how_its_jvm_ended(
    tmp_path: Path, code: int | None, state: str, gone: bool, reason: str
) -> None:
    """Also one that writes its reason between two looks, and ends."""
    engine = StormEngine()
    engine._folder, engine._child = tmp_path, cast(Any, Holder(tmp_path, code, state, gone))
    status = engine.status()
    assert status.alive == (reason == "")
    assert reason in status.reason
    assert status.reason.startswith(reason) or state == "running"


def test_only_flink_has_to_keep_a_first_state_before_a_restart(tmp_path: Path) -> None:
    """The others go on from offsets, and a test that waited for their state would never kill them."""
    assert [made().has_checkpoint() for made in (FlinkEngine, KafkaStreamsEngine, StormEngine)] == [False, True, True]


@pytest.mark.parametrize(
    ("engine", "own", "changed"),
    [
        (
            "flink",
            {"buffer_timeout": "100ms", "pipeline.object-reuse": "false", "state.backend.type": "hashmap"},
            {"buffer_timeout": "5ms", "checkpoint_interval": "1s", "memory": "2GiB"},
        ),
        (
            "kafka-streams",
            {"state_store": "rocksdb", "changelog": "true", "max.poll.records": "1000"},
            {"state_store": "memory", "commit.interval.ms": "1000", "statestore.cache.max.bytes": "0"},
        ),
        (
            "storm",
            {"spins": "1000", "topology.workers": "1", "topology.acker.executors": "1"},
            {"spins": "0", "pending": "auto", "topology.message.timeout.secs": "600"},
        ),
    ],
)
def test_own_defaults_are_those_of_an_engine_whose_job_sets_nothing(
    engine: str, own: dict[str, str], changed: dict[str, str]
) -> None:
    """Whatever the profile; what every profile sets otherwise is changed."""
    plugin = entry(engine)
    assert isinstance(plugin, JvmPlugin)
    assert [pair for pair in own.items() if not plugin.is_own_default(*pair)] == []
    assert [pair for pair in changed.items() if plugin.is_own_default(*pair)] == []
    options = with_defaults(plugin.capabilities.profiles[IDIOMATIC].options, plugin.capabilities.settings)
    names = options.keys() | plugin.make(None, None).configuration(options, Path("/"), 1).keys()
    assert set(plugin.always_set) <= names
