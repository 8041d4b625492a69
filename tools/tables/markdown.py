"""Markdown of tables, and where the documents are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; bars inside cells are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def described(rows: Iterable[tuple[str, str]]) -> str:
    """A Markdown list of names and what each means."""
    return "\n".join(f"- {name}: {meaning}" for name, meaning in rows)


def code(text: object) -> str:
    return f"`{text}`"


def listed(names: Iterable[str]) -> str:
    return ", ".join(map(code, names)) or "-"
