"""Storm: capabilities, options, and what they set. Loads nothing of it."""

from collections.abc import Mapping

from streamgauge.core.clock import US
from streamgauge.core.plugin_options import Fetch, Setting, with_defaults
from streamgauge.core.units import parse_size, parse_whole
from streamgauge.engines.jvm.plugin import GREATEST, JOB_SETTINGS, capabilities, milliseconds

SETTINGS = (
    Setting("memory", "2GiB", "the heap of the JVM, which has the cluster and the job"),
    Setting(
        "ackers",
        "1",
        "tasks that follow tuples to their end; without one, offsets count sent tuples",
        ("0", "1", "2"),
    ),
    Setting("windows", "own", "bolts of ours, or Storm's windowed bolt, which keeps every tuple", ("own", "storm")),
    Setting(
        "pending",
        "auto",
        "tuples that may be on their way, with ackers; auto: 20000, with windows=storm one for each 2KiB of memory",
    ),
    Setting("spins", "0", "how often an idle task looks for tuples before it sleeps for 2ms"),
    Setting("watermark_interval", "20ms", "how often spouts send watermarks, which delays the results of windows"),
    Setting("commit_interval", "1s", "how often offsets are committed, which show the progress"),
    *JOB_SETTINGS,
)
"""The defaults are those of the profile `tuned`."""
STORMS_OWN = {"spins": "1000"}
"""What these options are where a job sets nothing."""
COUNTS = {"pending": 1, "spins": 0}
"""The options that are whole numbers, and the least of each."""
LEAST_S = {"watermark_interval": 0.001, "commit_interval": 0.01}
"""The options that are times, and the least of each."""
PENDING = 20_000
PENDING_BYTES = 2048
"""Heap for a tuple in Storm's own windows, which acknowledge it when it leaves its last one."""
SKEW_S = 2.0
"""How far Storm's own windows let partitions, sides of a join and tasks be apart."""
TIMEOUT_S = {"own": "600", "storm": "2000000"}
"""A tuple that waits is not sent again. Storm holds windows, whose milliseconds are microseconds, against it."""
FIXED = {
    "topology.workers": "1",
    "topology.producer.batch.size": "1",  # with batches acknowledgements of the last tuples may stay where they are
}
ALWAYS_SET = {
    "pending", "streamgauge.pending", "commit_interval", "streamgauge.commit.ms", "topology.message.timeout.secs",
    "watermark_interval", "streamgauge.watermark.ms",
}  # fmt: skip
"""What each profile sets to something else than Storm does by itself, or what Storm has only for its own windows, such
as its watermark interval of 1 s."""

CAPABILITIES = capabilities(
    "storm",
    "Apache Storm, spouts and bolts",
    Fetch("Storm and its Kafka client", 164_000_000, "--engine storm"),
    SETTINGS,
    STORMS_OWN,
    delivery_of_windows="at_most_once",  # state is lost with the JVM
)


def pending(options: Mapping[str, str]) -> int:
    """How many tuples of all spouts may be on their way."""
    chosen = with_defaults(options, SETTINGS)
    if chosen["pending"] != "auto":
        return whole(chosen, "pending")
    return parse_size(chosen["memory"]) // PENDING_BYTES if chosen["windows"] == "storm" else PENDING


def whole(options: Mapping[str, str], name: str) -> int:
    """An option of `COUNTS`. Raises InputError."""
    return parse_whole(options[name], f"option {name}", COUNTS[name], GREATEST, "100")


def configuration(options: Mapping[str, str]) -> dict[str, str]:
    """Storm's settings for these options, and ours, which begin with `streamgauge.`."""
    chosen = with_defaults(options, SETTINGS)
    chosen |= {name: str(milliseconds(chosen[name])) for name in LEAST_S}
    return {
        **FIXED, "topology.acker.executors": chosen["ackers"], "streamgauge.pending": str(pending(chosen)),
        "topology.message.timeout.secs": TIMEOUT_S[chosen["windows"]], "streamgauge.windows": chosen["windows"],
        "topology.bolt.wait.progressive.level2.count": str(whole(chosen, "spins")),
        "streamgauge.skew.us": str(round(SKEW_S * US)),
        "streamgauge.watermark.ms": chosen["watermark_interval"], "streamgauge.commit.ms": chosen["commit_interval"],
    }  # fmt: skip
