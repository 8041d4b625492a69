"""CPU per event of our lowering beside a job that was written by hand for the same engine.

Both read the windowed aggregation's events as JSON from one partition and write JSON, with the same settings, as runs
of `streamgauge run` at two rates: the built-in workload, and the hand-written job as a user's program, whose results
are verified too. The difference of the CPU shares over the difference of the rates is the marginal CPU of an event,
without starts, timers and what else does not depend on the rate. A row's value is ours over that of the hand-written
job.

Run alone: `python -m bench.engines.marginal_cpu`, or with the names of engines. An engine takes 8 minutes a repeat.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.support.row import Row, row
from streamgauge.artifacts.run_folder import RunFolder

RATES = {"flink": (20_000, 200_000), "kafka-streams": (10_000, 50_000), "storm": (20_000, 80_000)}
"""Low and high rate, which both jobs hold on 2 cores."""
REPEATS = int(os.environ.get("STREAMGAUGE_REPEATS", "1"))
FLOOR, GOAL = 1.15, 1.10
TIMES = ("--warmup", "30s", "--duration", "30s")
PROGRAM = """
kind = "program"
answers = "windowed_aggregation"
command = ["{{python}}", "{start}", "{engine}"]
environment = {{ CORES = "{{parallelism}}" }}
ready = "line"
ready_line = "^running"
timeout = "3m"
reference = '''
SELECT gem_pack_id, sum(price) AS revenue, closed FROM (
  SELECT gem_pack_id, price, unnest([ts // 4000000 * 4000000 + 4000000, ts // 4000000 * 4000000 + 8000000]) AS closed
  FROM purchases
) GROUP BY gem_pack_id, closed
'''
[inputs.purchases]
key = "gem_pack_id"
time = "ts"
time_unit = "us"
record_timestamp = "sent"
[inputs.purchases.fields]
gem_pack_id = {{ kind = "key", domain = 1000, distribution = "normal" }}
price = {{ kind = "integer", low = 1, high = 100 }}
[output]
delivery = "at_least_once"
keys = ["gem_pack_id", "closed"]
window_end = "closed"
time_unit = "us"
reach = "12s"
"""
START = Path(__file__).parent / "jobs" / "start.py"


def cpu_share(what: list[str], rate: int, out: Path) -> float:
    """CPU of the system under test, in cores. Raises RuntimeError if its answers are wrong or it did not keep up."""
    command = [sys.executable, "-m", "streamgauge", "run", *what, "--rate", str(rate), *TIMES, "--out", str(out)]
    before = set(out.glob("*/result.json"))
    code = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
    new = set(out.glob("*/result.json")) - before
    if len(new) != 1:
        raise RuntimeError(f"{what} at {rate}: exit code {code}")
    result = RunFolder(new.pop().parent).read_result()
    if result.verification is None or not result.verification.right or result.verdict.value == "not_sustained":
        raise RuntimeError(f"{what} at {rate}: {result.verdict.sentence}")
    return sum(one.cpu_percent_mean or 0.0 for one in result.processes if one.role == "sut") / 100


def marginal_us(what: list[str], engine: str, out: Path) -> float:
    """Microseconds of CPU an event."""
    low, high = RATES[engine]
    return (cpu_share(what, high, out) - cpu_share(what, low, out)) / (high - low) * 1e6


def measured(engine: str) -> Row:
    """Ours over the hand-written job, in alternated repeats."""
    ours = ["windowed_aggregation", "--engine", engine, "--transport", "kafka", "--transport-option", "encoding=json"]
    with tempfile.TemporaryDirectory() as folder:
        out, program = Path(folder), Path(folder) / f"by_hand_{engine}.toml"
        program.write_text(PROGRAM.format(start=START, engine=engine))
        pairs = [(marginal_us([str(program)], engine, out), marginal_us(ours, engine, out)) for _ in range(REPEATS)]
    note = "; ".join(f"by hand {hand:.2f} us an event, ours {own:.2f} us" for hand, own in pairs)
    return row(f"controls: CPU per event, {engine}", [own / hand for hand, own in pairs], "ratio", FLOOR, GOAL, note)


def main(engines: tuple[str, ...] = tuple(RATES)) -> list[Row]:
    """The engines, one after the other."""
    return [measured(engine) for engine in engines]


if __name__ == "__main__":
    for each in sys.argv[1:] or RATES:
        print(measured(each), flush=True)
