"""A Spark session in this process: for the stream under test, and for the batch run that answers an own job."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgauge.core.errors import Problem, SettingError
from streamgauge.engines.spark.session.environment import recorded

SQL = "spark.sql."
_OPEN = (
    "spark.sql.catalog.", "spark.sql.hive.", "spark.sql.streaming.stateStore.",
    "spark.sql.streaming.checkpointFileManagerClass",
)  # fmt: skip
"""Settings that catalogs, Hive, state stores and Hadoop read by themselves: they are not on Spark's list."""
_EXTENSIONS = "spark.sql.extensions"
_OF_THE_RUN = re.compile(
    r"spark\.(app\.|driver\.(host|port|defaultJavaOptions)|executor\.id|local\.dir|master|submit|rdd\.compress|ui\.)"
)
"""What Spark itself, or this house, sets for every run: names, ports and folders, other ones each time."""
_EXTRA = re.compile(r"spark\.(driver|executor)\.extraJavaOptions")
"""Spark puts options of its own, and the default ones, before what these name."""
_IP = "-Djava.net.preferIPv6Addresses="
_SECRET = re.compile(r"(?i)secret|password|passwd|token|access.?key|credential")
_SOCKETS = "spark.python.unix.domain.socket.enabled"
_SOCKET_PATH_BYTES_MAX = 107
"""So long may the path of a socket be, by the kernel."""
_SOCKET_NAME = f"/.{'x' * 36}.sock"
"""As long as what Spark calls one: by a UUID."""
_ENVIRONMENT = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""Variables that name configuration, which Spark reads where its master is on other machines."""
_KIND = re.compile(r"^(.*: )?[\w.]*(Exception|Error): ")
"""What an error's message begins with when it comes from the JVM."""
LOG_LEVEL = "WARN"
JVM_ENDS_S = 1.0
STOP_S, CLUSTER_STOP_S = 1.0, 3.0
"""So long may Spark take to stop: a local one loses nothing, but executors elsewhere have to be let go."""


@dataclass(frozen=True)
class LocalSession:
    """What a JVM of this machine is told.

    `whole_heap`: its heap has its whole size from the start; `unix_sockets`: it speaks with Python workers by these.
    """

    whole_heap: bool = True
    unix_sockets: bool = True


_USUAL = LocalSession()


def open_session(
    master: str, conf: Mapping[str, str], folder: Path, jvm_options: Sequence[str] = (), local: LocalSession = _USUAL
) -> Any:
    """A session with this configuration; workers run this very Python.

    `folder` takes what Spark writes on its way and does not always remove, and what other machines need. `jvm_options`
    are for a JVM of this machine.
    """
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).appName("streamgauge")
    for name, value in {**_jvm(master, folder, conf.get("spark.driver.memory"), jvm_options, local), **conf}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel(LOG_LEVEL)
    if not master.startswith("local"):
        session.sparkContext.addPyFile(_own_code(folder))
    return session


def open_checked(
    master: str,
    conf: Mapping[str, str],
    users: Mapping[str, str],
    folder: Path,
    jvm_options: Sequence[str] = (),
    local: LocalSession = _USUAL,
) -> Any:
    """The same; SettingError where Spark does not know a setting of the user's, or refuses its value.

    `users` are those of the configuration that a user gave.
    """
    try:
        session = open_session(master, conf, folder, jvm_options, local)
        session._jsparkSession.sessionState()  # made here, not at the first query: its settings are read then
    except Exception as error:
        if (refused := _refused(users, str(error))) is not None:
            raise SettingError(refused) from None
        raise
    if problems := unknown(users, known_names(session._jvm)):
        raise SettingError(problems)
    return session


def from_the_environment(session: Any) -> dict[str, str]:
    """What is in force and was not asked for, by files or variables; and which variables were set aside.

    Secrets are named, their values left out.
    """
    conf = dict(session.sparkContext.getConf().getAll())
    kept = {name: value for name, value in conf.items() if not (_OF_THE_RUN.match(name) or _EXTRA.fullmatch(name))}
    asked = kept | _java_options(session, conf)
    found = asked | {name: os.environ[name] for name in _ENVIRONMENT if os.environ.get(name)} | recorded()
    hidden = {name for name, value in found.items() if _SECRET.search(name) or _SECRET.search(value)}
    return {name: "(not shown)" if name in hidden else value for name, value in sorted(found.items())}


def _java_options(session: Any, conf: Mapping[str, str]) -> dict[str, str]:
    """What JVMs are told besides what Spark tells all of them, and what `_jvm` tells one of this machine."""
    sparks = set(_module_options(session._jvm).split())
    if conf.get("spark.master", "").startswith("local"):
        sparks |= set(conf.get("spark.driver.defaultJavaOptions", "").split())
    given = {name: value.split() for name, value in conf.items() if _EXTRA.fullmatch(name)}
    others = {
        name: [option for option in options if option not in sparks and not option.startswith(_IP)]
        for name, options in given.items()
    }
    return {name: " ".join(options) for name, options in others.items() if options}


