"""Whole outputs: the page of a result as text without its drawings, and what the terminal shows of it."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.options_and_settings import Experiment
from streamgauge.report.documents import run
from streamgauge.report.page import render
from streamgauge.report.terminal.console import show_result
from streamgauge.results.latency import Latencies, Latency
from streamgauge.results.run import Result, Verification
from streamgauge.results.text.verdicts import in_words
from streamgauge.verdict.verdict import judge
from tests.helpers_golden import assert_golden
from tests.unit.report.conftest import NOW, made_up_flow, made_up_result, made_up_search, whole_run
from tests.unit.verdict.helpers_evidence import RIGHT, evidence, ramp

GOLDEN = Path(__file__).parent / "golden"
WRONG = RIGHT.model_copy(update={"matched": 8, "wrong": 2, "examples": ({"kind": "wrong", "got": "<b>"},)})
OUTPUTS: dict[str, Any] = {
    "sustained": {},
    "not_sustained": {
        "verdict": in_words(judge(evidence(backlog=ramp(0.05), verification=WRONG, user_job=False))),
        "verification": WRONG,
        "warnings": ("background processes used 12% of the CPU",), "notes": ("the input was made up",),
    },
    "invalid": {"verdict": in_words(judge(evidence(core_wait_us=50_000.0, background_share=0.8)))},
    "interrupted": {"verdict": in_words(judge(evidence(interrupted=True))), "verification": None},
    "nothing": {"verdict": in_words(judge(evidence(driver_reason="it ended"))), "rate": None, "phases": (),
                "latency": Latencies(), "sinks": (), "verification": None},
    "late": {"latency": Latencies(event_time_us=Latency(p50=1e6, max=4e6, count=500, lower_bounds=4)), "verification":
             Verification(judged=False, independent=False, reference="", sentence="The reference crashed.")},
}  # fmt: skip


def as_text(page: str) -> str:
    """The tags of a page one a line, without style and drawings, whose numbers are not the same on every machine."""
    page = re.sub(r"<style>.*?</style>|<svg class=.swatch.*?</svg>", "", page, flags=re.DOTALL)
    page = re.sub(r"<svg.*?</svg>", "(drawing)", page, flags=re.DOTALL)
    body = page.partition("<body>")[2]
    blocks = re.sub(r"</(?:p|tr|li|h\d|figcaption|caption|dt|dd|pre)>", "\n", body)
    lines = (" ".join(re.sub(r"<[^>]*>", " ", line).split()) for line in blocks.splitlines())
    return "".join(f"{line}\n" for line in lines if line)


def in_terminal(result: Result) -> str:
    console = Console(file=io.StringIO(), width=200, color_system=None)
    for verbose in (False, True):
        show_result(result, verbose, console)
        console.print("---")
    return str(console.file.getvalue())  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [*OUTPUTS, "search"])
def test_outputs(tmp_path: Path, experiment: Experiment, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Brief and verbose in the terminal, then the page. A reason stands once on it."""
    monkeypatch.chdir(tmp_path)
    folder = (
        whole_run(Path(), experiment)
        if name == "sustained"
        else RunFolder.create(Path("runs"), "made_up_aggregation", "spark", NOW)
    )
    result = made_up_search() if name == "search" else made_up_result(**OUTPUTS[name])
    folder.write_result(result)
    page = render(run.whole(folder, made_up_flow() if name == "sustained" else None)).replace(str(tmp_path), "")
    assert_golden(GOLDEN / f"{name}.txt", f"{in_terminal(result)}{as_text(page)}")
