"""Finds the Java that engines and brokers run on, explains what to do if none fits, and finds or fetches jars.

Jars are resolved by their Maven coordinates with Spark's Ivy, and cached. The default path needs none. Each set has a
folder in the user's cache. Its list of files is written last, so an interrupted resolution leaves no valid entry.
"""

import contextlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from streamgauge.core.errors import MachineError, MissingOnMachine, Problem, Rule, first_broken
from streamgauge.core.formatting import format_size
from streamgauge.core.machine_check import MachineCheck
from streamgauge.core.plugin_options import Fetch
from streamgauge.system.disk import nearest_folder

JAVA_FLOOR = 17
OPTION_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Variables with options for every JVM, which its command line may not override."""
_INSTALL = {
    "debian": "sudo apt-get install -y openjdk-17-jre-headless",
    "ubuntu": "sudo apt-get install -y openjdk-17-jre-headless",
    "fedora": "sudo dnf install -y java-17-openjdk-headless",
    "rhel": "sudo dnf install -y java-17-openjdk-headless",
    "alpine": "sudo apk add openjdk17-jre-headless",
    "arch": "sudo pacman -S jre17-openjdk-headless",
}


@dataclass(frozen=True)
class Java:
    path: str
    version: int
    text: str


def find_java(needed_by: str = "") -> Java:
    """The Java of JAVA_HOME, else of PATH. `needed_by`: who needs it, for the message.

    Raises:
        MissingOnMachine: none was found, it does not start, or it is older than 17. The message says how to get one.
    """
    home = os.environ.get("JAVA_HOME")
    java = _java_at(str(Path(home) / "bin" / "java") if home else shutil.which("java"))
    if isinstance(java, Java):
        return java
    rule = f"must lead to Java {JAVA_FLOOR} or later" + (f", which {needed_by} needs" if needed_by else "")
    if home:
        way_out = _other_home() or install_hint()
        raise MissingOnMachine(Problem("JAVA_HOME", rule, f"{home} ({java})", way_out))
    raise MissingOnMachine(Problem("PATH", rule, java, install_hint()))


def java_check(needed_by: str = "") -> MachineCheck:
    """Whether `find_java` finds one."""
    try:
        java = find_java(needed_by)
    except MissingOnMachine as error:
        return MachineCheck("java", str(error.problems[0].got), error.problems)
    return MachineCheck("java", f"Java {java.version}, {java.path}")


def java_environment(keep_properties: bool = False, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment for a JVM, without the variables that would add options.

    `keep_properties`: system properties (-Dname=value) stay, because a proxy may need them.
    """
    variables = {name: value for name, value in environment.items() if name not in OPTION_VARIABLES}
    if keep_properties:
        for name in OPTION_VARIABLES:
            if properties := [one for one in environment.get(name, "").split() if one.startswith("-D")]:
                variables[name] = " ".join(properties)
    return variables


def _java_at(path: str | None) -> Java | str:
    """The Java at a path, or why it cannot be used."""
    if path is None or not Path(path).exists():
        return "no java was found"
    try:
        done = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=30, check=False, env=java_environment()
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{path} does not start: {error}"
    text = _version_line(done.stderr or done.stdout)
    version = parse_version(text)
    if version is None or version < JAVA_FLOOR:
        return f"{path} is {text or 'silent'}"
    return Java(path, version, text)


def _other_home() -> str | None:
    """The way out if only JAVA_HOME is wrong, so the user need not install Java."""
    java = _java_at(shutil.which("java"))
    if not isinstance(java, Java):
        return None
    return f"unset JAVA_HOME (PATH has Java {java.version}), or set it to {Path(java.path).resolve().parents[1]}"


def _version_line(output: str) -> str:
    """The line with the version, else the first. With JAVA_TOOL_OPTIONS Java first prints a notice."""
    lines = output.strip().splitlines() or [""]
    return next((line for line in lines if parse_version(line) is not None), lines[0])


