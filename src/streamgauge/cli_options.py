"""Arguments and options that several commands have: their names, metavars and words of help."""

from __future__ import annotations

from typing import Annotated

import typer

Workload = Annotated[
    str,
    typer.Argument(
        metavar="WORKLOAD", help="a workload's name (streamgauge workloads lists them), or FILE.py: an own job"
    ),
]
Rate = Annotated[str, typer.Option(metavar="RATE", help="events per second of all streams together: 100k, 1.5M")]
Duration = Annotated[
    str, typer.Option(metavar="TIME", help="the measured span; warm-up comes before, the tail after: 60s, 2m")
]
Warmup = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="warm-up before the span  [default: 45s on a fresh JVM, 75s in real-time mode that "
        "keeps how far it is once a minute, more for spans above 70s]",
    ),
]
Engine = Annotated[str, typer.Option(metavar="NAME", help="engine under test (streamgauge engines)")]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="a workload parameter, or data=FILE: rows of your own in the place of made ones; repeatable"
        "  [default: none]",
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="an engine setting or lowering, such as spark.sql.shuffle.partitions=4  [default: none]",
    ),
]
Transport = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="how events travel; flight: from memory; kafka: over a broker; socket: as lines of text"
    ),
]
Brokers = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT,...", help="of --transport kafka: your own  [default: one is started for the run]"),
]
TransportOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--transport-option",
        metavar="NAME=VALUE",
        help="a setting of the transport, such as encoding=json over kafka; repeatable  [default: none]",
    ),
]
Master = Annotated[str | None, typer.Option(metavar="URL", help="Spark master  [default: local[all cores]]")]
Isolation = Annotated[
    str, typer.Option(metavar="HOW", help="shared: same cores for driver and SUT; pinned: cores apart")
]
Generators = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="generator processes, of 160 MB each  [default: one per SUT core, at most 8; 1 over kafka and socket]",
    ),
]
Seed = Annotated[str, typer.Option(metavar="N", help="the same seed gives the same input, byte for byte")]
Profile = Annotated[
    str, typer.Option(metavar="SHAPE", help="constant | step:RATE@TIME,... | ramp:RATE | burst:FACTOR@TIME+LENGTH")
]
Chunk = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="how much event time travels at once  [default: 50ms; 10ms below 200k/s with batches less than 1s apart; "
        "a fifth of both in real-time mode]",
    ),
]
Bound = Annotated[str, typer.Option(metavar="TIME", help="the queue's bound, in seconds of the rate")]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="the queue's bound, in bytes, and of nothing else"
        "  [default: 4GiB, at most half of the memory with the generators]",
    ),
]
Frontier = Annotated[
    str, typer.Option(metavar="HOW", help="common: all partitions cut at one event time; free: each at its own")
]
Bind = Annotated[str, typer.Option(metavar="ADDRESS", help="address that endpoints listen on")]
Port = Annotated[str | None, typer.Option(metavar="N", help="first port of the endpoints  [default: free ones]")]
Out = Annotated[str | None, typer.Option(metavar="DIR", help="where run folders go  [default: runs]")]
Keep = Annotated[
    bool, typer.Option("--keep-results", help="keep every result as results[-SINK].parquet  [default: off]")
]
Limit = Annotated[
    list[str] | None,
    typer.Option("--limit", metavar="RULE", help='a service level: "event_time_p99<=2s"; repeatable  [default: none]'),
]
AsJson = Annotated[bool, typer.Option("--json", help="the result object on stdout, nothing else there  [default: off]")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="every check, not only those that matter  [default: off]")
]
PrintToml = Annotated[
    bool, typer.Option("--print-toml", help="show the experiment as a file, and stop  [default: off]")
]
