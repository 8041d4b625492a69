"""Pages of studies that were run, made from their JSON in docs/research/data, and the list of these pages.

A file of that folder is what `streamgauge experiment FILE --json` printed. Its name is the experiment's, with `_` for
`/`: karimov_exp1_aggregation.json. Cells of further days are in karimov_exp1_aggregation.2.json and so on, and replace
those of the same number. Remarks by hand stand beside it, in a text file of the same name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, takewhile
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from streamgauge.core.formatting import NONE, format_size, format_us, format_value
from streamgauge.report.document_blocks import Section, Table
from streamgauge.report.documents.matrix import document
from streamgauge.results.labels import VERDICTS
from streamgauge.results.matrix import MatrixCell, MatrixResult
from tables.markdown import DOCS, code

BAR = "\\|"
"""A bar within a cell."""
ABOVE = ("tuning", "took")
"""Columns that a page leaves out: the heading has the profile."""
_UNIT = re.compile(r"(?<=\d) (?=[^\d\s])")
OURS = "Latency against load"
"""The section of experiments/README.md whose experiments are in no paper."""
WORDS_MAX = 300
"""Words of a page outside of its tables."""
_EXPERIMENT = re.compile(
    r"^\| \[(?P<file>\w+/\w+\.toml)\]\([^)]*\) \| (?P<what>.+?) \| [^|]* \| (?P<differs>.+?) \|$", re.MULTILINE
)
_PATH = re.compile(r"(?<![\w.:/])/(?:home|root|tmp|usr|var|opt|mnt|work|Users)/")


class Listed(NamedTuple):
    """An experiment file, and its row in experiments/README.md."""

    file: str
    work: str
    what: str
    differs: str


def experiments(readme: str) -> dict[str, Listed]:
    """The experiments of the works by the names of their data."""
    found = {}
    for section in readme.split("\n## ")[1:]:
        work = section.partition("\n")[0]
        for match in _EXPERIMENT.finditer(section):
            name = match["file"].removesuffix(".toml").replace("/", "_")
            found[name] = Listed(f"experiments/{match['file']}", work, match["what"], match["differs"])
    return found


def makers(docs: Path = DOCS) -> dict[str, Callable[[], str]]:
    """The block of each page, and the list of pages."""
    files = data_files(docs)
    return {"research": partial(index, files), **{f"research: {file.stem}": partial(page, file) for file in files}}


def data_files(docs: Path) -> list[Path]:
    """The first file of each study."""
    return sorted(file for file in (docs / "research" / "data").glob("*.json") if "." not in file.stem)


def further_file(file: Path, day: int) -> Path:
    """The file of another day, from 2."""
    return file.with_suffix(f".{day}.json")


def read(file: Path) -> tuple[list[MatrixResult], Listed]:
    """The study as measured on each day, and its experiment.

    Raises:
        ValueError: there is no such experiment, a path of a machine is in a file, or days have other settings.
    """
    known = experiments((file.parents[3] / "experiments" / "README.md").read_text())
    if file.stem not in known:
        raise ValueError(f"{file.name}: must have the name of an experiment: {', '.join(known)}")
    further = takewhile(Path.exists, (further_file(file, day) for day in count(2)))
    days = [_read_day(each) for each in (file, *further)]
    for name in ("experiment", "varied", "planned", "quick"):
        if any(getattr(each, name) != getattr(days[0], name) for each in days):
            raise ValueError(f"{file.name}: must have the {name} of every further day")
    return days, known[file.stem]


def _read_day(file: Path) -> MatrixResult:
    text = file.read_text()
    if match := _PATH.search(text):
        raise ValueError(f"{file.name}: must have no path of a machine, and has {text[match.start() :][:40]!r}")
    return MatrixResult.model_validate_json(text)


def _together(days: Sequence[MatrixResult]) -> MatrixResult:
    """The last day's study with the newest of each cell."""
    cells = {cell.number: cell for study in days for cell in study.cells}
    return days[-1].model_copy(update={"cells": tuple(cells[number] for number in sorted(cells))})


def title(file: Path) -> str:
    """`Karimov et al. 2018: exp1 aggregation`; of a quick look with that remark."""
    (study, *_), listed = read(file)
    name = Path(listed.file).stem.replace("_", " ")
    return f"{listed.work}: {name}{' (a look)' if study.quick else ''}"


def index(files: Iterable[Path]) -> str:
    """A list of the pages."""
    rows = [f"- [{title(file)}]({file.stem}.md), {read(file)[0][-1].start_time[:10]}" for file in files]
    return "\n".join(rows) or "None yet."