def parse_version(text: str) -> int | None:
    """`openjdk version "17.0.15" ...` as 17; `java version "1.8.0"` as 8."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None


def install_hint() -> str:
    """The command that installs Java on this system."""
    release: dict[str, str] = {}
    with contextlib.suppress(OSError):
        release = platform.freedesktop_os_release()
    names = f"{release.get('ID', '')} {release.get('ID_LIKE', '')}".split()
    command = next((_INSTALL[name] for name in names if name in _INSTALL), None)
    return f"install it: {command}" if command else "install a Java 17 runtime and set JAVA_HOME to it"


LIST = "resolved.json"
CACHE_VARIABLE = "XDG_CACHE_HOME"
RESOLVE_S = 300.0
"""Enough for some megabytes from a repository. Ivy gives up earlier on a mirror that does not answer."""
_PROGRAM = "org.apache.hadoop.util.VersionInfo"
"""A program in Spark's own jars that prints one line and ends."""


@dataclass(frozen=True)
class JarSet:
    """`packages` (`group:name:version`) with all their dependencies except `excluded` (`group:name`)."""

    name: str
    packages: tuple[str, ...]
    excluded: tuple[str, ...] = ()


def cache() -> Path:
    """The folder of cached jars, below `XDG_CACHE_HOME` or `.cache` of the home folder. Raises MissingOnMachine."""
    if root := os.environ.get(CACHE_VARIABLE):
        return Path(root) / "streamgauge" / "jars"
    try:
        return Path.home() / ".cache" / "streamgauge" / "jars"
    except RuntimeError:  # a user without an entry, as in containers
        rule = "must be set for a user without a home folder, because jars are kept there"
        raise MissingOnMachine(Problem(CACHE_VARIABLE, rule, "nothing", f"set {_CACHE_WAY_OUT}")) from None


_CACHE_WAY_OUT = f"{CACHE_VARIABLE} to a folder that can be written, for instance {CACHE_VARIABLE}=/tmp/cache"


def resolved(choices: Sequence[Sequence[JarSet]], folder: Path | None = None) -> list[Path]:
    """The jars of the first choice that is complete; cached choices come first.

    Raises:
        MachineError: no choice can be resolved. The message has their reasons and the way out.
    """
    cached_in = folder or cache()
    jars = _first_cached(choices, cached_in)
    if jars:
        return jars
    reasons = []
    for choice in choices:
        try:
            folders = [(one, cached_in / one.name) for one in choice]
            return [path for one, folder in folders for path in _cached(folder) or _resolve(one, folder)]
        except _Unresolved as error:
            reasons.append(f"{', '.join(package for one in choice for package in one.packages)}: {error}")
    raise MachineError(
        "jars are needed that could not be had:\n  " + "\n  ".join(reasons) + "\n  connect to a Maven repository "
        f"(Spark's Ivy asks the usual ones, or those of spark.jars.ivySettings), or copy {cached_in} from a machine "
        "that has them"
    )


def _first_cached(choices: Sequence[Sequence[JarSet]], cached_in: Path) -> list[Path]:
    """The jars of the first choice that is complete in the cache; empty if none is."""
    for choice in choices:
        cached = [_cached(cached_in / one.name) for one in choice]
        if all(cached):
            return [path for jars in cached for path in jars]
    return []


def jars_check(name: str, choices: Sequence[Sequence[JarSet]], fetch: Fetch) -> MachineCheck:
    """Whether the cache has the jars, or can keep them. It fetches none, because the first run that needs them does."""
    try:
        cached_in = cache()
    except MissingOnMachine as error:
        return MachineCheck(name, "no folder to keep them in", error.problems, False, fetch.needed_with)
    jars = _first_cached(choices, cached_in)
    writable = os.access(nearest_folder(cached_in), os.W_OK | os.X_OK)
    size = format_size(fetch.bytes)
    way_out = f"be online at the first run with {fetch.needed_with}, which fetches them"
    problems = first_broken(
        Rule(jars or writable, CACHE_VARIABLE, "must lead to a folder that can be written to", cached_in,
             f"set {_CACHE_WAY_OUT}"),
        Rule(jars, name, f"must be fetched ({size}) by the first run that needs them", "not in the cache", way_out),
    )  # fmt: skip
    found = f"{len(jars)} cached" if jars else f"not fetched yet ({size})"
    return MachineCheck(name, found, tuple(problems), prevents_start=False, needed_with=fetch.needed_with)


SPARK_KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13"
_TOKENS = "org.apache.spark:spark-token-provider-kafka-0-10_2.13"
_OLDER_CONNECTORS = {
    "4.3.0": [[
        JarSet("spark-kafka-4.2.0", (f"{SPARK_KAFKA}:4.2.0",), (_TOKENS,)),
        JarSet("spark-kafka-tokens-4.0.0", (f"{_TOKENS}:4.0.0",)),
    ]],
}  # fmt: skip
"""PySpark's version to other choices that were tested with it, for mirrors without the exact version. The token
provider is only for delegation tokens."""


