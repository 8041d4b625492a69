"""A Spark session in this process: for the stream under test, and for the batch run of a user job."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamgauge.core.errors import EngineError, Problem, SettingError, near
from streamgauge.engines.spark.session.environment import recorded
from streamgauge.engines.spark.session.masters import is_local
from streamgauge.engines.spark.session.python_workers import UNCHANGED, VARIABLE

SQL = "spark.sql."
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
STATE_STORE = "spark.sql.streaming.stateStore."
FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
WAREHOUSE = "spark.sql.warehouse.dir"
"""A folder where the command ran."""
_OPEN = ("spark.sql.catalog.", "spark.sql.hive.", STATE_STORE, FILE_MANAGER)
"""Settings that catalogs, Hive, state stores and Hadoop read themselves, so they are not on Spark's list."""
_EXTENSIONS = "spark.sql.extensions"
_MISSPELT = 0.95
"""Similarity of a misspelt name to the right one. Right names that are not listed have up to 0.92 to a listed one."""
_SET_PER_RUN = re.compile(
    r"spark\.(app\.|driver\.(host|port|defaultJavaOptions)|executor\.id|local\.dir|master|submit|rdd\.compress|ui\.)"
)
"""Settings that Spark or streamgauge sets differently for every run: names, ports, folders."""
_EXTRA = re.compile(r"spark\.(driver|executor)\.extraJavaOptions")
"""Spark prepends its own and the default options to these."""
_IP = "-Djava.net.preferIPv6Addresses="
_SECRET = re.compile(r"(?i)secret|password|passwd|token|access.?key|credential")
_SOCKETS = "spark.python.unix.domain.socket.enabled"
_SOCKET_PATH_BYTES_MAX = 107
"""The kernel's limit."""
_SOCKET_NAME = f"/.{'x' * 36}.sock"
"""As long as Spark's socket names, which contain a UUID."""
_ENVIRONMENT = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""Variables that name configuration, which Spark reads where its master is on other machines."""
_KIND = re.compile(r"^(.*: )?[\w.]*(Exception|Error): ")
"""The prefix of JVM error messages."""
LOG_LEVEL = "WARN"
UP = "spark is up, its query is starting"
RUNNING = "spark is up, your function is running"
JVM_ENDS_S = 1.0
STOP_S, CLUSTER_STOP_S = 1.0, 3.0
"""How long Spark may take to stop. A local Spark can be killed; remote executors need to be released."""


def open_session(
    master: str, conf: Mapping[str, str], folder: Path, jvm_options: Sequence[str] = (), whole_heap: bool = True
) -> Any:
    """A session with this configuration; workers run this very Python.

    `folder` gets Spark's temporary files and what other machines need. `jvm_options` are for a local JVM, whose heap
    has its whole size from the start if `whole_heap`.
    """
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = {**_jvm(master, folder, conf.get("spark.driver.memory"), jvm_options, whole_heap), **conf}
    session = SparkSession.builder.master(master).appName("streamgauge").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel(LOG_LEVEL)
    if not is_local(master):
        session.sparkContext.addPyFile(_own_code(folder))
    return session


def open_checked(
    master: str,
    conf: Mapping[str, str],
    users: Mapping[str, str],
    folder: Path,
    jvm_options: Sequence[str] = (),
    whole_heap: bool = True,
) -> Any:
    """As `open_session`. Raises SettingError if Spark does not know a user's setting or refuses its value, and
    EngineError with Spark's reason if it does not start otherwise.

    `users` is the part of the configuration that the user gave.
    """
    try:
        session = open_session(master, conf, folder, jvm_options, whole_heap)
        session._jsparkSession.sessionState()  # forces Spark to read the settings now instead of at the first query
    except Exception as error:
        if (refused := _refused(users, str(error))) is not None:
            raise SettingError(refused) from None
        raise EngineError(error_message(str(error))) from None
    if problems := unknown_settings(users, spark_setting_names(session._jvm)):
        raise SettingError(problems)
    return session


def inherited_settings(session: Any) -> dict[str, str]:
    """What is in force and was not asked for, by files or variables; and which variables were set aside.

    Secrets are named, their values left out.
    """
    conf = dict(session.sparkContext.getConf().getAll())
    retained = {name: value for name, value in conf.items() if not (_SET_PER_RUN.match(name) or _EXTRA.fullmatch(name))}
    variables = {name: os.environ[name] for name in _ENVIRONMENT if os.environ.get(name)}
    effective = retained | _java_options(session, conf) | variables | recorded()
    hidden = {name for name, value in effective.items() if _SECRET.search(name) or _SECRET.search(value)}
    return {name: "(not shown)" if name in hidden else value for name, value in sorted(effective.items())}


def _java_options(session: Any, conf: Mapping[str, str]) -> dict[str, str]:
    """JVM options except those that Spark gives every JVM and those of `_jvm`."""
    module_options = session._jvm.org.apache.spark.launcher.JavaModuleOptions.defaultModuleOptions()
    spark_options = set(module_options.split())
    if is_local(conf.get("spark.master", "")):
        spark_options |= set(conf.get("spark.driver.defaultJavaOptions", "").split())
    user_options = {
        name: [option for option in value.split() if option not in spark_options and not option.startswith(_IP)]
        for name, value in conf.items()
        if _EXTRA.fullmatch(name)
    }
    return {name: " ".join(options) for name, options in user_options.items() if options}


def unknown_settings(users: Mapping[str, str], names: frozenset[str]) -> list[Problem]:
    """The user's settings that are not in `names`, because Spark would ignore them silently.

    Outside of `spark.sql.`, Spark also has settings that are not on its list, so only what is nearly a listed one is
    refused. Returns nothing if the user loads extensions, which may define settings.
    """
    if _EXTENSIONS in users:
        return []
    similar = {
        name: near(name, names) if name.startswith(SQL) else near(name, names, _MISSPELT)
        for name in users
        if name not in names and not name.startswith(_OPEN)
    }
    similar = {name: meant for name, meant in similar.items() if meant or name.startswith(SQL)}
    return [
        Problem(
            f"option {name}", "is not a setting of Spark", users[name],
            f"--option {meant}=..." if meant else "leave it out, or correct its spelling",
        )
        for name, meant in similar.items()
    ]  # fmt: skip


def spark_setting_names(jvm: Any) -> frozenset[str]:
    """All names that Spark has registered, those of every SQL setting and internal ones too, in one call to the JVM."""
    module = getattr(getattr(jvm.org.apache.spark.internal.config, "ConfigEntry$"), "MODULE$")
    return frozenset(re.findall(r"[^\[\],\s]+", module.knownConfigs().keySet().toString()))


def _refused(users: Mapping[str, str], message: str) -> Problem | None:
    """The error of a start as a problem of the user's setting that it names; None if it names none or several."""
    names = [name for name in users if re.search(rf"(?<![\w.]){re.escape(name)}(?!\.?\w)", message)]
    if len(names) != 1:
        return None
    reason = _KIND.sub("", next(line.strip() for line in message.splitlines() if names[0] in line))[:300]
    return Problem(
        f"option {names[0]}", f"is refused by Spark ({reason})", users[names[0]], "change its value, or leave it out"
    )


