"""Flink: capabilities, options, and what they set. Loads nothing of Flink."""

from collections.abc import Mapping

from streamgauge.core.plugin_options import Fetch, Setting, with_defaults
from streamgauge.engines.jvm.plugin import JOB_SETTINGS, capabilities, milliseconds

SETTINGS = (
    Setting("memory", "2GiB", "the heap of the JVM, which has the cluster and the job"),
    Setting("buffer_timeout", "5ms", "how long rows wait for more before they go to the next task"),
    Setting("watermark_interval", "20ms", "how often watermarks are made, which delays the results of windows"),
    Setting("object_reuse", "true", "whether tasks pass rows on without a copy", ("true", "false")),
    Setting("checkpoint_interval", "1s", "how often state is kept and offsets are committed, which show the progress"),
    *JOB_SETTINGS,
)
"""The defaults are those of the profile `tuned`."""
FLINKS_OWN = {"buffer_timeout": "100ms", "watermark_interval": "200ms", "object_reuse": "false"}
"""What these options are where a job sets nothing."""
NAMES = {
    "buffer_timeout": "execution.buffer-timeout.interval", "watermark_interval": "pipeline.auto-watermark-interval",
    "object_reuse": "pipeline.object-reuse", "checkpoint_interval": "execution.checkpointing.interval",
}  # fmt: skip
"""Option to Flink's setting."""
LEAST_S = {"buffer_timeout": 0.0, "watermark_interval": 0.001, "checkpoint_interval": 0.01}
"""The options that are times, and the least of each."""
FIXED = {
    # A job that fails shall be seen, not started again.
    "restart-strategy.type": "disable",
    "state.backend.type": "hashmap",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    # Everything listens on loopback. Its own files are not fetched over a port.
    "jobmanager.bind-host": "127.0.0.1",
    "taskmanager.bind-host": "127.0.0.1",
    "blob.offload.minsize": "1073741824",
    "rest.bind-address": "127.0.0.1",
    "rest.address": "127.0.0.1",
}
ALWAYS_SET = {"checkpoint_interval", NAMES["checkpoint_interval"], *FIXED} - {"state.backend.type"}
"""What each profile sets to something else than Flink does by itself, which keeps no checkpoints."""

CAPABILITIES = capabilities(
    "flink",
    "Apache Flink, DataStream API",
    Fetch("Flink and its Kafka connector", 86_000_000, "--engine flink"),
    SETTINGS,
    FLINKS_OWN,
    location_settings=("execution.checkpointing.dir",),
)


def configuration(options: Mapping[str, str]) -> dict[str, str]:
    """Flink's settings for these options."""
    chosen = with_defaults(options, SETTINGS)
    chosen |= {name: f"{milliseconds(chosen[name])} ms" for name in LEAST_S}
    return {**FIXED, **{flinks: chosen[name] for name, flinks in NAMES.items()}}
