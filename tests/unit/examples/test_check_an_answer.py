"""examples/check_an_answer.py against the oracle: tools that share no code agree, and a planted fault is reported."""

import json
import re
import types
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.core.clock import US
from streamgauge.core.schema import EVENT_TIME
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.engines.duckdb_oracle.engine import Oracle
from streamgauge.loadgen.export import write_input
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.workloads.registry import get
from tests.helpers_modules import ROOT, load

START_US, SECONDS, RATE_PER_S = 1_700_000_001_000_000, 12, 2000.0
MEASURED_TO_US = START_US + 7 * US


def example() -> types.ModuleType:
    return load(ROOT / "examples" / "check_an_answer.py")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(a generated input, a run folder whose results are the oracle's, windows closed before the plan's end)."""
    root = tmp_path_factory.mktemp("answers")
    workload = get("windowed_aggregation")
    job = workload.build(workload.read({"packs": 20}), RATE_PER_S)
    plan = Plan(job.streams, parse_profile("constant", RATE_PER_S, SECONDS), START_US, SECONDS, 2, 1)
    write_input(plan, root / "input", plan.start_us, plan.end_us)
    parts = [plan.batch(0, part, 0, plan.count_before(0, part, plan.end_us)) for part in range(plan.partitions)]
    events = pa.Table.from_batches(parts)
    flow = with_lineage(job.flow, ingest_time=False)
    results = Oracle().answer(flow, {"purchases": events}, duckdb.connect()).to_arrow_table().to_pandas()
    write_run(root / "run", results[results.window_end.astype("datetime64[us]").astype("int64") <= plan.end_us])
    return root / "input", root / "run"


def write_run(run: Path, results: pd.DataFrame) -> None:
    """A run folder as far as the example reads it; times in UTC, as a run writes them."""
    run.mkdir()
    stamps = {name: results[name].dt.tz_localize("UTC") for name in ("window_start", "window_end")}
    stamps[EVENT_TIME] = pd.to_datetime(results[EVENT_TIME], unit="us", utc=True)
    pq.write_table(pa.Table.from_pandas(results.assign(**stamps), preserve_index=False), run / "results.parquet")
    phases = [{"name": "measured", "start_us": START_US + US, "end_us": MEASURED_TO_US}]
    (run / "result.json").write_text(json.dumps({"phases": phases}))


def test_right_answers_are_all_matched(folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """The oracle's windows are those that pandas finds, and the exit code is 0."""
    generated, run = folders
    assert example().main([str(generated), str(run)]) == 0
    rows = pq.ParquetFile(run / "results.parquet").metadata.num_rows
    assert rows > 40
    assert capsys.readouterr().out == f"{rows} matched, 0 different, 0 missing, 0 extra, 0 duplicate; 0 outside\n"


@pytest.mark.parametrize(
    ("plant", "count"),
    [
        (lambda rows: rows.assign(revenue=rows.revenue.where(rows.index != 3, rows.revenue + 1)), "1 different"),
        (lambda rows: rows.drop(index=rows[EVENT_TIME].idxmin()), "1 missing"),
        (lambda rows: pd.concat([rows, rows.iloc[[5]]]), "1 duplicate"),
        (lambda rows: pd.concat([rows, rows.iloc[[5]].assign(gem_pack_id=99)]), "1 extra"),
    ],
)
def test_a_planted_fault_is_reported(
    folders: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    plant: Callable[[pd.DataFrame], pd.DataFrame],
    count: str,
) -> None:
    """One altered, dropped, doubled or invented row is counted as what it is, and the exit code is 1."""
    generated, run = folders
    results = pd.read_parquet(run / "results.parquet")
    wrong = tmp_path / "run"
    wrong.mkdir()
    plant(results.reset_index(drop=True)).to_parquet(wrong / "results.parquet", index=False)
    (wrong / "result.json").write_text((run / "result.json").read_text())
    assert example().main([str(generated), str(wrong)]) == 1
    assert count in capsys.readouterr().out


def test_an_input_that_ends_before_the_run_is_compared_as_far_as_it_goes(
    folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Windows of a run's extension are outside; those before it are matched, and a fault in one is still reported."""
    generated, run = folders
    shorter = tmp_path / "purchases"
    shorter.mkdir()
    for part in (generated / "purchases").iterdir():
        purchases = pd.read_parquet(part)
        until = pd.Timestamp(START_US + 8 * US, unit="us", tz="UTC")
        purchases[purchases.event_time < until].to_parquet(shorter / part.name, index=False)
    assert example().main([str(tmp_path), str(run)]) == 0
    counts = [int(text) for text in re.findall(r"\d+", capsys.readouterr().out)]
    rows = pq.ParquetFile(run / "results.parquet").metadata.num_rows
    assert (counts[0] + counts[-1], counts[1:-1]) == (rows, [0, 0, 0, 0])
    assert min(counts[0], counts[-1]) > 10


def test_nothing_matched_is_no_success(folders: tuple[Path, Path], tmp_path: Path) -> None:
    """Without a single result the exit code is 1, even where none was owed."""
    generated, run = folders
    pd.read_parquet(run / "results.parquet").head(0).to_parquet(tmp_path / "results.parquet", index=False)
    (tmp_path / "result.json").write_text(json.dumps({"phases": [{"name": "measured", "end_us": 0}]}))
    assert example().main([str(generated), str(tmp_path)]) == 1
