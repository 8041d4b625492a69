"""Pages of the documentation: their code, inline names and generated tables."""

import importlib
import re
import sys

import pytest

from tests.helpers_modules import ROOT, load

FOLDERS = ("docs", "bench", "examples", "experiments")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
every_page = pytest.mark.parametrize("page", PAGES, ids=NAMES)


sys.path.append(str(ROOT / "tools"))  # where python finds the modules of a tool that it starts
TABLES = load(ROOT / "tools" / "docs_tables.py")
COMMANDS = importlib.import_module("tables.commands")
COVERAGE = importlib.import_module("tables.coverage")
RESULTS = importlib.import_module("tables.results")
TUNING_PROFILES = importlib.import_module("tables.tuning_profiles")


def fences(text: str) -> list[tuple[str, str, str]]:
    """(mark, language, code) of each fenced block; the mark is the comment on the line before it, or nothing."""
    pattern = re.compile(r"(?:^<!-- (tested[^>]*?) -->\n)?^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    return [(mark or "", language, code) for mark, language, code in pattern.findall(text)]


def spans(text: str) -> list[str]:
    """The inline code of a page, outside its fenced blocks."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))


def code_lines(text: str) -> list[str]:
    """Every line of code, fenced or inline."""
    return [line for _, _, code in fences(text) for line in code.splitlines()] + spans(text)
