"""A SPARK_HOME in which Python workers start fast.

Spark puts `python/lib/pyspark.zip` first on its workers' path, and Python compiles modules of a zip again in every
process. That costs seconds for each of six kinds of workers during the first batches. The installed package has
compiled files, so the view omits the zip.
"""

from __future__ import annotations

from pathlib import Path

NOTICE = "a view without pyspark.zip: Python workers of this JVM import the package beside the interpreter"
"""Listed among the settings in force."""


def installed_spark_home() -> Path:
    """The installed Spark itself."""
    import pyspark

    return Path(pyspark.__file__).parent


def view_of_spark_home(at: Path) -> Path:
    """Creates a folder of links to the installed Spark without its `python` folder. Returns it."""
    at.mkdir(parents=True, exist_ok=True)
    for entry in installed_spark_home().iterdir():
        if entry.name not in ("python", "__pycache__") and entry.suffix != ".py":
            link = at / entry.name
            if not link.exists():
                link.symlink_to(entry)
    return at
