"""The page, compared by section: headings, tables, links; self-contained, small, and alive in a browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
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

Make = Callable[..., Result]
Flow = list[dict[str, Any]]
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


class Page(HTMLParser):
    """A page taken apart: text of each h2 section, its table captions, all links and ids, and tags left open."""

    void = frozenset({"meta", "link", "br", "img", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.sections: dict[str, str] = {"": ""}
        self.captions: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self._heading = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.links += [value for name in ("href", "src") if (value := values.get(name))]
        self.ids += [value for value in [values.get("id")] if value]
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value for name in ("href", "src") if (value := dict(attrs).get(name))]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        if "h2" in self.open and "span" not in self.open:
            self._heading = data.strip()
            self.sections[self._heading] = ""
        elif "caption" in self.open:
            self.captions.append(data.strip())
        self.sections[self._heading] += " " + " ".join(data.split())


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


def test_page_is_well_formed(whole_page: str) -> None:
    """Every tag is closed, and every id is there once and is what the links within the page point to."""
    parsed = Page(whole_page)
    assert parsed.open == []
    assert len(parsed.ids) == len(set(parsed.ids))
    assert {link[1:] for link in parsed.links if link.startswith("#")} <= set(parsed.ids)


def test_page_names_the_glossary_at_its_foot(whole_page: str) -> None:
    foot = whole_page.partition("<footer")[2]
    assert "What these words mean: docs/reference/glossary.md" in foot


def test_page_needs_nothing_else(whole_page: str) -> None:
    """No address outside the file: no link, no import, no script, no font."""
    assert all(link.startswith(("#", "data:,")) for link in Page(whole_page).links)
    assert not re.search(r"https?://|@import|<script|url\((?!#)", whole_page)


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
    text = " ".join(" ".join(shown(bare_folder).sections.values()).split())
    assert "schedule delay p99 62 ms at most 71 ms" in text
    assert "driver at work deliveries 2.1 % of the time results 0.4 %, their disk 1.25 %" in text


def test_checks_show_number_interval_and_limit(bare_folder: RunFolder) -> None:
    """Each check is a row with what it found and what it may find at most."""
    assert "sut: jvm part of it" in shown(bare_folder).sections["Resources"]
    checks = shown(bare_folder).sections["Checks"]
    assert "backlog_trend holds 0.2 %/s -0.1 %/s to 0.5 %/s 1 %/s the backlog does not grow" in " ".join(checks.split())


def test_operators_have_the_figures_of_a_trial(bare_folder: RunFolder) -> None:
    """What only `characterize` measures has no column, and is pointed at; batches that were not counted are."""
    flow = " ".join(shown(bare_folder).sections["Flow"].split())
    assert "operator rows in /s 5th percentile selectivity rows lost" in flow
    assert "aggregate 3 of 40 batches not counted 400 k - 0.00125 -" in flow
    assert "A loss between two operators does not show here" in flow
    assert "streamgauge characterize WORKLOAD measures size, time and instances" in flow


def test_results_are_counted_by_name(bare_folder: RunFolder) -> None:
    """Of the span, of warm-up and span, of the whole trial: three numbers that would contradict each other."""
    sections = {name: " ".join(text.split()) for name, text in shown(bare_folder).sections.items()}
    assert "results of the span independent" in sections["Latency"]
    assert "Expected results are those of warm-up and measured span" in sections["Verification"]


def test_missing_percentile_is_a_dash_with_its_reason(bare_folder: RunFolder) -> None:
    """A percentile without evidence is "-", and the reason stands below the table."""
    latency = " ".join(shown(bare_folder).sections["Latency"].split())
    assert "3.7 s 4.3 s - 5.2 s 15,000 300" in latency
    assert "300 independent results (batches or windows) are too few, 1,000 are needed" in latency
    assert "match time does not apply" in latency


def test_not_judged_shows_no_zeros(bare_folder: RunFolder, make_result: Make) -> None:
    """An unjudged run has no table of zeros, but the reason."""
    unjudged = Verification(judged=False, independent=False, reference="", sentence="The reference crashed.")
    bare_folder.write_result(make_result(verification=unjudged))
    section = shown(bare_folder).sections["Verification"]
    assert "Answers: not judged. The reference crashed." in section
    assert "missing" not in section


def test_wrong_answers_show_examples(bare_folder: RunFolder, make_result: Make) -> None:
    """Examples of wrong rows are a table, escaped."""
    wrong = Verification(
        judged=True,
        independent=True,
        reference="DuckDB",
        expected=2,
        wrong=1,
        examples=({"kind": "wrong", "got": "<b>"},),
    )
    bare_folder.write_result(make_result(verification=wrong))
    assert "<td>&lt;b&gt;</td>" in rendered(bare_folder, None)


def test_a_promised_guarantee_stands_beside_what_was_seen(bare_folder: RunFolder, make_result: Make) -> None:
    """Rows that it allows are counted in the table, and a note says that they are no faults."""
    found = Verification(judged=True, independent=True, reference="DuckDB", expected=2, matched=2, duplicate=12)
    bare_folder.write_result(make_result(verification=found))
    assert "promised" not in shown(bare_folder).sections["Verification"]
    promised = found.model_copy(update={"delivery": "at_least_once", "allowed": {"duplicate": 12}})
    bare_folder.write_result(make_result(verification=promised))
    section = " ".join(shown(bare_folder).sections["Verification"].split())
    assert "uncommitted promised" in section
    assert "at_least_once" in section
    assert "The promised delivery guarantee allows 12 duplicate, so these rows are no faults." in section


def test_malformed_records_stand_beside_the_verification(bare_folder: RunFolder, make_result: Make) -> None:
    """With the whole rule, escaped; nothing where the workload states none."""
    caption = "Malformed records of warm-up and span, kept out of the answer"
    whole = Verification(judged=True, independent=True, reference="DuckDB", expected=2, matched=2)
    bare_folder.write_result(make_result(verification=whole))
    assert caption not in rendered(bare_folder, None)
    rule = "NOT coalesce(price < 10 AND " + "x" * 300 + ", false)"
    found = {"lines": MalformedRecords(rule=rule, malformed=0, records=100_000)}
    bare_folder.write_result(make_result(verification=whole.model_copy(update={"malformed": found})))
    made = rendered(bare_folder, None)
    assert caption in made
    assert f"<code>{rule.replace('<', '&lt;')}</code>" in made
    assert '<th scope="row">lines</th><td class="n">0</td><td class="n">100,000</td>' in made


def test_invalid_run_says_not_to_use_it(bare_folder: RunFolder, make_result: Make) -> None:
    """The first section says so, with the deciding check and the next step."""
    check = Check(name="driver", value=250_000, limit=100_000, unit="us", ok=False, state="invalid", sentence="Slip.")
    verdict = Verdict(value="invalid", checks=(check,), decided_by=("driver",), sentence="Late.", advice="Fewer rows.")
    bare_folder.write_result(make_result(verdict=verdict))
    first = shown(bare_folder).sections["200 k events/s"]
    for text in ("must not be used", "Late.", "driver: 250 ms, limit 100 ms", "Next: Fewer rows."):
        assert text in first


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


def test_several_sinks_have_rows_of_their_own(bare_folder: RunFolder, make_result: Make) -> None:
    """With more than one sink, latencies are per sink and named."""
    one = make_result().sinks[0]
    bare_folder.write_result(make_result(sinks=(one, one.model_copy(update={"name": "alerts"}))))
    section = shown(bare_folder).sections["Latency"]
    assert section.count("closing delay") >= 2
    assert "alerts" in section


def test_updates_have_both_figures(bare_folder: RunFolder, make_result: Make) -> None:
    """The newest event's is called so, beside that of every event; of other results nothing is added to its name."""
    assert "newest event" not in shown(bare_folder).sections["Latency"]
    newest = Latency(p50=8e5, max=1e6, count=40, effective_count=10)
    counted = Latency(p50=2.8e6, max=4.8e6, count=4000, effective_count=10)
    bare_folder.write_result(make_result(latency=Latencies(event_time_us=newest, until_counted_us=counted), sinks=()))
    page = shown(bare_folder)
    section = " ".join(page.sections["Latency"].split())
    assert "event time, newest event emission - event time, from the plan - - 800 ms" in section
    assert "until counted of every event" in section
    assert "2.8 s" in section
    whole = " ".join(" ".join(page.sections.values()).split())
    assert "event time p50 800 ms, p99 - p90 -" in whole
    assert "(newest event of each update) counted p50 2.8 s, p99 -" in whole


def test_several_sinks_are_verified_one_by_one(bare_folder: RunFolder, make_result: Make) -> None:
    """A row for each and one for all; the slowest, whose figures stand at the top, is named."""
    result = make_result()
    (one,) = result.sinks
    later = result.latency.model_copy(update={"notes": ("later",)})
    found = result.verification
    assert found is not None
    sinks = tuple(
        one.model_copy(update={"name": name, "latency": latency, "verification": found})
        for name, latency in (("fast", result.latency), ("alerts", later))
    )
    bare_folder.write_result(make_result(sinks=sinks, latency=later))
    page = shown(bare_folder)
    assert "the slowest sink, alerts" in page.sections["Latency"]
    assert [name in page.sections["Verification"] for name in ("fast", "alerts", "all")] == [True] * 3


def test_no_latency_says_so(bare_folder: RunFolder, make_result: Make) -> None:
    """Without a single result there is a sentence instead of an empty table."""
    bare_folder.write_result(make_result(latency=Latencies(), sinks=()))
    assert "no result of the measured span arrived" in shown(bare_folder).sections["Latency"]


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
    found = re.search(r"<title>height ([\d.]+)</title>", browse(probe, folder, "light", "--dump-dom"))
    assert found is not None
    return float(found.group(1))


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
