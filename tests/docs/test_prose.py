"""The prose of documents and code by the rules of CONTRIBUTING.md: short sentences, plain phrases, no diaries."""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
USER_PAGES = [page for page in PAGES if page.name == "README.md" or page.parent.name in ("tutorials", "how-to")]
CODE = sorted(path for folder in ("src", "bench", "examples") for path in (ROOT / folder).rglob("*.py"))
MANUAL = [page for page in PAGES if page.parent.name != "results"]
RESULTS = [page for page in PAGES if page.parent.name == "results"]
PUBLISHED = {page for page in PAGES if (page.parent / "data" / f"{page.stem}.json").exists()}
"""Pages of published studies, each of which has a limit of its own (tools/tables/research.py)."""
PROJECT = [ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
TEXT_MODULES = sorted((ROOT / "src" / "streamgauge" / "results" / "text").glob("*.py"))
WORDS_MAX, README_LINES_MAX, MANUAL_WORDS_MAX = 35, 110, 38_000
WHOLE_WORDS_MAX, RESULTS_WORDS_MAX = 61_000, 6_000
"""Words of files as `wc -w` counts them, generated text and tables included: all documents, and pages of results."""
BANNED = (
    "but for", "in the place of", "is told", "are told", "besides", "some two minutes", "as ever", "is none", "nobody",
    "so far as", "of which",
)  # fmt: skip

TELEGRAMS = {
    r"\b(?:that|those) of\b": "The rate is that of this machine.",
    r"(?<!there )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|later\b)": "A line that is no row is left out.",
    r"\bow(?:e[sd]?|ing)\b": "A trial that ended early owes less.",
    r"\bcarr(?:y|ies|ied)\b": "A longer `--duration` carries it.",
    r"\bstands?\b (?!for\b|still\b)": "Its CPU stands under the name `broker`.",
    r"\bwants? a\b": "A target that matters wants a long span.",
    r"\bheld against\b|\bcannot be told\b|\btold from\b": "A limit on event time is held against until counted.",
    r"'s (?:own )?word\b": "The backlog rests on Spark's word.",
    r"\bby itself\b": "A filter keeps it by itself.",
    r"\b(?:ours|theirs), not\b": "Ours, not the overview's.",
    r"\b(?:all|as much as) (?:it|they) (?:read|took|had|was|were)\b": "The engine commits all it read.",
    r"(?:^|[.;] )(?-i:Of) (?:a|an|the|its|their|each|these|those|such)\b": "It ends. Of a search the log is elsewhere.",
    r"(?:^|[.;] )what (?:is|was|it|they) \w+ (?:is|stays|stands|counts)\b": "What is sustained stays sustained.",
}
"""Patterns of telegrams, each with a sentence that has one: a missing noun ("that of"), a denied noun ("no row"),
figures that act like people, relative clauses without a noun.
"""


def written(text: str) -> str:
    """A page without generated blocks, code and comments."""
    text = re.sub(r"<!-- generated: (.+?) -->.*?<!-- end of \1 -->", "", text, flags=re.DOTALL)
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)


def prose(text: str) -> str:
    """What is `written` outside of tables."""
    return re.sub(r"^ *\|.*$", "", written(text), flags=re.MULTILINE)


def by_hand(text: str) -> list[str]:
    """The words of a page, tables included, the targets of links left out."""
    return re.sub(r"\]\([^)]*\)|\||^[\s|:-]+$", " ", written(text), flags=re.MULTILINE).split()


def sentences(text: str) -> Iterator[str]:
    """The sentences of a page; headings, list items and quoted messages begin one of their own."""
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*>#]|\d+\.)\s)", prose(text)):
        plain = re.sub(r"`[^`]*`", "code", re.sub(r"\]\([^)]*\)", "]", block))
        if not plain.lstrip().startswith(">"):
            yield from (one.strip() for one in re.split(r"(?<=[.?!:;])\s+", plain) if one.strip())


def too_long(text: str) -> list[str]:
    return [one for one in sentences(text) if len(one.split()) > WORDS_MAX]


def banned(text: str) -> list[str]:
    """The banned phrases in a text. `None` is a word of Python, and so "is None" is not banned."""
    plain = " ".join(re.sub(r"\bNone\b", "null", prose(text)).lower().split())
    return [phrase for phrase in BANNED if re.search(rf"\b{phrase}\b", plain)]


