"""The pages of published studies below docs/research, their list in reproduce.md and their lines in mkdocs.yml.

    python tools/research_pages.py                      write them, and remove pages without data
    python tools/research_pages.py --check              exit 1 if one is out of date
    python tools/research_pages.py --add FOLDER NAME    first copy FOLDER/matrix.json, without paths of this machine, to
                                                        docs/research/data/NAME.json; NAME: karimov_exp1_aggregation.
                                                        If it exists, as a further day: NAME.2.json

See tables/research.py for what a page holds. `tests/docs` makes every page again and compares.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from itertools import chain, count
from pathlib import Path

from tables import research

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- generated: {} -->", "<!-- end of {} -->"
LAST_ENTRY = "      - Coverage of the four works: research/coverage.md\n"
"""The line of mkdocs.yml behind which the pages stand."""
_ENTRY = re.compile(r"^ +- .*# from tools/research_pages\.py\n", re.MULTILINE)


def expected(root: Path = ROOT) -> dict[Path, str | None]:
    """The text of every file that depends on the data; None where a page has to go."""
    docs, site = root / "docs", root / "mkdocs.yml"
    listed, folder = docs / "research" / "reproduce.md", docs / "research"
    blocks = {name: make() for name, make in research.makers(docs).items()}
    pages = {
        folder / f"{name.partition(': ')[2]}.md": f"{BEGIN.format(name)}\n{text}\n{END.format(name)}\n"
        for name, text in blocks.items() if name != "research"
    }  # fmt: skip
    gone = [
        page
        for page in folder.glob("*.md")
        if page not in pages and page.read_text().startswith("<!-- generated: research: ")
    ]
    block = re.compile(f"(?<={BEGIN.format('research')}\n).*?(?=\n{END.format('research')})", re.DOTALL)
    entries = "".join(
        f"      - {json.dumps(research.title(file))}: research/{file.stem}.md  # from tools/research_pages.py\n"
        for file in research.data_files(docs)
    )
    nav = _ENTRY.sub("", site.read_text()).replace(LAST_ENTRY, LAST_ENTRY + entries)
    return {
        **pages, **dict.fromkeys(gone), site: nav,
        listed: block.sub(lambda _: blocks["research"], listed.read_text()),
    }  # fmt: skip


def stale(files: Mapping[Path, str | None]) -> list[Path]:
    """Those that are not as expected."""
    return [file for file, text in files.items() if (file.read_text() if file.exists() else None) != text]


def write(files: Mapping[Path, str | None]) -> list[Path]:
    """Writes or removes those that are not as expected, and names them."""
    changed = stale(files)
    for file in changed:
        text = files[file]
        if text is None:
            file.unlink()
        else:
            file.write_text(text)
    return changed


def add(folder: Path, name: str, root: Path = ROOT) -> Path:
    """Copies the study of a folder; its own path is cut to the name of the folder."""
    study = json.loads((folder / "matrix.json").read_text())
    study["folder"] = Path(study["folder"]).name
    file = root / "docs" / "research" / "data" / f"{name}.json"
    file.parent.mkdir(exist_ok=True)
    days = chain([file], (research.further_file(file, day) for day in count(2)))
    file = next(each for each in days if not each.exists())
    file.write_text(json.dumps(study, indent=1) + "\n")
    return file


def main(words: Sequence[str]) -> int:
    if words[:1] == ["--add"] and len(words) == 3:
        print(f"wrote {add(Path(words[1]), words[2])}")
    elif words not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    files = expected()
    if words == ["--check"]:
        for file in stale(files):
            print(f"{file.relative_to(ROOT)}: out of step with docs/research/data: python tools/research_pages.py")
        return 1 if stale(files) else 0
    for file in write(files):
        print(f"{'wrote' if file.exists() else 'removed'} {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
