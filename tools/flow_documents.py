"""The JSON form of every workload's flow at its default parameters, and the JSON Schema of the form, as files.

python tools/flow_documents.py           write them
python tools/flow_documents.py --check   exit 1 if one is out of date (`tests/unit/workloads` checks the same)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FLOWS = ROOT / "tests" / "unit" / "workloads" / "data" / "flows"
SCHEMA = ROOT / "src" / "streamgauge" / "dataflow" / "json_form" / "flow.schema.json"


def text_of(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def files() -> Iterator[tuple[Path, str]]:
    """Each file and the text that it must have."""
    from streamgauge.dataflow.json_form.document import json_schema
    from streamgauge.workloads.registry import RATE_PER_S, get, names

    yield SCHEMA, text_of(json_schema())
    for name in names():
        workload = get(name)
        yield FLOWS / f"{name}.json", text_of(workload.flow_document(workload.read({}), RATE_PER_S))


def stale() -> dict[Path, str]:
    """The files that do not have their text, those of workloads that are gone included (as an empty text)."""
    made = dict(files())
    gone = {path: "" for path in FLOWS.glob("*") if path not in made}
    return gone | {path: text for path, text in made.items() if not path.exists() or path.read_text() != text}


def main() -> int:
    changed = stale()
    for path, text in changed.items():
        print(path.relative_to(ROOT))
        if "--check" in sys.argv:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if text:
            path.write_text(text)
        else:
            path.unlink()
    return 1 if changed and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
