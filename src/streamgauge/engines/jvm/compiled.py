"""The class path of a job on the JVM: an engine's jars, Spark's Catalyst, and our classes.

Our sources are compiled at first use by the Scala compiler that PySpark ships, so that a Java runtime is enough. The
classes are kept beside the jars, by the hash of the sources and of what they are compiled against.
"""

import contextlib
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from streamgauge.core.errors import EngineError, MachineError
from streamgauge.system.java import cache, find_java, java_environment

CATALYST = (
    "antlr4-runtime", "arrow-format", "arrow-memory-core", "arrow-vector", "commons-codec", "commons-compiler",
    "commons-lang3", "commons-text", "datasketches-java", "datasketches-memory", "hadoop-client-api",
    "hadoop-client-runtime", "icu4j", "ivy", "janino", "jcl-over-slf4j", "json4s-ast", "json4s-core",
    "json4s-jackson", "json4s-jackson-core", "json4s-scalap", "jts-core", "metrics-core", "paranamer",
    "scala-library", "scala-parser-combinators", "scala-reflect", "scala-xml", "spark-catalyst", "spark-common-utils",
    "spark-common-utils-java", "spark-config", "spark-core", "spark-network-common", "spark-network-shuffle",
    "spark-sql-api", "spark-tags", "spark-unsafe", "spark-variant", "univocity-parsers", "xbean-asm9-shaded",
)  # fmt: skip
"""The jars of PySpark in which Catalyst works without a session."""
FIRST = (
    "slf4j-api", "log4j-api", "log4j-core", "log4j-slf4j2-impl", "jackson-annotations", "jackson-core",
    "jackson-databind", "jackson-datatype-jsr310", "jackson-module-scala",
)  # fmt: skip
"""Before those of an engine, which may bring older ones."""
LAST = ("kryo-shaded", "minlog", "objenesis")
"""Behind those of an engine, which may bring a later Kryo."""
COMPILER = ("scala-compiler", "scala-library", "scala-reflect")
SHARED = Path(__file__).parent / "scala"
CHECKS = ("-Xlint:unused", "-Werror", "-Wconf:cat=deprecation:s")
"""Another version of an engine may call deprecated what this one does not."""
COMPILE_S = 300.0


def spark_jars(names: Sequence[str]) -> list[Path]:
    """Jars of the installed PySpark, by the beginnings of their names. Raises MachineError if one is missing."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise MachineError(f"PySpark is missing\n  install it: {sys.executable} -m pip install pyspark")
    folder = Path(spec.origin).parent / "jars"
    found = {re.split(r"_2\.13|-(?=\d)", path.name)[0]: path for path in folder.glob("*.jar")}
    if missing := [name for name in names if name not in found]:
        raise MachineError(
            f"PySpark at {folder.parent} lacks the jars {', '.join(missing)}\n"
            f"  reinstall it: {sys.executable} -m pip install --force-reinstall pyspark"
        )
    return [found[name] for name in names]


def class_path(sources: Path, jars: Sequence[Path], shared: Path = SHARED) -> list[Path]:
    """The classes of the folders `shared` and `sources`, which an engine has, and the jars of both.

    Raises:
        MachineError: a part is missing, or the classes cannot be kept.
        EngineError: the sources are wrong.
    """
    libraries = [*spark_jars(FIRST), *jars, *spark_jars(CATALYST), *spark_jars(LAST)]
    files = [*sorted(shared.glob("*.scala")), *sorted(sources.glob("*.scala"))]
    content = hashlib.sha256()
    for text in (*(file.read_bytes() for file in files), *(jar.name.encode() for jar in libraries)):
        content.update(hashlib.sha256(text).digest())
    folder = cache().parent / "classes" / f"{sources.parent.name}-{content.hexdigest()[:16]}"
    if not folder.is_dir():
        _compile(files, libraries, folder)
    return [folder, *libraries]


def _compile(files: Sequence[Path], libraries: Sequence[Path], folder: Path) -> None:
    print(f"compiling {len(files)} files of the engine, once: {folder}", file=sys.stderr, flush=True)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MachineError(
            f"the engine's classes cannot be kept in {folder.parent}: {error.strerror}\n"
            "  set XDG_CACHE_HOME to a folder that can be written"
        ) from None
    with tempfile.TemporaryDirectory(prefix="compiling-", dir=folder.parent) as work:
        classes = Path(work) / "classes"
        classes.mkdir()
        compiler = os.pathsep.join(map(str, spark_jars(COMPILER)))
        java = find_java("the Scala compiler").path
        command = [java, "-Xss8m", "-cp", compiler, "scala.tools.nsc.Main", *CHECKS]
        command += ["-d", str(classes), "-classpath", os.pathsep.join(map(str, libraries)), *map(str, files)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=COMPILE_S, env=java_environment()
            )
        except subprocess.TimeoutExpired:
            raise MachineError(f"the engine's sources were not compiled within {COMPILE_S:g} s\n  try again") from None
        if done.returncode:
            raise EngineError(f"the engine's sources could not be compiled:\n{done.stdout}{done.stderr}")
        with contextlib.suppress(OSError):  # another process was faster
            classes.rename(folder)
    if not folder.is_dir():
        raise MachineError(f"{folder} cannot be written\n  set XDG_CACHE_HOME to a folder that can be")
