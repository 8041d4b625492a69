"""A hook of MkDocs: files of the repository that pages link to become pages of the site, below `project/`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
SHIM = re.compile(r"https://unpkg\.com/iframe-worker/shim")
LINKED = ("CHANGELOG.md", "CONTRIBUTING.md", "examples/*.md", "examples/*.py", "experiments/*.md", "bench/*.md")
_OUTSIDE = re.compile(r"\]\((?:\.\./)+(?=(?:CHANGELOG|CONTRIBUTING|examples/|experiments/|bench/))([^)\s]+)\)")
_RELATIVE = re.compile(r"\]\((?!https?://|#)([^)\s]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the linked files; Python is shown as code."""
    for path in sorted(found for pattern in LINKED for found in ROOT.glob(pattern)):
        text, name = path.read_text(), path.relative_to(ROOT)
        if path.suffix == ".py":
            name, text = name.with_suffix(".py.md"), f"# {name}\n\n```python\n{text}```\n"
        files.append(File.generated(config, f"project/{name}", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Lead links between `docs/` and the linked files to their pages."""
    up = "../" * page.file.src_uri.count("/")
    if page.file.src_uri.startswith("project/"):
        return _RELATIVE.sub(lambda link: f"]({_from_project(page.file.src_uri, link[1], files)})", markdown)
    return _OUTSIDE.sub(lambda link: f"]({up}project/{_as_page(link[1])})", markdown)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Load the search's helper from the site itself."""
    return SHIM.sub("../" * page.url.count("/") + "assets/iframe-worker.js", output)


def on_post_template(output: str, template_name: str, config: Any) -> str:
    """As `on_post_page`, of the page for what is not found."""
    return SHIM.sub("assets/iframe-worker.js", output)


def _as_page(target: str) -> str:
    return re.sub(r"\.py(?=$|#)", ".py.md", target)


def _from_project(source: str, target: str, files: Files) -> str:
    """The link's page; a file that has none is named without a link to it (the page itself)."""
    path, mark, anchor = target.partition("#")
    absolute = (ROOT / source.removeprefix("project/")).parent.joinpath(path).resolve().relative_to(ROOT)
    inside = (
        str(absolute.relative_to("docs")) if absolute.parts[:1] == ("docs",) else f"project/{_as_page(str(absolute))}"
    )
    if files.get_file_from_path(inside) is None:
        return "#"
    return "../" * source.count("/") + inside + mark + anchor
