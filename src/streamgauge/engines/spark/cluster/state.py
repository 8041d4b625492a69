"""The state of this machine's cluster: one file that names its processes.

The cluster outlives the command that started it, so processes are found by id and start time. The kernel gives the id
of an ended process to another one, which has another start time.
"""

import json
import os
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import psutil

from streamgauge.core.errors import InputError, MachineError, Problem
from streamgauge.engines.local_cluster import Cluster, Member
from streamgauge.engines.spark.session.masters import HOST, is_standalone, places
from streamgauge.system.disk import PREFIX

MASTER = "master"
FILE = "cluster.json"
_SPARK = "org.apache.spark."
"""How the names of Spark's classes begin."""


def folder() -> Path:
    """The place of the state and of what the cluster writes: one for each user and temporary folder."""
    return Path(tempfile.gettempdir()) / f"{PREFIX}cluster-{os.getuid()}"


def owned_folder() -> Path:
    """The same folder, which exists then and belongs to this user alone. Raises MachineError if it cannot."""
    path = folder()
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise MachineError(f"the cluster's folder cannot be made: {error}\n  set TMPDIR to another folder") from None
    if found.st_uid != os.getuid() or not path.is_dir() or path.is_symlink():
        raise MachineError(f"the cluster's folder {path} belongs to someone else\n  set TMPDIR to another folder")
    return path


def read() -> Cluster | None:
    """The last cluster that was started and not stopped, whether it still runs or not; None without one.

    A state that another user has written counts as none.

    Raises:
        InputError: the state cannot be read. Its processes may still run, and only it names them.
    """
    try:
        if folder().lstat().st_uid != os.getuid():
            return None
        found = json.loads((folder() / FILE).read_text())
        members = tuple(Member(**one) for one in found.pop("members"))
        return Cluster(**{**found, "cpus": tuple(found["cpus"])}, members=members)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        why = f"cannot be read ({type(error).__name__}: {error})"
        raise InputError(unknown_problem(why, unrecorded())) from None


def unrecorded() -> list[int]:
    """The ids of this user's processes of Spark whose command line names the cluster's folder: each daemon's does."""
    within, found = f"{folder()}/", []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline() if process.uids().real == os.getuid() else []
            if any(word.startswith(_SPARK) for word in words) and any(within in word for word in words):
                found.append(process.pid)
    return found


def unknown_problem(why: str, running: list[int]) -> Problem:
    """The problem of a state that does not say which processes belong to the cluster. `running`: those found."""
    rule = f"must have a state that names its processes, and this file {why}"
    if not running:
        return Problem("cluster", rule, str(folder() / FILE), "no process of a cluster was found: remove the file")
    pids = " ".join(map(str, running))
    way_out = f"end its processes (kill {pids}) and remove the file if it exists"
    return Problem("cluster", f"{rule}; its processes still run ({pids})", str(folder() / FILE), way_out)


def write(cluster: Cluster) -> None:
    """Replaces the state as a whole, so that a reader never sees a part."""
    path = folder() / FILE
    new = path.with_suffix(".new")
    new.write_text(json.dumps(asdict(cluster), indent=2))
    new.replace(path)


def cluster_at(master: str | None) -> Cluster | None:
    """This machine's cluster, if that is its address; None for any other master.

    Raises InputError if it may be, and the state cannot be read.
    """
    if master is None or not is_standalone(master) or not places(master)[0].startswith(f"{HOST}:"):
        return None
    cluster = read()
    return cluster if cluster is not None and cluster.master == master else None
