"""The transport over a Kafka broker, as the registry finds it. Its libraries are loaded when an endpoint opens."""

from collections.abc import Mapping

from streamgauge.core.plugin_options import CLIENT_FILE, Fetch
from streamgauge.transports.kafka.settings import SETTINGS, KafkaSettings, problems
from streamgauge.transports.spi import Transport


def _require(options: Mapping[str, str]) -> None:
    if options.get("brokers"):
        from streamgauge.transports.kafka.admin import require_brokers

        settings = KafkaSettings(**options)
        require_brokers(settings.brokers, settings.login)
    else:
        from streamgauge.transports.kafka.broker import require_jars

        require_jars()


BROKER = Fetch("a broker, Apache Kafka 4.2", 39_000_000, "--transport kafka without --brokers")
# The driver does not observe a broker's deliveries: no `stamps`.
TRANSPORT = Transport(
    "streamgauge.transports.kafka.outlet:KafkaOutlet", "streamgauge.transports.kafka.program_inlet:open_inlet",
    "streamgauge.transports.kafka.cluster:KafkaCluster", settings=SETTINGS, fetches=(BROKER,), files=(CLIENT_FILE,),
    problems=problems, require=_require,
    effective_settings=lambda options: {"producer": KafkaSettings(**options).effective_settings},
)  # fmt: skip
