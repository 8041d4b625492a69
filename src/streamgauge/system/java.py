"""Finds the Java that Spark will use, and explains what to do if none fits."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from streamgauge.core.errors import MachineError

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


def find_java() -> Java:
    """The Java of JAVA_HOME, else of PATH.

    Raises:
        MachineError: none was found, it does not start, or it is older than 17. The message says how to get one.
    """
    home = os.environ.get("JAVA_HOME")
    java = _java_at(str(Path(home) / "bin" / "java"), f"JAVA_HOME={home}") if home else _java_of_path()
    if isinstance(java, Java):
        return java
    raise MachineError(f"{java}\n  {(_other_home() if home else None) or install_hint()}")


def java_environment(keep_properties: bool = False, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment for a JVM, without the variables that would add options.

    `keep_properties`: system properties (-Dname=value) stay, because a proxy may need them.
    """
    variables = {name: value for name, value in environment.items() if name not in OPTION_VARIABLES}
    if keep_properties:
        options = {name: environment.get(name, "").split() for name in OPTION_VARIABLES}
        properties = {name: [one for one in of_name if one.startswith("-D")] for name, of_name in options.items()}
        variables |= {name: " ".join(of_name) for name, of_name in properties.items() if of_name}
    return variables


def _java_of_path() -> Java | str:
    return _java_at(shutil.which("java"), "PATH")


def _java_at(path: str | None, where: str) -> Java | str:
    """The Java at a path, or the reason why Spark cannot use it."""
    needed = f"Java {JAVA_FLOOR} or later is needed by Spark"
    if path is None or not Path(path).exists():
        return f"{needed}; none was found by {where}"
    try:
        done = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=30, check=False, env=java_environment()
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"Java at {path} does not start: {error}"
    text = _version_line(done.stderr or done.stdout)
    version = parse_version(text)
    if version is None or version < JAVA_FLOOR:
        return f"{needed}; {path} is {text or 'silent'}"
    return Java(path, version, text)


def _other_home() -> str | None:
    """The way out if only JAVA_HOME is wrong, so the user need not install Java."""
    java = _java_of_path()
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
    names: list[str] = []
    try:
        for line in Path("/etc/os-release").read_text().splitlines():
            key, _, value = line.partition("=")
            if key in ("ID", "ID_LIKE"):
                names += value.strip('"').split()
    except OSError:
        pass
    command = next((_INSTALL[name] for name in names if name in _INSTALL), None)
    return f"install it: {command}" if command else "install a Java 17 runtime and set JAVA_HOME to it"
