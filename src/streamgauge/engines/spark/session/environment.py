"""The environment of Spark's processes: what a start needs, jars included, without what other programs have left there.

A notebook, another Spark or a container sets variables that Spark and its JVM read by themselves. They change what is
measured, or keep Spark from starting. So they are set aside, and the settings of the result name them. What a user
wants of Spark is said by options.
"""

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from streamgauge.core.errors import Rule, broken
from streamgauge.core.machine_check import MachineCheck, refuse_missing
from streamgauge.core.plugin_options import Fetch
from streamgauge.engines.spark.session.masters import HOST, is_local
from streamgauge.system.java import (
    OPTION_VARIABLES,
    SPARK_KAFKA,
    JarSet,
    installed_pyspark,
    jars_check,
    pyspark_check,
    resolved,
    spark_kafka_choices,
    spark_kafka_jars,
)
from streamgauge.system.python_path import VARIABLE as PYTHONPATH
from streamgauge.system.python_path import removed_entries

SET_ASIDE_EVERYWHERE: tuple[str, ...] = (
    *OPTION_VARIABLES, "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_SUBMIT_OPTS",
    "SPARK_LAUNCHER_OPTS", "SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_API_MODE", "SPARK_CONNECT_MODE_ENABLED",
    "SPARK_PREFER_IPV6", "SPARK_DIST_CLASSPATH", "SPARK_PREPEND_CLASSES",
)  # fmt: skip
"""Variables that say what the driver says by itself: the master, the heap, the JVM's options, the Spark to use."""
SET_ASIDE_IF_LOCAL = (
    "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_LOCAL_DIRS", "SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME",
    "SPARK_PUBLIC_DNS",
)  # fmt: skip
"""A cluster may need these. A Spark of this machine alone must not read a cluster's configuration."""
_RECORD = "STREAMGAUGE_SET_ASIDE"
"""Variable by which a process of Spark knows what was set aside for it; JSON, by name."""
_PLAIN = re.compile(r"[A-Za-z0-9/._+=@~-]")
"""A character of paths that survive a JVM's options, Hadoop's patterns, and a locale without letters beyond ASCII."""
AVRO = tuple(
    (JarSet(f"spark-avro-{version}", (f"org.apache.spark:spark-avro_2.13:{version}",)),)
    for version in ("4.3.0", "4.2.0", "4.1.1")
)
"""Tested jars for `from_avro`; the last one is a fallback, tested with Spark 4.3.0."""


def environment_of(home: Path, master: str, environment: Mapping[str, str] = os.environ) -> dict[str, str | None]:
    """How the environment of a process that starts Spark differs from ours; None removes a variable.

    A local Spark speaks by loopback addresses alone, so it starts where the name of the machine does not resolve, and
    where `localhost` is an IPv6 address.
    """
    aside = set_aside(master, environment)
    changes: dict[str, str | None] = {**dict.fromkeys(aside), "SPARK_HOME": str(home), _RECORD: json.dumps(aside)}
    if is_local(master):
        changes |= {"SPARK_LOCAL_IP": HOST, "SPARK_LOCAL_HOSTNAME": HOST}
    changes.pop(PYTHONPATH, None)  # ours is without those entries already
    return changes


def set_aside(master: str, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that are set aside for such a master, with their values; of PYTHONPATH, entries with a PySpark."""
    names = (*SET_ASIDE_EVERYWHERE, *(SET_ASIDE_IF_LOCAL if is_local(master) else ()))
    found = {name: environment[name] for name in names if environment.get(name)}
    if removed_entries:
        found[PYTHONPATH] = os.pathsep.join(removed_entries)
    return found


def recorded(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """In a process of Spark: what was set aside for it, as settings."""
    aside: dict[str, str] = json.loads(environment.get(_RECORD) or "{}")
    return {f"{name} (set aside)": value for name, value in aside.items()}


def environment_note(master: str, environment: Mapping[str, str] = os.environ) -> str:
    """The variables with configuration that a Spark with this master reads, for the message of a start that failed."""
    if is_local(master):
        return ""
    named = [f"{name}={environment[name]}" for name in SET_ASIDE_IF_LOCAL if environment.get(name)]
    return f"\n  Spark read the configuration of {', '.join(named)}; unset what is not meant for it" if named else ""


KAFKA_FETCH = Fetch(f"{SPARK_KAFKA}:4.3.0", 65_000_000, "--transport kafka", transport="kafka")
AVRO_FETCH = Fetch(AVRO[0][0].packages[0], 1_400_000, "--transport-option encoding=avro", encoding="avro")


def machine_checks() -> Iterator[MachineCheck]:
    """What Spark needs of this machine: PySpark, a temporary folder, and jars for some runs."""
    pyspark = pyspark_check()
    yield pyspark
    with suppress(FileNotFoundError):  # none that can be written, which another check reports
        folder = Path(tempfile.gettempdir())
        yield plain_path_check(folder)
        yield native_code_check(folder)
    if pyspark.status == "good":
        yield jars_check("spark_kafka_jars", spark_kafka_choices(installed_pyspark()), KAFKA_FETCH)
        yield jars_check("spark_avro_jars", AVRO, AVRO_FETCH)


def require(transport: str, options: Mapping[str, str]) -> None:
    """Fetches the jars that a transport needs. Raises MachineError if they cannot be had."""
    jars_for(transport, options)


def plain_path_check(folder: Path) -> MachineCheck:
    """Whether a JVM and Hadoop read the path of a temporary folder as it is."""
    strange = " ".join(map(repr, sorted(set(_PLAIN.sub("", str(folder))))))
    rule = f"must lead to a folder whose path has no characters that Spark reads as something else ({strange})"
    problems = broken(Rule(not strange, "TMPDIR", rule, str(folder), "a plain path, for instance TMPDIR=/tmp"))
    found = f"{folder} has {strange}" if strange else str(folder)
    return MachineCheck("spark_temporary_path", found, tuple(problems))


def native_code_check(folder: Path) -> MachineCheck:
    """Whether Java can load RocksDB's library, which it unpacks into a temporary folder."""
    allowed = not os.statvfs(folder).f_flag & os.ST_NOEXEC
    rule = "should be mounted without noexec, because state in RocksDB needs a library that Java unpacks there"
    way_out = "TMPDIR on a file system that allows programs, for instance TMPDIR=/var/tmp"
    problems = broken(Rule(allowed, "TMPDIR", rule, str(folder), way_out))
    found = "allowed" if allowed else "mounted noexec"
    return MachineCheck("spark_native_code", f"{found} in {folder}", tuple(problems), False, "state in RocksDB")


def require_loadable_state(provider: str, folder: Path) -> None:
    """MachineError where state is kept in RocksDB, whose library Java unpacks into `folder` and cannot load there."""
    if "RocksDB" in provider:
        refuse_missing([replace(native_code_check(folder), prevents_start=True)])


def jars_for(transport: str, options: Mapping[str, str]) -> list[Path]:
    """Jars for Spark's class path, without duplicates. Raises MachineError if they cannot be downloaded."""
    jars = spark_kafka_jars() if transport == "kafka" else []
    jars += resolved(AVRO) if options.get("encoding") == "avro" else []
    return list({path.name: path for path in jars}.values())
