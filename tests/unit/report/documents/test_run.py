"""The page, compared by section: headings, tables, links; self-contained, small, and alive in a browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.report.documents import run
from streamgauge.report.page import render
from streamgauge.results.latency import Latencies, Latency
from streamgauge.results.run import MalformedRecords, Result, Verification
from streamgauge.results.verdict import Check, Verdict
from tests.unit.report.documents.test_comparison import Tags, check_page

Make = Callable[..., Result]
Flow = list[dict[str, Any]]
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


class Page(Tags):
    """A page with the text of each h2 section and its table captions."""

    def __init__(self, text: str) -> None:
        self.sections: dict[str, str] = {"": ""}
        self.captions: list[str] = []
        self._heading = ""
        super().__init__(text)

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        if "h2" in self.open and "span" not in self.open:
            self._heading = data.strip()
            self.sections[self._heading] = ""
        elif "caption" in self.open:
            self.captions.append(data.strip())
        self.sections[self._heading] += " " + " ".join(data.split())

    def words(self, section: str) -> str:
        return " ".join(self.sections[section].split())


def rendered(folder: RunFolder, flow: Flow | None) -> str:
    return render(run.whole(folder, flow))


def shown(folder: RunFolder, flow: Flow | None = None) -> Page:
    return Page(rendered(folder, flow))


def test_sections_stand_in_order(whole_page: str) -> None:
    """Verdict first, then what happened, how late, where, with what, why, whether right, and how to repeat it."""
    headings = [heading for heading in Page(whole_page).sections if heading]
    assert headings == [
        "200 k events/s",
        "Over time",
        "Latency",
        "Flow",
        "Resources",
        "The engine's batches",
        "Checks",
        "Verification",
        "Environment and settings",
    ]


def test_page_is_well_formed_and_needs_nothing_else(whole_page: str) -> None:
    """Every tag is closed, every id is there once, links within the page resolve, and none leads out of it."""
    check_page(whole_page)
    assert "What these words mean: docs/reference/glossary.md" in whole_page.partition("<footer")[2]


def test_page_is_small_and_lies_in_the_folder(
    run_folder: RunFolder, flow: Flow, make_series: Callable[..., pa.Table], make_batches: Callable[..., pa.Table]
) -> None:
    """A run of hours with thousands of batches still makes a page far below the limit."""
    run_folder.write_series(make_series(30_000))
    run_folder.write_engine_table("batches", make_batches(20_000))
    path = run.write_page(run_folder, flow)
    assert path == run_folder.path / "report.html"
    assert path.stat().st_size < 750_000


def test_the_busy_shares_of_the_driver_stand_beside_its_schedule_delay(bare_folder: RunFolder) -> None:
    """As shares of the time; the reader need not open result.json to see a disturbance."""
    text = " ".join(map(shown(bare_folder).words, shown(bare_folder).sections))
    assert "schedule delay p99 62 ms at most 71 ms" in text
    assert "driver at work deliveries 2.1 % of the time results 0.4 %, their disk 1.25 %" in text


FLOW_ROWS = (
    "operator rows in /s 5th percentile selectivity rows lost",
    "aggregate 3 of 40 batches not counted 400 k - 0.00125 -",
    "A loss between two operators does not show here",
    "streamgauge characterize WORKLOAD measures size, time and instances",
)
LATENCY_ROWS = (
    "results of the span independent", "3.7 s 4.3 s - 5.2 s 15,000 300", "match time does not apply",
    "300 independent results (batches or windows) are too few, 1,000 are needed",
)  # fmt: skip


@pytest.mark.parametrize(("section", "parts"), [
    ("Resources", ("sut: jvm part of it",)), ("Flow", FLOW_ROWS), ("Latency", LATENCY_ROWS),
    ("Checks", ("backlog_trend holds 0.2 %/s -0.1 %/s to 0.5 %/s 1 %/s the backlog does not grow",)),
    ("Verification", ("Expected results are those of warm-up and measured span",)),
])  # fmt: skip
def test_what_a_section_of_a_sustained_run_has(bare_folder: RunFolder, section: str, parts: tuple[str, ...]) -> None:
    """A check's number, interval and limit; what only `characterize` measures is pointed at, batches that were not
    counted are; results are counted by name, since three numbers would contradict each other; a percentile without
    evidence is a dash, and its reason stands below the table.
    """
    words = shown(bare_folder).words(section)
    assert [part for part in parts if part not in words] == []


JUDGED = Verification(judged=True, independent=True, reference="DuckDB", expected=2, matched=2, duplicate=12)
PROMISED = JUDGED.model_copy(update={"delivery": "at_least_once", "allowed": {"duplicate": 12}})
UNJUDGED = Verification(judged=False, independent=False, reference="", sentence="The reference crashed.")
DRIVER = Check(name="driver", value=250_000, limit=100_000, unit="us", ok=False, state="invalid", sentence="Slip.")
INVALID = Verdict(value="invalid", checks=(DRIVER,), decided_by=("driver",), sentence="Late.", advice="Fewer rows.")
ALLOWED = "The promised delivery guarantee allows 12 duplicate, so these rows are no faults."


@pytest.mark.parametrize(("changes", "section", "parts", "absent"), [
    ({"verification": UNJUDGED}, "Verification", ["Answers: not judged. The reference crashed."], "missing"),
    ({"verification": JUDGED}, "Verification", [], "promised"),
    ({"verification": PROMISED}, "Verification", ["uncommitted promised", "at_least_once", ALLOWED], "not judged"),
    ({"verdict": INVALID}, "200 k events/s",
     ["must not be used", "Late.", "driver: 250 ms, limit 100 ms", "Next: Fewer rows."], "sustained"),
    ({"latency": Latencies(), "sinks": ()}, "Latency", ["no result of the measured span arrived"], "p99"),
], ids=["not judged", "judged", "promised", "invalid", "no latency"])  # fmt: skip
def test_what_a_result_changes(
    bare_folder: RunFolder, make_result: Make, changes: dict[str, Any], section: str, parts: list[str], absent: str
) -> None:
    """An unjudged run has its reason and no zeros; rows that a guarantee allows are counted, and are no faults; an
    invalid run says not to use it, with the deciding check and the next step; without results a sentence stands.
    """
    bare_folder.write_result(make_result(**changes))
    words = shown(bare_folder).words(section)
    assert [part for part in parts if part not in words] == []
    assert absent not in words


def test_wrong_answers_show_examples(bare_folder: RunFolder, make_result: Make) -> None:
    """Examples of wrong rows are a table, escaped."""
    wrong = JUDGED.model_copy(update={"wrong": 1, "examples": ({"kind": "wrong", "got": "<b>"},)})
    bare_folder.write_result(make_result(verification=wrong))
    assert "<td>&lt;b&gt;</td>" in rendered(bare_folder, None)


def test_several_sinks_have_rows_of_their_own(bare_folder: RunFolder, make_result: Make) -> None:
    """Latencies and answers of each, and answers of all; the slowest, whose figures stand at the top, is named."""
    result = make_result()
    later = result.latency.model_copy(update={"notes": ("later",)})
    sinks = tuple(
        result.sinks[0].model_copy(update={"name": name, "latency": latency, "verification": result.verification})
        for name, latency in (("fast", result.latency), ("alerts", later))
    )
    bare_folder.write_result(make_result(sinks=sinks, latency=later))
    page = shown(bare_folder)
    assert "the slowest sink, alerts" in page.sections["Latency"]
    assert page.sections["Latency"].count("closing delay") >= 2
    assert [name in page.sections["Verification"] for name in ("fast", "alerts", "all")] == [True] * 3


def test_malformed_records_stand_beside_the_verification(bare_folder: RunFolder, make_result: Make) -> None:
    """With the whole rule, escaped; nothing where the workload states none."""
    caption = "Malformed records of warm-up and span, kept out of the answer"
    bare_folder.write_result(make_result(verification=JUDGED))
    assert caption not in rendered(bare_folder, None)
    rule = "NOT coalesce(price < 10 AND " + "x" * 300 + ", false)"
    records = {"lines": MalformedRecords(rule=rule, malformed=0, records=100_000)}
    bare_folder.write_result(make_result(verification=JUDGED.model_copy(update={"malformed": records})))
    row = '<th scope="row">lines</th><td class="n">0</td><td class="n">100,000</td>'
    page = rendered(bare_folder, None)
    assert [part for part in (caption, f"<code>{rule.replace('<', '&lt;')}</code>", row) if part not in page] == []


def test_killed_run_still_has_a_page(tmp_path: Path, now: Any) -> None:
    """A run that was killed at once gives a page that says why it holds nothing."""
    parsed = shown(RunFolder.create(tmp_path, "word_count", "spark", now))
    assert "no second of this run was recorded" in parsed.sections["Over time"]
    assert "the run was not judged" in parsed.sections["Checks"]
    assert "has no verdict" in parsed.sections["nothing was measured"]
    assert parsed.open == []


def test_search_lists_its_trials_as_links(search_folder: RunFolder) -> None:
    """Every trial is a row; those with a folder link to its report; the bracket is drawn."""
    parsed = shown(search_folder)
    trials = [link for link in parsed.links if link.startswith("trials/")]
    assert trials == ["trials/01/report.html", "trials/02/report.html", "trials/03/report.html"]
    assert "Trials, in the order in which they ran" in parsed.captions
    assert "overload" in parsed.sections["The search"]
    assert "bracket" in parsed.ids
    assert "Over time" not in parsed.sections


def test_updates_have_both_figures(bare_folder: RunFolder, make_result: Make) -> None:
    """The newest event's is called so, beside that of every event; of other results nothing is added to its name."""
    assert "newest event" not in shown(bare_folder).sections["Latency"]
    newest = Latency(p50=8e5, max=1e6, count=40, effective_count=10)
    counted = Latency(p50=2.8e6, max=4.8e6, count=4000, effective_count=10)
    bare_folder.write_result(make_result(latency=Latencies(event_time_us=newest, until_counted_us=counted), sinks=()))
    page = shown(bare_folder)
    section = page.words("Latency")
    assert "event time, newest event emission - event time, from the plan - - 800 ms" in section
    assert "until counted of every event" in section
    assert "2.8 s" in section
    whole = " ".join(map(page.words, page.sections))
    assert "event time p50 800 ms, p99 - p90 -" in whole
    assert "(newest event of each update) counted p50 2.8 s, p99 -" in whole


