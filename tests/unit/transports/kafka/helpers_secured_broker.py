"""A broker that wants a name and a password, beside its open door."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamgauge.transports.kafka.broker import Broker, free_ports
from streamgauge.transports.kafka.topics import Topics

PASSWORD = "a-password-nobody-may-see"
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@contextmanager
def wanting_a_log_in(root: Path, password: str = PASSWORD) -> Iterator[tuple[str, Path, Topics]]:
    """Where it is, a client's file that has `password`, and its topics, asked by the open door."""
    with Broker(root / "secured", root / "secured.log") as broker:
        broker.kill()
        secured = f"127.0.0.1:{free_ports('127.0.0.1', 1)[0]}"
        _want_a_log_in(root / "secured" / "server.properties", secured)
        broker.restart()
        client = root / "client.properties"
        client.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=me\nsasl.password={password}\n"
        )
        yield secured, client, Topics(broker.location)


def _want_a_log_in(properties: Path, at: str) -> None:
    """One more listener."""
    jaas = f'{_MODULE} required username="broker" password="x" user_me="{PASSWORD}";'
    lines = []
    for line in properties.read_text().splitlines():
        lines.append(f"{line},SASL_PLAINTEXT://{at}" if line.startswith("listeners=") else line)
    lines += [
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms=PLAIN",
        "inter.broker.listener.name=PLAINTEXT",
        f"listener.name.sasl_plaintext.plain.sasl.jaas.config={jaas}",
    ]
    properties.write_text("\n".join(lines) + "\n")
