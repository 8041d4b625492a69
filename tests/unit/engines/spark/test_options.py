"""Spark's settings: what a user's options become."""

from pathlib import Path
from types import ModuleType, SimpleNamespace

import psutil
import pytest

from streamgauge.core.errors import broken
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import source, tumble
from streamgauge.engines.spark import options, options_dstream, options_realtime
from streamgauge.workloads.registry import get


@pytest.mark.parametrize(
    ("requested", "windowed", "state_copied", "used"),
    [
        ("auto", True, False, "1400 milliseconds"),
        ("auto", True, True, "2 seconds"),
        ("auto", False, False, "0 seconds"),
        ("0 seconds", True, True, "0 seconds"),
        ("250 milliseconds", False, False, "250 milliseconds"),
    ],
)
def test_the_trigger_that_is_used(requested: str, windowed: bool, state_copied: bool, used: str) -> None:
    """A user's own word stands; else windows get an interval, and row by row work goes back to back."""
    assert options.trigger(requested, windowed, state_copied) == used


def test_a_users_options_stand_over_ours() -> None:
    """Ours by name, Spark's by prefix."""
    ours, users = options.split({"buckets": "4", "spark.x": "1"})
    assert (ours["buckets"], ours["driver_memory"], users) == ("4", "4g", {"spark.x": "1"})


def test_a_small_machine_has_a_smaller_heap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of its memory, unless the user says otherwise."""
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=3 * 2**30))
    assert options.split({})[0]["driver_memory"] == "1536m"
    assert options.split({"driver_memory": "2g"})[0]["driver_memory"] == "2g"
    (refused,) = broken(*options.memory_rules({"driver_memory": "4g"}, 0))
    assert refused.way_out == "--option driver_memory=1536m"


def test_a_keyed_process_gets_rocksdb_and_hadoops_own_local_files() -> None:
    """RocksDB copies its files with a class that the faster local files are not; all else stays as it was."""
    plain = options.defaults(2, local_checkpoint=True)
    kept = options.with_rocksdb(plain)
    assert kept["spark.sql.streaming.stateStore.providerClass"].endswith("RocksDBStateStoreProvider")
    assert plain.keys() - kept.keys() == {"spark.hadoop.fs.file.impl"}
    assert {name: kept[name] for name in plain if name in kept} == {name: plain[name] for name in plain if name in kept}


def test_which_flows_keep_their_state_in_rocksdb() -> None:
    """Those whose state Spark's usual store would copy whole in every batch, or cannot keep."""
    rows, spikes = source("rows", Schema.from_types(who="string")), get("spike_detection")
    flows = {
        "first rows": rows.distinct(keys="who").sink("firsts"),
        "first rows of windows": rows.distinct(keys="who", window=tumble(1)).sink("firsts"),
        "counts": rows.running(keys="who", n="count(*)").sink("counts"),
        "keyed process": spikes.build(spikes.parameters(), 1000.0).flow,
    }
    assert [name for name in flows if options.needs_rocksdb(flows[name])] == ["first rows", "keyed process"]
    assert [name for name in flows if options.needs_rocksdb(flows[name], tuned=False)] == ["keyed process"]
    # These put rows of a batch in order, which Spark would refuse; its other refusals are worth having.
    assert [name for name in flows if options.keeps_first_rows(flows[name])] == ["first rows"]


def test_settings_that_user_jobs_lack_are_in_their_document() -> None:
    """Every setting that a workload gets and a user job does not, with its value."""
    text = (Path(__file__).parents[4] / "docs" / "reference" / "job-api.md").read_text()
    built_in, own = (options.defaults(2, local_checkpoint=True, raw_files=raw) for raw in (True, False))
    assert own.items() < built_in.items()
    assert all(f"--option {name}={value}" in text for name, value in built_in.items() - own.items())
    assert f'--option trigger="{options.WINDOWED_INTERVAL}"' in text
    assert options.trigger("auto", False) == "0 seconds"


@pytest.mark.parametrize("mode", [options_dstream, options_realtime])
def test_each_node_of_micro_batches_is_done_or_has_its_rule(mode: ModuleType) -> None:
    """In the other modes; windows so far are real-time mode's own."""
    done, refused = {*mode.CAPABILITIES.nodes} - {"InWindows"}, {*mode.UNSUPPORTED_REASONS}
    assert done | refused == {*options.CAPABILITIES.nodes}
    assert not done & refused
