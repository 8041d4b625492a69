"""The page, compared by section: headings, tables, links; self-contained, small, and alive in a browser."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.core.errors import Problem
from streamgauge.report.documents import run
from streamgauge.report.documents.comparison import document, write_comparison
from streamgauge.report.page import render
from streamgauge.results.run import Verification
from tests.unit.report.conftest import made_up_batches, made_up_series
from tests.unit.report.documents.test_comparison import GATES, Tags, comparison

Flow = list[dict[str, Any]]
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


class Page(Tags):
    """A page with the text of each h2 section."""

    def __init__(self, text: str) -> None:
        self.sections: dict[str, str] = {"": ""}
        self._heading = ""
        super().__init__(text)

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        if "h2" in self.open and "span" not in self.open:
            self._heading = data.strip()
            self.sections[self._heading] = ""
        self.sections[self._heading] += " " + " ".join(data.split())


def rendered(folder: RunFolder, flow: Flow | None) -> str:
    return render(run.whole(folder, flow))


def shown(folder: RunFolder, flow: Flow | None = None) -> Page:
    return Page(rendered(folder, flow))


def test_page_is_small_and_lies_in_the_folder(run_folder: RunFolder, flow: Flow) -> None:
    """A run of hours with thousands of batches still makes a page far below the limit."""
    run_folder.write_series(made_up_series(30_000))
    run_folder.write_engine_table("batches", made_up_batches(20_000))
    path = run.write_page(run_folder, flow)
    assert path == run_folder.path / "report.html"
    assert path.stat().st_size < 750_000


def test_killed_run_still_has_a_page(tmp_path: Path, now: Any) -> None:
    """A run that was killed at once gives a page that says why it holds nothing."""
    parsed = shown(RunFolder.create(tmp_path, "word_count", "spark", now))
    assert "no second of this run was recorded" in parsed.sections["Over time"]
    assert "the run was not judged" in parsed.sections["Checks"]
    assert "has no verdict" in parsed.sections["nothing was measured"]
    assert parsed.open == []


def test_search_lists_its_trials_as_links(search_folder: RunFolder) -> None:
    """Those with a folder link to its report."""
    trials = [link for link in shown(search_folder).links if link.startswith("trials/")]
    assert trials == ["trials/01/report.html", "trials/02/report.html", "trials/03/report.html"]


def test_rates_have_their_deviation_and_each_sinks_results(bare_folder: RunFolder) -> None:
    """The figures of result.json; results older than them have no such table."""
    assert "Rates over the measured span" not in rendered(bare_folder, None)
    result = bare_folder.read_result()
    assert result.rate is not None
    rate = result.rate.model_copy(update={"ingested_std_per_s": 2e4})
    sinks = (result.sinks[0].model_copy(update={"rows_per_s": 250.0}),)
    changes = {"rate": rate, "sinks": sinks, "loopback_bytes_per_s": 2.0**20}
    bare_folder.write_result(result.model_copy(update=changes))
    page = rendered(bare_folder, None)
    shown = ("standard deviation of seconds", "20 k/s", "results of revenue", "250 /s", "traffic over the loopback was")
    assert [text for text in shown if text not in page] == []


def test_settings_and_command_are_there(bare_folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was set, what it would have been, and how to run it again from any folder."""
    monkeypatch.chdir(bare_folder.path.parent)
    section = shown(RunFolder(Path(bare_folder.name))).sections["Environment and settings"]
    assert "streamgauge run made_up_aggregation --set range=8s --rate 200000" in section
    assert f"streamgauge experiment {bare_folder.path.absolute() / 'experiment.toml'}" in section
    assert "spark.sql.shuffle.partitions" in section


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_browser_shows_the_page(run_folder: RunFolder, flow: Flow, tmp_path: Path) -> None:
    """Headless Chromium loads the page from disk without a complaint, lays the charts out, and it is not blank.

    A screenshot of this page compresses far worse than an empty one; light and dark are looked at.
    """
    look_at(run.write_page(run_folder, flow), tmp_path, 50_000)


