"""What is wrong with an engine's options, as far as their names and choices say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from streamgauge.engines.seam import Setting
from streamgauge.errors import Problem, near, nearest


def problems_of(options: Mapping[str, str], settings: Sequence[Setting], engine: str) -> Iterator[Problem]:
    """Options that are none of the engine's settings, and values that are not among a setting's choices."""
    known = {setting.name: setting for setting in settings}
    for name, value in options.items():
        if name not in known:
            meant = near(name, known)
            way_out = f"--option {meant}=..." if meant else f"one of {', '.join(known)}"
            yield Problem(f"option {name}", f"is not an option of {engine}", value, way_out)
        elif (choices := known[name].choices) and value not in choices:
            way_out = f"--option {name}={nearest(value, choices)}"
            yield Problem(f"option {name}", f"must be one of {', '.join(choices)}", value, way_out)