def page(file: Path) -> str:
    """A page; ValueError if its text is longer than `WORDS_MAX`."""
    days, listed = read(file)
    study = _together(days)
    remarks = file.with_suffix(".txt")
    sections = {section.id: section for section in document(study).sections}
    blocks = [f"# {title(file)}"]
    if study.quick:
        blocks.append("**A look**, not a figure: one short trial a cell, at a given rate, no search.")
    blocks += [
        f"{'What it asks' if listed.work == OURS else 'In the paper'}: {listed.what}.",
        f"What differs: {listed.differs}.",
        *([remarks.read_text().strip()] if remarks.exists() else []),
        f"```\n{_command(study, listed)}\n```",
        *(_origin(study, days, file) for study in days),
    ]
    if "published" in sections:
        hardware = study.published.hardware if study.published else ""
        blocks += [f"## Published\n\nMeasured by the paper on {hardware}.", _table(sections["published"])]
    form = sections.get("paper-form", sections["cells"])
    for tuning in dict.fromkeys(_tuning(study, cell) for cell in study.cells):
        cells = {
            str(cell.number)
            for cell in study.cells
            if _tuning(study, cell) == tuning and cell.verdict != "invalid"  # its figures must not be used
        }
        blocks += [f"## Measured here, {tuning}", _table(form, cells)]
    if others := "\n".join(_not_sustained(study)):
        blocks += ["## Not sustained, or not run", others]
    text = "\n\n".join(blocks)
    words = len(re.sub(r"^\|.*?$|^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL).split())
    if words > WORDS_MAX:
        raise ValueError(f"{file.name}: must have at most {WORDS_MAX} words outside of tables, and has {words}")
    return text


def _tuning(study: MatrixResult, cell: MatrixCell) -> str:
    return str(cell.settings.get("tuning") or study.experiment.get("tuning") or "unknown")


def _command(study: MatrixResult, listed: Listed) -> str:
    """The command that measures the same cells again."""
    words = ["streamgauge", "experiment", listed.file]
    if len(study.cells) < study.planned:
        words += ["--cells", ",".join(str(cell.number) for cell in study.cells)]
    return " ".join([*words, *["--quick"] * study.quick])


def _origin(study: MatrixResult, days: Sequence[MatrixResult], file: Path) -> str:
    """Date, machine, its speed, versions and data; of several days also their cells."""
    here, day = study.environment, days.index(study) + 1
    later = {cell.number for each in days[day:] for cell in each.cells}
    numbers = [str(cell.number) for cell in study.cells if cell.number not in later]
    cells = f", cells {', '.join(numbers)}" if len(days) > 1 else ""
    data = file if day == 1 else further_file(file, day)
    facts = [f"{here.get('cpu_model')}, {here.get('cpus')} CPUs", format_size(here.get("memory_bytes"))]
    facts += [f"{name} {here[name]}" for name in ("streamgauge", "python", "pyspark", "java") if name in here]
    if known := [cell.reference_work_us for cell in study.cells if cell.reference_work_us is not None]:
        facts.append(f"reference work {format_us(median(known))}")
    return f"Measured on {study.start_time[:10]}{cells}: {'; '.join(facts)}. [Data](data/{data.name})."


def _table(section: Section, cells: Collection[str] | None = None) -> str:
    """The table of a section, without empty columns. `cells`: the numbers of the cells to show.

    Figures do not break before their units, and bars stand without blanks: words of documents are counted.
    """
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    rows = [[cell.text for cell in row.cells] for row in table.rows if cells is None or row.cells[0].text in cells]
    shown = [
        n for n, column in enumerate(table.columns)
        if not column.prose and column.heading not in ABOVE and {row[n] for row in rows} - {"", NONE}
    ]  # fmt: skip
    head = [table.columns[n].heading for n in shown]
    lines = [
        head,
        ["-:" if table.columns[n].number else "-" for n in shown],
        *([_UNIT.sub("&nbsp;", row[n]) for n in shown] for row in rows),
    ]
    return "\n".join(f"|{'|'.join(text.replace('|', BAR) for text in line)}|" for line in lines)


def _not_sustained(study: MatrixResult) -> Iterator[str]:
    """Every other cell with its verdict and the checks that decided it, and what was not run."""
    for cell in study.cells:
        for load, found in (("", cell), (" at 90 %", cell.at_90_percent)):
            if found is not None and found.verdict not in (None, "sustained"):
                checks = f", by {', '.join(map(code, found.decided_by.split(', ')))}" if found.decided_by else ""
                yield f"- cell {cell.number}{load} ({_settings(cell.settings)}): {VERDICTS[found.verdict]}{checks}"
    if missing := study.planned - len(study.cells):
        yield f"- {missing} further cells were not run"
    yield from (f"- left out of the look: {_settings(one)}" for one in study.left_out)
    yield from (f"- no cell has {name}: {why}" for name, why in study.no_cells.items())


def _settings(settings: Mapping[str, Any]) -> str:
    return ", ".join(format_value(value) for value in settings.values() if value is not None)
