"""Renders a document as one self-contained HTML file, without network or scripts, that also prints."""

import functools
import re

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from streamgauge.report.document_blocks import GLOSSARY, Document
from streamgauge.results.text.narrative import capital

_MARKED = re.compile(
    r"`(?P<code>[^`]+)`"
    r"|(?<=\d) (?=(?:%|[kMG]|[kMG]iB|[mun]?s|min|h)(?!\w))|(?<=\d [kMG]) (?=events)"
)
"""Code between backticks, or the space between a figure and its unit."""


def render(document: Document) -> str:
    """The page as text."""
    return _environment().get_template("document.html.j2").render(d=document, glossary=capital(GLOSSARY))


def _coded(text: str) -> Markup:
    """Turns text between backticks into code, and ties figures to their units, so that no line ends between them."""
    return Markup(_MARKED.sub(_mark, str(escape(text))))


def _mark(found: re.Match[str]) -> str:
    return f"<code>{found['code']}</code>" if found["code"] else "\N{NO-BREAK SPACE}"


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("streamgauge.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"svg": Markup, "coded": _coded, "capital": capital}
    return environment
