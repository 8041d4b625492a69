"""The command `streamgauge cluster`: a standalone Spark cluster on this machine."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from streamgauge.cli.parameters import AsJson
from streamgauge.cli.usage import Command, CommandGroup
from streamgauge.core.exit_codes import ExitCode
from streamgauge.core.output import print_answer, print_progress

if TYPE_CHECKING:
    from streamgauge.engines.local_cluster import Cluster

app = typer.Typer(
    cls=CommandGroup,
    help="Run a standalone Spark cluster on this machine, for --master. It listens on loopback only.",
    no_args_is_help=True, rich_markup_mode=None,
)  # fmt: skip
NOT_RUNNING = "no cluster is running; streamgauge cluster start --workers N starts one"


@app.command(short_help="Start a master and workers", cls=Command)
def start(
    workers: Annotated[int, typer.Option(metavar="N", help="number of workers")] = 1,
    cores: Annotated[
        int | None, typer.Option(metavar="N", help="cores of each worker  [default: an equal share of the processors]")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="memory of each worker  [default: 2GiB, at most half of the machine's]"),
    ] = None,
    cpus: Annotated[
        str | None, typer.Option(metavar="CPUS", help="processors of the cluster: 1-3 or 1,4-7  [default: all]")
    ] = None,
    port: Annotated[int | None, typer.Option(metavar="PORT", help="port of the master  [default: a free one]")] = None,
    json_: AsJson = False,
) -> None:
    """Start a Spark master and workers with stated cores and memory. They run until `streamgauge cluster stop`."""
    from streamgauge.engines.local_cluster import ClusterRequest
    from streamgauge.engines.registry import local_cluster

    cluster = local_cluster().start(ClusterRequest(workers, cores, memory, port, cpus), print_progress)
    _show(cluster, json_)
    print_progress("end it with streamgauge cluster stop")


@app.command(short_help="Print the address of the cluster's master", cls=Command)
def status(json_: AsJson = False) -> NoReturn:
    """Print the address of the cluster's master. Exits 1 unless the whole cluster is running."""
    from streamgauge.engines.local_cluster import ended_in_words, unready_in_words
    from streamgauge.engines.registry import local_cluster

    cluster = local_cluster().read()
    if cluster is None or not cluster.runs:
        ended = f"; the last one ended without stop ({cluster.master or 'master'})" if cluster is not None else ""
        print_answer(json.dumps({"running": False})) if json_ else None
        print_progress(f"{NOT_RUNNING}{ended}")
        sys.exit(ExitCode.FAILS)
    if not cluster.is_ready:
        print_answer(json.dumps(_as_json(cluster), indent=2)) if json_ else None
        print_progress(f"{unready_in_words(cluster)}; wait, or end it with streamgauge cluster stop")
        sys.exit(ExitCode.FAILS)
    _show(cluster, json_)
    if ended_members := cluster.ended():
        print_progress(ended_in_words(ended_members))
        print_progress("start it again: streamgauge cluster stop, then start")
        sys.exit(ExitCode.FAILS)
    sys.exit(ExitCode.HOLDS)


@app.command(short_help="Stop the cluster", cls=Command)
def stop() -> None:
    """Stop the cluster with its executors. Without a cluster it does nothing."""
    from streamgauge.engines.registry import local_cluster

    print_progress("stopped" if local_cluster().stop(print_progress) else "no cluster is running: nothing to stop")


def _show(cluster: Cluster, as_json: bool) -> None:
    """The address alone on stdout, for `--master $(streamgauge cluster status)`."""
    if as_json:
        print_answer(json.dumps(_as_json(cluster), indent=2))
    else:
        print_answer(cluster.master)
        print_progress(cluster.resources)


def _as_json(cluster: Cluster) -> dict[str, Any]:
    return {
        "running": cluster.is_ready and not cluster.ended(), "master": cluster.master, "workers": cluster.workers,
        "cores": cluster.cores, "memory_bytes": cluster.memory_bytes, "cpus": list(cluster.cpus),
        "members": [
            {"name": one.name, "pid": one.pid, "running": one.process is not None, "log": one.log}
            for one in cluster.members
        ],
    }  # fmt: skip
