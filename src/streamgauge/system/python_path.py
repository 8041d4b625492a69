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
_removed: list[str] = []


def drop_foreign_pyspark(search: list[str], environment: MutableMapping[str, str]) -> list[str]:
    """Removes such entries from `search` (`sys.path`) and from PYTHONPATH of `environment`; returns them.

    An entry stays if it holds streamgauge too, or if no other place has its packages.
    """
    entries = [entry for entry in environment.get(VARIABLE, "").split(os.pathsep) if entry]
    installed_here = {os.path.abspath(place) for place in (*site.getsitepackages(), site.getusersitepackages())}
    candidates = [
        entry for entry in entries if os.path.abspath(entry) not in installed_here and not _has([entry], OURS)
    ]
    places = {os.path.abspath(entry) for entry in candidates}
    elsewhere = [entry for entry in search if os.path.abspath(entry) not in places]
    foreign = {entry for entry in candidates if any(_has([entry], one) and _has(elsewhere, one) for one in PACKAGES)}
    if not foreign:
        return []
    gone = {os.path.abspath(entry) for entry in foreign}
    search[:] = [entry for entry in search if os.path.abspath(entry) not in gone]
    if remaining := [entry for entry in entries if entry not in foreign]:
        environment[VARIABLE] = os.pathsep.join(remaining)
    else:
        del environment[VARIABLE]
    removed = [entry for entry in entries if entry in foreign]
    _removed.extend(removed)
    return removed


def removed_entries() -> tuple[str, ...]:
    """The entries that this process has set aside."""
    return tuple(_removed)


def _has(places: Sequence[str], package: str) -> bool:
    """A folder without code in it has no loader."""
    spec = PathFinder.find_spec(package, list(places))
    return spec is not None and spec.loader is not None
