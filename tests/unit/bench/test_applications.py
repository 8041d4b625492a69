"""bench/studies/applications.py: every application is searched once, and from its floor."""

import json
from pathlib import Path
from typing import Any

from bench.studies import applications
from streamgauge.workloads import registry

PROBES = {
    "identity", "filter", "count", "windowed_aggregation", "windowed_join", "stamped_text", "scalability_sink",
    "scalability_hierarchical", "scalability_tumbling", "scalability_hopping",
}  # fmt: skip


def test_every_application_has_a_floor() -> None:
    """One that is added is found here."""
    assert sorted((*applications.NATIVE, *applications.OTHERS)) == sorted(set(registry.names()) - PROBES)
    assert applications.floor_of("word_count") > applications.floor_of("voipstream")


def test_what_was_searched_is_not_searched_again(tmp_path: Path) -> None:
    """Searches that came to their end alone, and none in which the driver failed; the later one of an application that
    was searched twice.
    """

    def result(name: str, workload: str, value: str, trials: int, held: float | None) -> None:
        (tmp_path / name).mkdir()
        classes: dict[str, Any] = {"trials": [{}] * trials, "sustained_per_s": held}
        whole = {"workload": workload, "verdict": {"value": value}, "search": classes}
        (tmp_path / name / "result.json").write_text(json.dumps(whole))

    result("1", "word_count", "sustained", 3, 2e5)
    result("2", "word_count", "sustained", 3, 3e5)
    result("3", "voipstream", "interrupted", 2, 2e4)
    result("4", "smart_grid", "not_sustained", 3, None)
    result("5", "bargain_index", "invalid", 2, None)
    searches = applications.kept(tmp_path)
    assert {name: applications.rate_of(one) for name, one in searches.items()} == {"word_count": 3e5, "smart_grid": 0.0}


def test_comparing_is_measured_against_the_trial() -> None:
    """Seconds for each second of all phases; nothing of an application that held nothing."""
    phases = [{"start_us": 0, "end_us": 10_000_000}, {"start_us": 10_000_000, "end_us": 40_000_000}]
    held = {"search": {"sustained_per_s": 2e5, "limit": "the CPU"}, "phases": phases, "verification": {"seconds": 8.0}}
    rate, comparing = applications.rows_of("word_count", held)
    assert (rate["value"], rate["floor"], rate["note"]) == (2e5, applications.NATIVE_FLOOR_PER_S, "the CPU")
    assert [comparing[name] for name in ("value", "floor", "goal", "note")] == [0.2, 1.0, 0.1, ""]
    nothing = applications.rows_of("voipstream", {"search": {"sustained_per_s": None}})
    assert [row["value"] for row in nothing] == [0.0]