def _module_options(jvm: Any) -> str:
    """What this version of Spark gives every JVM; empty where it cannot be asked, and then it is recorded as well."""
    try:
        return str(jvm.org.apache.spark.launcher.JavaModuleOptions.defaultModuleOptions())
    except Exception:
        return ""


def unknown(users: Mapping[str, str], known: frozenset[str]) -> list[Problem]:
    """The user's `spark.sql.*` settings that are none of the names `known` to Spark: it would pass over them silently.

    Where the user brings extensions, names may be theirs, and nothing is said. `known` is empty where Spark could not
    be asked.
    """
    if not known or _EXTENSIONS in users:
        return []
    strange = [name for name in users if name.startswith(SQL) and name not in known and not name.startswith(_OPEN)]
    return [Problem(f"option {name}", "is not a setting of Spark", users[name], _near(name, known)) for name in strange]


def _near(name: str, known: frozenset[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f"--option {near[0]}=..." if near else "leave it out, or mend its spelling"


def known_names(jvm: Any) -> frozenset[str]:
    """Every name of Spark's own SQL settings, internal ones too; in one call, since each crosses to the JVM."""
    try:
        module = getattr(getattr(jvm.org.apache.spark.sql.internal, "SQLConf$"), "MODULE$")
        entries = module.getConfigEntries().toString()
    except Exception:  # another Spark may keep its list elsewhere; then it is as silent as it is without us
        return frozenset()
    return frozenset(re.findall(r"ConfigEntry\(key=([^,\s]+),", entries))


def _refused(users: Mapping[str, str], message: str) -> Problem | None:
    """A start's error as the problem of the user's one setting that it speaks of; None where it speaks of none."""
    named = [name for name in users if re.search(rf"(?<![\w.]){re.escape(name)}(?!\.?\w)", message)]
    if len(named) != 1:
        return None
    line = next(line.strip() for line in message.splitlines() if named[0] in line)
    reason = _KIND.sub("", line)[:300]
    return Problem(
        f"option {named[0]}", f"is refused by Spark ({reason})", users[named[0]], "another value, or leave it out"
    )


def _jvm(
    master: str, folder: Path, memory: str | None, jvm_options: Sequence[str], local: LocalSession = _USUAL
) -> dict[str, str]:
    """A JVM of this machine puts its temporary files into `folder`, which is removed whatever ends the JVM.

    Its heap has its whole size from the start: how a heap grows in its first minutes is no property of a job.
    It speaks with its Python workers by Unix sockets in that folder, which is its user's alone: over TCP a part of a
    message waits for the acknowledgement of the one before, up to 40 ms, in each batch. A folder whose path is too long
    for a socket leaves it at TCP.
    """
    if not master.startswith("local"):
        return {}
    here = folder / "jvm"
    here.mkdir(parents=True, exist_ok=True)
    heap = [f"-Xms{memory}"] if memory and local.whole_heap else []
    options = [f"-Djava.io.tmpdir={here}", *heap, *jvm_options]
    told = {"spark.local.dir": str(here), "spark.driver.defaultJavaOptions": " ".join(options)}
    return told | ({_SOCKETS: "true"} if local.unix_sockets and _holds_sockets(here) else {})


def _holds_sockets(folder: Path) -> bool:
    return len(os.fsencode(f"{folder}{_SOCKET_NAME}")) <= _SOCKET_PATH_BYTES_MAX


def end_session() -> None:
    """End Spark in this process, whatever state it is in: asked first, then killed, so that no JVM is left behind."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is not None:
        asked = threading.Thread(target=_stop, args=(context,), daemon=True)
        asked.start()
        asked.join(STOP_S if str(context.master).startswith("local") else CLUSTER_STOP_S)
    with contextlib.suppress(Exception):
        jvm = SparkContext._gateway.proc
        jvm.kill()
        jvm.wait(1.0)


def jvm_ended() -> str:
    """How the JVM that this process has started ended, by which signal where it was one; empty where it has not.

    To be asked when something went wrong with it: it is waited for a little, as a call to it may fail before its end.
    """
    from pyspark import SparkContext

    jvm = getattr(SparkContext._gateway, "proc", None)
    if jvm is None:
        return ""
    try:
        code = jvm.wait(JVM_ENDS_S)
    except subprocess.TimeoutExpired:
        return ""
    return f"Spark's JVM ended ({_by_signal(code) or f'exit code {code}'})"


def _by_signal(code: int) -> str:
    """The name of the signal that an exit code stands for, as a child's or as a shell tells it."""
    number = -code if code < 0 else code - 128
    return signal.Signals(number).name if number in {each.value for each in signal.Signals} else ""


def _stop(context: Any) -> None:
    with contextlib.suppress(Exception):
        context.stop()


def _own_code(folder: Path) -> str:
    """streamgauge as a zip for executors on other machines."""
    import streamgauge

    package = Path(streamgauge.__file__).parent
    return shutil.make_archive(str(folder / "streamgauge"), "zip", package.parent, package.name)
