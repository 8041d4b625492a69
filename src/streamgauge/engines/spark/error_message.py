"""Extracts the reason from Spark's nested errors."""

from __future__ import annotations

import re


def error_message(text: str) -> str:
    """The innermost reason in one or two lines."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:") or re.match(r"[\w.]*(Error|Exception)\b", line)]
    chosen = [lines[0], causes[-1]] if lines and causes else lines[:2]
    return "\n".join(dict.fromkeys(line[:300] for line in chosen)) or "the engine gave no reason"