def banned_in_code(source: str) -> list[tuple[int, str]]:
    """(line, phrase) of the banned phrases in docstrings, comments and texts of a module."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    texts = [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append((node.lineno, node.value))
    return [(line, phrase) for line, text in texts for phrase in banned(text)]


def telegrams(text: str) -> list[str]:
    """The places in a page that are written like a telegram, generated text and tables included, code not."""
    plain = re.sub(r"^ *```.*?^ *```$|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    plain = re.sub(r"`[^`\n]*`", "code", re.sub(r"\]\([^)]*\)", "]", plain))
    blocks = (" ".join(block.split()) for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*>#|]|\d+\.)\s)", plain))
    # The mark of a list item is not its first word.
    starts = [re.sub(r"^(?:[-*#>|]+|\d+\.) ", "", block) for block in blocks]
    found = (match for start in starts for pattern in TELEGRAMS for match in re.finditer(pattern, start, re.IGNORECASE))
    return [match.string[max(0, match.start() - 30) : match.end() + 30] for match in found]


def telegrams_in_code(source: str) -> list[str]:
    """The same in docstrings and texts of a module."""
    nodes = ast.walk(ast.parse(source))
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [place for text in texts for place in telegrams(text)]


def commits(text: str) -> list[str]:
    """Words that are commit hashes: seven or more hexadecimal digits, with a letter and a digit among them."""
    return [
        word for word in re.findall(r"\b[0-9a-f]{7,40}\b", text) if re.search("[a-f]", word) and re.search(r"\d", word)
    ]


@pytest.mark.parametrize(("files", "faults_of"), [
    (USER_PAGES, too_long), (PAGES, banned), (CODE, banned_in_code), (MANUAL, lambda text: commits(prose(text))),
    ([*PAGES, *PROJECT], telegrams), (TEXT_MODULES, telegrams_in_code),
], ids=["sentences", "phrases", "phrases in code", "commits", "telegrams", "telegrams in texts"])  # fmt: skip
def test_prose_is_plain(files: Iterable[Path], faults_of: Callable[[str], list[str]]) -> None:
    """Commits stand in the tables of results, and not in the manual."""
    faults = {str(path.relative_to(ROOT)): faults_of(path.read_text()) for path in files}
    assert {name: each for name, each in faults.items() if each} == {}


BANNED_IN_CODE = '''
def nobody(value):
    """Every value, but
    for the last. It is None without one."""
    # As ever, the first one stays.
    raise ValueError(f"{value} is told twice")
'''


@pytest.mark.parametrize(("faults_of", "text", "faults"), [
    (too_long, f"One. {'word ' * 35}end.\n\n- {'word ' * 20}", [f"{'word ' * 35}end."]),
    (banned, "It is fast, but\nfor joins.", ["but for"]), (banned, "```\nbut for\n```\n\n| nobody |\n", []),
    (banned_in_code, BANNED_IN_CODE, [(5, "as ever"), (3, "but for"), (6, "is told")]),
    (commits, "As of de9d4be, 1234567 and effaced stay.", ["de9d4be"]),
    *((telegrams, plain, []) for plain in (
        "CSV lines that cannot be parsed are skipped. There is no extension.", "The rate holds for this machine.",
        "At 60 % the queue is no longer full.", "For an important target, run at least 500 batches.",
        "Background load never invalidates a sustained trial.", "The recorder stood still. `...` stands for a number.",
    )),
])  # fmt: skip
def test_faults_of_prose_are_found(faults_of: Callable[[str], list[Any]], text: str, faults: list[Any]) -> None:
    """Over a line's end too; not in code, in tables, in names, nor in what Python calls None."""
    assert faults_of(text) == faults


@pytest.mark.parametrize(("pattern", "sentence"), TELEGRAMS.items())
def test_telegrams_are_found(pattern: str, sentence: str) -> None:
    """Each pattern finds its sentence, in a table, in a list and in a text of a module too; not in code."""
    assert re.search(pattern, sentence, re.IGNORECASE)
    pages = sentence, f"| a | b |\n| {sentence} | c |", f"- {sentence}"
    assert [page for page in pages if not telegrams(page)] == []
    assert telegrams_in_code(f"TEXT = {sentence!r}") != []
    assert telegrams(f"```\n{sentence}\n```\n") == []


def words(pages: Iterable[Path]) -> dict[str, int]:
    return {str(page.relative_to(ROOT)): len(page.read_text().split()) for page in pages}


@pytest.mark.parametrize(("pages", "words_max"), [
    ([*(page for page in MANUAL if page not in PUBLISHED), *PROJECT], WHOLE_WORDS_MAX), (RESULTS, RESULTS_WORDS_MAX),
], ids=["documents", "results"])  # fmt: skip
def test_documents_have_a_limit_with_generated_text(pages: list[Path], words_max: int) -> None:
    counts = words(pages)
    assert sum(counts.values()) <= words_max, sorted(counts.items(), key=lambda pair: -pair[1])[:10]


def test_the_manual_is_short() -> None:
    """Words by hand, those in tables too; generated tables, code and the pages of results do not count."""
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES_MAX
    words = {
        str(page.relative_to(ROOT)): len(by_hand(page.read_text())) for page in MANUAL if page.is_relative_to(DOCS)
    }
    assert sum(words.values()) <= MANUAL_WORDS_MAX, sorted(words.items(), key=lambda pair: -pair[1])


def test_the_site_builds_and_opens_from_disk(tmp_path: Path) -> None:
    """Every page is in the navigation, every link resolves, and nothing is loaded from elsewhere."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, env={"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    pages = list(tmp_path.rglob("*.html"))
    loaded = r'<(?:script|link|img|iframe)[^>]+(?:src|href)="https?://[^"]+'
    assert [page.name for page in pages if re.search(loaded, page.read_text())] == []
    assert len(pages) > 40