def spark_kafka_jars() -> list[Path]:
    """The jars of Spark's Kafka source and sink, for the installed PySpark.

    Raises:
        MachineError: PySpark is not installed, or the jars cannot be had. The message has the way out.
    """
    jars = resolved(spark_kafka_choices(installed_pyspark()))
    return list({path.name: path for path in jars}.values())  # Spark refuses a second one of a name


def spark_kafka_choices(version: str) -> list[list[JarSet]]:
    """The jars of Spark's Kafka source and sink for a version of PySpark, as `resolved` takes them."""
    return [[JarSet(f"spark-kafka-{version}", (f"{SPARK_KAFKA}:{version}",))], *_OLDER_CONNECTORS.get(version, [])]


def installed_pyspark() -> str:
    """The version of the installed PySpark. Raises MissingOnMachine without one."""
    try:
        return metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        way_out = f"install it: {sys.executable} -m pip install pyspark"
        rule = "must be installed, because Spark and its jars come with it"
        raise MissingOnMachine(Problem("pyspark", rule, f"{sys.executable} has none", way_out)) from None


def pyspark_check() -> MachineCheck:
    """Whether PySpark is installed."""
    try:
        return MachineCheck("pyspark", installed_pyspark())
    except MissingOnMachine as error:
        return MachineCheck("pyspark", "not installed", error.problems)


class _Unresolved(Exception):
    """The reason why a set could not be resolved."""


def _cached(folder: Path) -> list[Path]:
    """The jars of a folder; empty if its list or one of the listed files is missing."""
    try:
        paths = [folder / name for name in json.loads((folder / LIST).read_text())]
    except (OSError, ValueError):
        return []
    return paths if all(path.is_file() for path in paths) else []


def _resolve(request: JarSet, folder: Path) -> list[Path]:
    print(f"resolving {', '.join(request.packages)}, once: {folder}", file=sys.stderr, flush=True)
    with _work_folder(folder.parent) as work:
        _run_ivy(request, Path(work))
        jars = Path(work) / "jars"
        names = sorted(path.name for path in jars.glob("*.jar"))
        if not names:
            raise _Unresolved("Ivy reported no error and returned no jars")
        (jars / LIST).write_text(json.dumps(names))
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # another process wrote it at the same time
            jars.rename(folder)
    if paths := _cached(folder):
        return paths
    raise _Unresolved(f"{folder} cannot be written")


def _work_folder(beside: Path) -> tempfile.TemporaryDirectory[str]:
    try:
        beside.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(prefix="resolving-", dir=beside)
    except OSError as error:
        raise MachineError(
            f"jars are needed, and the folder that keeps them cannot be written: {beside} ({error.strerror})\n"
            f"  set {_CACHE_WAY_OUT}"
        ) from None


def installed_spark_home() -> Path:
    """The Spark that PySpark brings."""
    import pyspark

    return Path(pyspark.__file__).parent


def _run_ivy(request: JarSet, work: Path) -> None:
    home = installed_spark_home()
    command = [
        str(home / "bin" / "spark-submit"), "--conf", f"spark.jars.ivy={work}", "--master", "local[1]",
        "--packages", ",".join(request.packages),
        *(["--exclude-packages", ",".join(request.excluded)] if request.excluded else []),
        "--class", _PROGRAM, "spark-internal",
    ]  # fmt: skip
    environment = java_environment(keep_properties=True) | {
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(Path(find_java("Ivy").path).resolve().parents[1]),
        "SPARK_LOCAL_IP": "127.0.0.1",  # needed if the name of this machine does not resolve
    }
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=RESOLVE_S, check=False, cwd=work
        )
    except subprocess.TimeoutExpired:
        raise _Unresolved(f"no answer within {RESOLVE_S:g} s") from None
    if done.returncode:
        raise _Unresolved(_reason(done.stderr + done.stdout))


def _reason(output: str) -> str:
    """Ivy's message: the first unresolved dependency, else the last line. Hosts that are not found are no reason."""
    lines = [line.strip(" \t:") for line in output.splitlines() if line.strip(" \t:")]
    found = (line for line in lines if not line.startswith("Host ") and ("not found" in line or "unresolved" in line))
    return next(found, lines[-1] if lines else "")
