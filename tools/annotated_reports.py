"""The numbered pictures of docs/how-to/read-a-report.md, from the reports of three trials, and README's, unnumbered.

    python tools/annotated_reports.py sustained=RUN/trials/04 not-sustained=RUN/trials/02 undecided=RUN/trials/06
    python tools/annotated_reports.py readme=RUN

Needs Chromium. The figures in the lists and in README must be those of the pictures.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

IMAGES = Path(__file__).parent.parent / "docs" / "images"
WIDTH = 1100

VERDICT, RATE, BACKLOG = "#answer h2", "rate (events/s)", "backlog (events)"
MARKS: dict[str, list[str]] = {
    "sustained": [
        VERDICT,
        "were offered for",
        "results expected|windows expected",
        "event time p50",
        "cpu system under test",
        "Warning: driver and SUT",
        RATE,
        BACKLOG,
        "latency by second",
    ],
    "not-sustained": [VERDICT, ".because", "were offered for", "ended early", "Next:", RATE, BACKLOG],
    "readme": [],
    "undecided": [VERDICT, ".because", "were offered for", "Note: progress", "Next:"],
}
"""What the numbers mark, in order: a CSS selector, or the first words of an element (alternatives by `|`)."""

SCRIPT = """
<style>.mark {position: absolute; width: 32px; height: 32px; border-radius: 16px; background: #5b3fd6; color: #fff;
  font: bold 18px/32px system-ui, sans-serif; text-align: center; box-shadow: 0 0 0 2px #fff; z-index: 9}</style>
<script>
const marks = %s;
const texts = [...document.querySelectorAll("p, dt, #over-time svg text")];
const find = what => document.querySelector(/^[#.]/.test(what) ? what : "nothing") ||
  texts.find(one => one.textContent === what) ||
  texts.find(one => what.split("|").some(words => one.textContent.includes(words)));
const left = document.querySelector("#answer").getBoundingClientRect().left;
marks.forEach((what, i) => {
  const marked = find(what), box = marked.getBoundingClientRect(), mark = document.createElement("div");
  mark.className = "mark";
  mark.textContent = i + 1;
  mark.style.top = (box.top + scrollY + Math.min(box.height, 48) / 2 - 16) + "px";
  const beside = marked instanceof SVGElement ? box.left - 42 : left - 42;
  mark.style.left = (marked.tagName === "DT" ? box.right - 34 : beside) + "px";
  document.body.append(mark);
});
</script>
"""


def annotate(kind: str, report: Path, height: int) -> None:
    """Writes docs/images/report-KIND.png from a report's page, its upper `height` pixels."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("Chromium is not installed: apt install chromium")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_text(report.read_text().replace("</body>", SCRIPT % json.dumps(MARKS[kind]) + "</body>"))
        picture = IMAGES / (f"report-{kind}.png" if MARKS[kind] else "report.png")
        subprocess.run(
            [
                chromium,
                "--headless",
                "--no-sandbox",
                "--hide-scrollbars",
                f"--window-size={WIDTH},{height}",
                f"--screenshot={picture}",
                page.as_uri(),
            ],
            check=True,
            capture_output=True,
        )


def main() -> None:
    heights = {"sustained": 1400, "not-sustained": 1300, "undecided": 1300, "readme": 1400}
    for argument in sys.argv[1:]:
        kind, _, folder = argument.partition("=")
        if kind not in MARKS:
            sys.exit(f"{argument}: the part before = must be one of {', '.join(MARKS)}")
        annotate(kind, Path(folder) / "report.html", heights[kind])


if __name__ == "__main__":
    main()