def _jvm(
    master: str, folder: Path, memory: str | None, jvm_options: Sequence[str], whole_heap: bool = True
) -> dict[str, str]:
    """A JVM of this machine puts its temporary files into `folder`, which is removed whatever ends the JVM.

    - Temporary files go to `folder`, which is removed after the run.
    - The heap has its full size from the start, because heap growth would distort the first minutes.
    - Python workers are connected by Unix sockets in the private `folder`. TCP delays parts of messages by up to 40 ms
      per batch (delayed acknowledgements). If the path is too long for a socket, or workers are to be left as Spark has
      them, TCP is used.
    """
    if not is_local(master):
        return {}
    jvm_folder = folder / "jvm"
    jvm_folder.mkdir(parents=True, exist_ok=True)
    heap = [f"-Xms{memory}"] if memory and whole_heap else []
    options = [f"-Djava.io.tmpdir={jvm_folder}", *heap, *jvm_options]
    settings = {"spark.local.dir": str(jvm_folder), "spark.driver.defaultJavaOptions": " ".join(options)}
    is_short = len(os.fsencode(f"{jvm_folder}{_SOCKET_NAME}")) <= _SOCKET_PATH_BYTES_MAX
    return settings | ({_SOCKETS: "true"} if is_short and os.environ.get(VARIABLE) != UNCHANGED else {})


def end_session() -> None:
    """Stops Spark in this process, then kills the JVM if it is still alive."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is not None:
        stopper = threading.Thread(target=_stop, args=(context,), daemon=True)
        stopper.start()
        stopper.join(STOP_S if is_local(str(context.master)) else CLUSTER_STOP_S)
    with contextlib.suppress(Exception):
        jvm = SparkContext._gateway.proc
        jvm.kill()
        jvm.wait(1.0)


def jvm_ended() -> str:
    """How this process's JVM ended (signal or exit code); empty if it still runs.

    Call it after a failed call to the JVM. It waits `JVM_ENDS_S`, because a call may fail shortly before the end.
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
    """The signal name of an exit code, which is -n for a child process and 128 + n from a shell."""
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


def error_message(text: str) -> str:
    """The innermost reason in one or two lines."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:") or re.match(r"[\w.]*(Error|Exception)\b", line)]
    chosen = [lines[0], causes[-1]] if lines and causes else lines[:2]
    return "\n".join(dict.fromkeys(line[:300] for line in chosen)) or "the engine gave no reason"
