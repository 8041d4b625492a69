"""The transport over a Kafka broker, as the registry finds it. Its libraries are loaded when an endpoint opens."""

from collections.abc import Iterator, Mapping

from streamgauge.core.machine_check import MachineCheck
from streamgauge.core.plugin_options import CLIENT_FILE, Fetch
from streamgauge.system.java import jars_check
from streamgauge.transports.kafka.settings import SETTINGS, KafkaSettings, problems
from streamgauge.transports.spi import Transport


def _machine_checks(options: Mapping[str, str]) -> Iterator[MachineCheck]:
    """The brokers that are named, else the jars of the one that a run starts."""
    if options.get("brokers"):
        from streamgauge.transports.kafka.topics import brokers_check

        settings = KafkaSettings(**options)
        yield brokers_check(settings.brokers, settings.login)
    else:
        from streamgauge.transports.kafka.broker import KAFKA

        yield jars_check("broker_jars", [[KAFKA]], BROKER)


def _require(options: Mapping[str, str]) -> None:
    if not options.get("brokers"):
        from streamgauge.transports.kafka.broker import require_jars

        require_jars()


BROKER = Fetch("a broker, Apache Kafka 4.2", 39_000_000, "--transport kafka without --brokers")
# The driver does not observe a broker's deliveries: no `stamps`.
TRANSPORT = Transport(
    "streamgauge.transports.kafka.outlet:KafkaOutlet", "streamgauge.transports.kafka.program_inlet:open_inlet",
    "streamgauge.transports.kafka.cluster:KafkaCluster", settings=SETTINGS, fetches=(BROKER,), files=(CLIENT_FILE,),
    problems=problems, machine_checks=_machine_checks, require=_require,
    effective_settings=lambda options: {"producer": KafkaSettings(**options).effective_settings},
)  # fmt: skip
