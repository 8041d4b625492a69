"""A SPARK_HOME in which Python workers start fast.

Spark puts `python/lib/pyspark.zip` first on its workers' path, and Python compiles a zip's modules anew in every
process: seconds for each of the six kinds of worker that a streaming query starts, all on the path of its
first batches. The same package lies unpacked, with its compiled files, beside the running interpreter. So the view
leaves the zip out.
"""

from __future__ import annotations

from pathlib import Path

NOTICE = "a view without pyspark.zip: Python workers of this JVM import the package beside the interpreter"
"""How it stands among the settings in force."""


def installed_spark_home() -> Path:
    """The installed Spark itself."""
    import pyspark

    return Path(pyspark.__file__).parent


def view_of_spark_home(at: Path) -> Path:
    """Make a folder of links to the installed Spark without its `python` folder; returns it."""
    at.mkdir(parents=True, exist_ok=True)
    for entry in installed_spark_home().iterdir():
        if entry.name not in ("python", "__pycache__") and entry.suffix != ".py":
            link = at / entry.name
            if not link.exists():
                link.symlink_to(entry)
    return at
