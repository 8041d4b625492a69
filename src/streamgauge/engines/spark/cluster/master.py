"""What a run asks of a standalone master before it starts, and what this machine's cluster gives its executors."""

import re
import socket
from collections.abc import Mapping

from streamgauge.core.errors import Problem, Rule, broken, refuse, require
from streamgauge.engines.local_cluster import Cluster, ended_in_words, unready_in_words
from streamgauge.engines.spark.cluster.state import cluster_at
from streamgauge.engines.spark.session.masters import ALL_CORES, EXECUTOR_CORES, is_standalone, places, whole
from streamgauge.engines.spi import CLUSTER_CORES
from streamgauge.system.cpu_pinning import cpus

CONNECT_S = 3.0
MEMORY = "spark.executor.memory"
_SIZE = re.compile(r"\s*([0-9]+)\s*([bkmgtp]?)b?\s*", re.IGNORECASE)
_UNITS = {"b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50, "": 2**20}


def require_master(master: str | None, options: Mapping[str, str], parallelism: int | None = None) -> None:
    """Raises InputError if no standalone master answers at this address, or its workers cannot hold an executor.

    Spark itself would try for a minute or wait without an end. Other kinds of masters are left to Spark.
    """
    if master is None or not is_standalone(master):
        return
    reasons = [_why_silent(address) for address in places(master)]
    start = f"{start_command(parallelism)}, then --master with the address that it prints"
    cluster = cluster_at(master)
    ended = f"; {ended_in_words(cluster.ended())}" if cluster is not None else ""
    require(
        not all(reasons),
        "master",
        f"must be the address of a running Spark master ({reasons[0]}{ended})",
        master,
        start,
    )
    if cluster is not None:
        members = cluster.ended()
        whole_cluster = f"must have all its workers: {ended_in_words(members) or unready_in_words(cluster)}"
        stop = f"streamgauge cluster stop, then {start}"
        require(not members and cluster.is_ready, "master", whole_cluster, master, stop)
        refuse(_executor_problems(cluster, options, parallelism))


def start_command(parallelism: int | None = None) -> str:
    """The command that starts a cluster which fits this machine, for executors with `parallelism` cores in all."""
    processors = len(cpus())
    if parallelism is None or parallelism > processors:
        return f"streamgauge cluster start --workers {min(2, processors)}"
    workers = 2 if parallelism % 2 == 0 else 1
    return f"streamgauge cluster start --workers {workers} --cores {parallelism // workers}"


def executor_defaults(master: str, users: Mapping[str, str]) -> dict[str, str]:
    """Spark configuration by which executors on this machine's cluster take the memory of their cores; else empty."""
    cluster = cluster_at(master)
    if cluster is None or MEMORY in users:
        return {}
    share = min(1.0, _cores_of_executor(cluster, users) / cluster.cores)
    return {MEMORY: f"{int(cluster.memory_bytes * share) // 2**20}m"}


def settings_of(master: str) -> dict[str, str]:
    """The resources of this machine's cluster, for the settings of a result; empty for any other master."""
    cluster = cluster_at(master)
    if cluster is None:
        return {}
    return {"cluster": cluster.resources, CLUSTER_CORES: str(cluster.workers * cluster.cores)}


def _executor_problems(cluster: Cluster, options: Mapping[str, str], parallelism: int | None) -> list[Problem]:
    all_cores, wanted = cluster.cores * cluster.workers, parallelism or 0
    limits = ((EXECUTOR_CORES, cluster.cores, "a worker of the cluster"), (ALL_CORES, all_cores, "all workers"))
    memory_bytes, memory = _bytes_of(options.get(MEMORY, "")), f"option {MEMORY}"
    problems = broken(
        Rule(
            wanted <= all_cores, "parallelism", f"must be at most {all_cores}, the cores of all workers of the cluster",
            parallelism, f"{all_cores} or less, or a cluster with more",
        ),
        *(
            Rule(
                whole(options.get(name, "")) <= most, f"option {name}", f"must be at most {most}, the cores of {owner}",
                options.get(name), f"--option {name}={most}",
            )
            for name, most, owner in limits
        ),
        Rule(
            memory_bytes <= cluster.memory_bytes, memory,
            f"must be at most {cluster.memory}, the memory of a worker of the cluster",
            options.get(MEMORY), f"--option {MEMORY}={cluster.memory}",
        ),
    )  # fmt: skip
    if problems or not memory_bytes:
        return problems
    each = _cores_of_executor(cluster, options)
    fitting = cluster.workers * each * min(cluster.cores // each, cluster.memory_bytes // memory_bytes)
    rule = f"must leave room for executors with {parallelism} cores, and the workers hold those of {fitting}"
    return broken(Rule(wanted <= fitting, memory, rule, options[MEMORY], "leave it out"))


def _cores_of_executor(cluster: Cluster, options: Mapping[str, str]) -> int:
    """Unless stated, one executor takes all cores of its worker."""
    return whole(options.get(EXECUTOR_CORES, "")) or cluster.cores


def _bytes_of(size: str) -> int:
    """Bytes of a size as Spark writes it; 0 for any other text."""
    found = _SIZE.fullmatch(size)
    return int(found[1]) * _UNITS[found[2].lower()] if found is not None else 0


def _why_silent(address: str) -> str:
    """Why nothing accepts connections at HOST:PORT; empty if something does."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), CONNECT_S):
            return ""
    except OSError as error:
        return f"{address}: {error.strerror or error}"
    except (OverflowError, ValueError):  # a port above 65535
        return f"{address}: not a port"
