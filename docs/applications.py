"""Writes the tables of docs/applications.md from characterizations.

    python docs/applications.py RUN...           from folders that `streamgauge characterize` left, or their files
    python docs/applications.py --measure DIR    characterize every workload into DIR first, one after the other

The tables are written anew, and the text around them stays.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "applications.md"
FILE = "characterization.json"
_BLOCK = re.compile(r"(<!-- measured: applications -->\n).*?(<!-- end of measured -->)", re.DOTALL)

Found = Mapping[str, Any]


def read(path: Path) -> dict[str, Any]:
    """A finished characterization; SystemExit with the reason where there is none."""
    file = path / FILE if path.is_dir() else path
    try:
        found: dict[str, Any] = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path}: must be a folder of streamgauge characterize, or its {FILE} ({error})") from None
    if not found.get("finished"):
        raise SystemExit(f"{path}: was not finished: characterize {found.get('workload', 'it')} again")
    return found


def tables(every: Iterable[Found]) -> str:
    """All tables, applications in the order of their names; SystemExit where one is there twice."""
    found = sorted(every, key=lambda one: str(one["workload"]))
    names = [one["workload"] for one in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise SystemExit(f"two characterizations of {', '.join(twice)}: name one of each")
    parts = [_operators(found), _memory(found), _applied(found), _made(found)]
    return "\n\n".join(parts)


def _operators(found: Sequence[Found]) -> str:
    from streamgauge.report.characterization_terminal import cells
    from streamgauge.report.terminal import typed

    head = (
        "application", "operator", "type", "rows come", "selectivity", "bytes of a tuple", "time of a tuple, median",
        "p99", "instances, cumulative", "immediate", "thesis",
    )  # fmt: skip
    rows = []
    for one in found:
        for place, row in enumerate(one["operators"]):
            told = [typed(cell) for cell in cells(row, "cumulative", "immediate")]
            name = f"`{one['workload']}`" if place == 0 else ""
            rows.append((name, f"`{told[0]}`", row["type"], row["communication"], *told[1:]))
    return _table()(head, rows)


def _memory(found: Sequence[Found]) -> str:
    from streamgauge.report import words
    from streamgauge.report.terminal import typed

    rows = [
        (f"`{one['workload']}`", *(typed(words.size(one["memory"][name])) for name in ("min", "p50", "p95", "max")),
         one["memory"]["behaviour"], one["memory"]["level"])
        for one in found
        if one["memory"]
    ]  # fmt: skip
    return _table()(("application", "least memory of Spark", "p50", "p95", "most", "behaviour", "level"), rows)


def _applied(found: Sequence[Found]) -> str:
    lines = [(one["workload"], one["apply"]["line"]) for one in found]
    rows = [(f"`{name}`", f"`{line}`" if line else "not applicable") for name, line in lines]
    return _table()(("application", "what `--apply` says"), rows)


def _made(found: Sequence[Found]) -> str:
    """Of what input and on what machines: each way once, with the applications that it holds for."""
    ways: dict[str, list[str]] = {}
    for one in found:
        asked, here = one["input"], one["environment"]
        text = (
            f"{asked['slices']} slices of {asked['slice_events']} events ({asked['warmup_slices']} more to warm up), "
            f"{asked['rate_per_s']:g} events/s, seed {asked['seed']}; {here['cpu_model']}, {here['cpus']} processors, "
            f"{here['java']}, PySpark {here['pyspark']}"
        )
        ways.setdefault(text, []).append(f"`{one['workload']}`")
    return "\n".join(f"- {', '.join(names)}: {text}" for text, names in ways.items())


def _table() -> Callable[[Sequence[str], Iterable[Sequence[str]]], str]:
    """The form of all tables of the documents."""
    sys.path.insert(0, str(Path(__file__).parent))
    try:
        from tables import table  # type: ignore[import-not-found]
    finally:
        sys.path.pop(0)
    return table  # type: ignore[no-any-return]


def renewed(text: str, made: str) -> str:
    """The page with other tables; ValueError where it has no place for them."""
    if not _BLOCK.search(text):
        raise ValueError("the page has no place for the tables")
    return _BLOCK.sub(lambda match: f"{match[1]}{made}\n{match[2]}", text)


def measured(out: Path) -> list[str]:
    """Every workload characterized anew; gives the folders."""
    from streamgauge.workloads.base import names

    out.mkdir(parents=True, exist_ok=True)
    folders = []
    for name in names():
        print(f"characterizing {name}", file=sys.stderr)
        command = [sys.executable, "-m", "streamgauge", "characterize", name, "--json", "--out", str(out)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        folders.append(str(json.loads(done.stdout)["folder"]))
    return folders


def main(words: Sequence[str]) -> int:
    if len(words) == 2 and words[0] == "--measure":
        words = measured(Path(words[1]))
    if not words or words[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    PAGE.write_text(renewed(PAGE.read_text(), tables(read(Path(word)) for word in words)))
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