def test_settings_and_command_are_there(bare_folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was set, what it would have been, and how to run it again from any folder."""
    monkeypatch.chdir(bare_folder.path.parent)
    section = shown(RunFolder(Path(bare_folder.name))).sections["Environment and settings"]
    assert "streamgauge run made_up_aggregation --set range=8s --rate 200000" in section
    assert f"streamgauge experiment {bare_folder.path.absolute() / 'experiment.toml'}" in section
    assert "spark.sql.shuffle.partitions" in section


def test_settings_that_are_not_the_engines_own_are_marked(bare_folder: RunFolder, make_result: Make) -> None:
    """With the profile; a result from before there were profiles marks none."""
    settings = {"source": "rows", "spark.ui.enabled": "false"}
    bare_folder.write_result(make_result(settings=settings, changed_settings=("spark.ui.enabled",), tuning="idiomatic"))
    section = shown(bare_folder).sections["Environment and settings"]
    assert "(tuning profile: idiomatic)" in section
    assert section.count("changed") == 1
    bare_folder.write_result(make_result(settings=settings))
    assert "changed" not in shown(bare_folder).sections["Environment and settings"]


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_browser_shows_the_page(run_folder: RunFolder, flow: Flow, tmp_path: Path) -> None:
    """Headless Chromium loads the page from disk without a complaint, lays the charts out, and it is not blank.

    A screenshot of this page compresses far worse than an empty one; light and dark are looked at.
    """
    path = run.write_page(run_folder, flow)
    for scheme in ("light", "dark"):
        picture = tmp_path / f"{scheme}.png"
        browse(path, tmp_path, scheme, f"--screenshot={picture}")
        assert picture.stat().st_size > 50_000
    assert (tmp_path / "light.png").read_bytes() != (tmp_path / "dark.png").read_bytes()
    assert chart_height_px(path, tmp_path) > 300


def chart_height_px(path: Path, folder: Path) -> float:
    """What the browser says about the height of the first chart, asked by a script that only the test puts in."""
    height = "document.querySelector('.wide svg').getBoundingClientRect().height"
    probe = folder / "probe.html"
    probe.write_text(
        path.read_text().replace("</body>", f"<script>document.title = 'height ' + {height}</script></body>")
    )
    (height,) = re.findall(r"<title>height ([\d.]+)</title>", browse(probe, folder, "light", "--dump-dom"))
    return float(height)


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
