"""The tables in the documents that are made from the code and from data files, so that neither can disagree.

    python tools/docs_tables.py           write them between their markers
    python tools/docs_tables.py --check   exit 1 if one is out of date (`tests/docs` checks the same)

A table stands between `<!-- generated: NAME -->` and `<!-- end of NAME -->`. Measured figures: `results: NAME` is the
table of docs/results/data/NAME.csv. Coverage of the four works: docs/research/coverage.csv; of
Ehrenstein's specification, with the tests: docs/research/scalability-checklist.csv. Pages of published studies come
from docs/research/data (research_pages.py makes their files).
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from functools import partial

from tables import commands, coverage, dataflow, engines, fields, research, results, workloads
from tables.markdown import DOCS, described

sys.path.append(str(DOCS.parent))  # a table is made from `tests`
PAGES = (DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md")))


@functools.cache
def makers() -> dict[str, Callable[[], str]]:
    """Every table that there is, by the name in its markers."""
    found: dict[str, Callable[[], str]] = {}
    for module in (workloads, engines, commands, results, coverage, dataflow, research):
        found |= module.makers()
    for name, rows in fields.blocks().items():
        found[name] = partial(described, rows)
    return found


_BLOCK = re.compile(r"<!-- generated: (?P<name>[^>]+?) -->\n.*?<!-- end of (?P=name) -->", re.DOTALL)


def renewed(text: str) -> str:
    """A page's text with every table as it must be; KeyError where a marker names no table."""
    there = makers()

    def block(match: re.Match[str]) -> str:
        name = match["name"]
        return f"<!-- generated: {name} -->\n{there[name]()}\n<!-- end of {name} -->"

    return _BLOCK.sub(block, text)


def stale() -> list[str]:
    """The pages whose tables are not what the code says."""
    pages = [page for page in PAGES if page.read_text() != renewed(page.read_text())]
    return [str(page.relative_to(DOCS.parent)) for page in pages]


def main() -> int:
    wrong = stale()
    if "--check" in sys.argv:
        print(
            "\n".join(f"{name}: tables are out of step with the code: python tools/docs_tables.py" for name in wrong),
            end="",
        )
        return 1 if wrong else 0
    for name in wrong:
        page = DOCS.parent / name
        page.write_text(renewed(page.read_text()))
        print(f"wrote {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
