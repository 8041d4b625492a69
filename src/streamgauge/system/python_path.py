"""Sets entries of PYTHONPATH aside that hold another PySpark than the installed one.

Such entries are left over from a Spark distribution. Python looks there first, so streamgauge and every process that it
starts would import a PySpark of another version, and Spark would not start.
"""

import os
import site
from collections.abc import MutableMapping, Sequence
from importlib.machinery import PathFinder

VARIABLE = "PYTHONPATH"
PACKAGES = ("pyspark", "py4j")
OURS = __name__.partition(".")[0]
removed_entries: list[str] = []
"""The entries that this process has set aside."""


def drop_foreign_pyspark(search: list[str], environment: MutableMapping[str, str]) -> None:
    """Removes such entries from `search` (`sys.path`) and from PYTHONPATH of `environment`.

    An entry stays if it holds streamgauge too, or if no other place has its packages.
    """
    entries = [entry for entry in environment.get(VARIABLE, "").split(os.pathsep) if entry]
    kept = {os.path.abspath(place) for place in (*site.getsitepackages(), site.getusersitepackages())}
    places = {path for entry in entries if (path := os.path.abspath(entry)) not in kept and not _has([path], OURS)}
    elsewhere = [entry for entry in search if os.path.abspath(entry) not in places]
    foreign = {path for path in places if any(_has([path], one) and _has(elsewhere, one) for one in PACKAGES)}
    removed_entries.extend(entry for entry in entries if os.path.abspath(entry) in foreign)
    search[:] = [entry for entry in search if os.path.abspath(entry) not in foreign]
    if removed_entries:
        environment[VARIABLE] = os.pathsep.join(entry for entry in entries if entry not in removed_entries)


def _has(places: Sequence[str], package: str) -> bool:
    """A folder without code in it has no loader."""
    spec = PathFinder.find_spec(package, list(places))
    return spec is not None and spec.loader is not None