@pytest.mark.long
@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_browser_shows_a_comparison(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    write_comparison(page, document(comparison(GATES)))
    look_at(page, tmp_path, 20_000)


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
def test_first_screen(run_folder: RunFolder, flow: Flow, tmp_path: Path, width: int, height: int) -> None:
    """Wide and narrow it holds verdict, sentences and every tile, and needs no sideways scroll.

    In no chart is a text cut off or over another one.
    """
    seen = measure(rendered(run_folder, flow), tmp_path, width, height)
    assert 300 < seen["tiles_end"] <= height
    assert (seen["sideways"], seen["charts"] > 3, seen["cut"], seen["crossed"]) == (0, True, [], [])


def look_at(page: Path, folder: Path, least_bytes: int) -> None:
    """In light and in dark, which are two pictures, and none is blank."""
    for scheme in ("light", "dark"):
        picture = folder / f"{scheme}.png"
        browse(page, folder, scheme, f"--screenshot={picture}")
        assert picture.stat().st_size > least_bytes
    assert (folder / "light.png").read_bytes() != (folder / "dark.png").read_bytes()


MEASURE = """
addEventListener("load", () => {
  const page = document.querySelector("iframe").contentDocument
  const box = one => one.getBoundingClientRect()
  const charts = [...page.querySelectorAll("figure div svg")].filter(one => box(one).width)
  const texts = chart => [...chart.querySelectorAll("text")].filter(one => one.textContent.trim())
  const cut = (inner, outer) => inner.left < outer.left - 1 || inner.right > outer.right + 1
    || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1
  const overlap = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1.5
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3
  document.body.textContent = JSON.stringify({
    tiles_end: box(page.querySelector("#answer dl")).bottom,
    sideways: page.documentElement.scrollWidth - page.documentElement.clientWidth,
    charts: charts.length,
    cut: charts.flatMap(one => texts(one).filter(text => cut(box(text), box(one))).map(text => text.textContent)),
    crossed: charts.flatMap(one => texts(one).filter(
      (a, n, all) => all.slice(n + 1).some(b => overlap(box(a), box(b)))).map(text => text.textContent)),
  })
})
"""


def measure(page: str, folder: Path, width: int, height: int) -> dict[str, Any]:
    """Where things are in a frame of this size, because a window cannot be as narrow as a telephone."""
    frame = f'<iframe width="{width}" height="{height}" style="border: 0" srcdoc="{html.escape(page)}"></iframe>'
    probe = folder / "frame.html"
    probe.write_text(f"<!doctype html><meta charset=utf-8><body>{frame}<script>{MEASURE}</script></body>")
    (found,) = re.findall(r"<body[^>]*>(.*)</body>", browse(probe, folder, "light", "--dump-dom"), re.DOTALL)
    seen: dict[str, Any] = json.loads(html.unescape(found))
    return seen


def browse(path: Path, folder: Path, scheme: str, *action: str) -> str:
    """Opens the page in a browser of its own and fails if its console says anything; what it printed."""
    assert CHROMIUM is not None
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    flags += ["--enable-logging=stderr", f"--user-data-dir={folder / 'chromium'}", "--window-size=1200,3000"]
    flags += [f"--blink-settings=preferredColorScheme={1 if scheme == 'light' else 0}"]
    command = [CHROMIUM, *flags, *action, path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    assert "CONSOLE" not in done.stderr
    return done.stdout


def cut(path: Path, share: float) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])


@pytest.mark.parametrize("share", [0.0, 0.7])
def test_damaged_files_are_named_and_the_rest_is_shown(run_folder: RunFolder, share: float) -> None:
    """On the page, and to the caller; a whole folder has none."""
    damage: list[Problem] = []
    run.write_page(run_folder, None, damage=damage)
    assert damage == []
    run_folder.write_verification(Verification(judged=True, independent=True, reference="a query"))
    files = ("series.parquet", "engine/batches.parquet", "latency.hlog", "verification.json")
    for name in files:
        cut(run_folder.path / name, share)
    page = run.write_page(run_folder, None, damage=damage).read_text()
    assert [one.got for one in damage] == [str(run_folder.path / name) for name in files]
    assert [name for name in files if f"{name} must be whole" not in page] == []


def test_a_log_that_lost_whole_lines_is_damaged(run_folder: RunFolder) -> None:
    path = run_folder.path / "latency.hlog"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    damage: list[Problem] = []
    run.whole(run_folder, None, damage)
    assert [one.got for one in damage] == [str(path)]
