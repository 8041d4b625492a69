"""`run` against an independent computation over what `generate` writes for the same arguments, as a user types both.

The computation is NumPy over Parquet files: it shares nothing with the verification, nor with any engine.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from streamgauge.cli import app
from streamgauge.core.clock import US
from streamgauge.core.exit_codes import VERDICT_CODES

RANGE_US, SLIDE_US, PACKS = US, US // 2, 50
ARGUMENTS = (
    "windowed_aggregation", "--rate", "5k", "--seed", "7", "--generators", "2", "--set", f"range={RANGE_US / US:g}s",
    "--set", f"slide={SLIDE_US / US:g}s", "--set", f"packs={PACKS}",
)  # fmt: skip
Windows = dict[tuple[int, int], tuple[int, int]]
"""(pack, start in microseconds) to (revenue, latest event time)."""


def json_output(*arguments: str) -> dict[str, Any]:
    """What the command prints with --json. Which verdict a run gets is the machine's affair; it has all its answers."""
    done = CliRunner().invoke(app.app, [*arguments, "--json"])
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.exit_code == (VERDICT_CODES[found["verdict"]["value"]] if arguments[0] == "run" else 0), done.output
    return found


def micros(table: Any, column: str) -> np.ndarray:
    return table.column(column).cast("timestamp[us]").cast("int64").to_numpy()


def computed(generated: Path, until_us: int) -> Windows:
    """Every window of the input that ends by then."""
    purchases = pq.read_table(generated / "purchases")
    times, packs, prices = (
        micros(purchases, "event_time"), purchases.column("gem_pack_id").to_numpy(),
        purchases.column("price").to_numpy().astype(np.int64),
    )  # fmt: skip
    found: Windows = {}
    first = times.min() // SLIDE_US * SLIDE_US - RANGE_US
    for start in range(first, until_us - RANGE_US + 1, SLIDE_US):
        inside = (times >= start) & (times < start + RANGE_US)
        for pack in np.unique(packs[inside]):
            mine = inside & (packs == pack)
            found[int(pack), start] = int(prices[mine].sum()), int(times[mine].max())
    return found


def received(run: Path, until_us: int) -> Windows:
    """Every result that came for a window that ends by then; none may have come twice."""
    results = pq.read_table(run / "results.parquet")
    names = ("gem_pack_id", "revenue")
    packs, revenues = (results.column(name).to_pylist() for name in names)
    stamps = ("window_start", "window_end", "event_time")
    starts, ends, latest = (micros(results, name).tolist() for name in stamps)
    rows = [
        ((pack, start), (revenue, last))
        for pack, start, end, revenue, last in zip(packs, starts, ends, revenues, latest, strict=True)
        if end <= until_us
    ]
    assert len(dict(rows)) == len(rows)
    return dict(rows)


@pytest.mark.parametrize(
    ("engine", "warmup", "duration"),
    [
        pytest.param("known", "1s", "4s", id="known", marks=pytest.mark.process),
        pytest.param("spark", "20s", "30s", id="spark", marks=[pytest.mark.spark, pytest.mark.long]),
    ],
)
def test_a_run_agrees_with_what_is_computed_from_generate(
    tmp_path: Path, engine: str, warmup: str, duration: str
) -> None:
    """Every window of the whole run, its warm-up and its tail with it: the same ones, and the same values."""
    same = (*ARGUMENTS, "--engine", engine, "--warmup", warmup, "--duration", duration)
    ran = json_output("run", *same, "--keep-results", "--out", str(tmp_path / "runs"))
    wrote = json_output("generate", *same, "--start", ran["start_time"], "--out", str(tmp_path / "input"))
    expected = computed(tmp_path / "input", wrote["end_us"])
    assert received(Path(ran["folder"]), wrote["end_us"]) == expected
    assert len(expected) > PACKS * int(duration.removesuffix("s"))
    assert sum(revenue for revenue, _ in expected.values()) > 0
