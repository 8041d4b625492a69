"""The HTML templates: escaped, strict about what they name, with formatters and labels at hand."""

from __future__ import annotations

import functools
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from streamgauge import labels, units
from streamgauge.report import words


def template(name: str) -> Any:
    """The template in this folder with that name."""
    return _environment().get_template(name)


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("streamgauge.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"words": words, "units": units, "labels": labels}
    environment.filters["svg"] = Markup
    return environment
