"""The options of the Kafka transport, and the resulting settings of both clients.

Credentials for the user's brokers are in a file with librdkafka's setting names. Only its path is passed on, so no
value appears in a result, log or command line. Java's client gets the same settings by its names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from streamgauge.core.errors import InputError, Problem
from streamgauge.core.plugin_options import CLIENT_FILE, Setting, problems_of
from streamgauge.core.units import parse_duration, parse_size

ENCODINGS = ("compact", "json", "avro")
SETTINGS = (
    Setting("brokers", "", "HOST:PORT,... of a cluster of your own (--brokers); without it a broker is started"),
    Setting(CLIENT_FILE, "", "a file of NAME=VALUE lines by which clients log in to it, by librdkafka's names"),
    Setting("topics", "remove", "what becomes of a run's topics on brokers of your own", ("remove", "keep")),
    Setting("encoding", "compact", "how an event is written in a message", ENCODINGS),
    Setting("acks", "all", "which copies have an event before it counts as sent", ("all", "1")),
    Setting("compression", "lz4", "of events on their way", ("none", "lz4", "snappy", "gzip", "zstd")),
    Setting("linger", "1ms", "how long the producer waits for more to send at once, at most 1s; 0ms in real-time mode"),
    Setting("batch", "1MB", "how much it sends at once at most, 1kB to 1MB"),
)
"""The defaults equal those of `KafkaSettings`."""
_SIZES: dict[str, tuple[Callable[[str], float], float, float, str, str]] = {
    "linger": (parse_duration, 0.0, 1.0, "must be at most 1s", "5ms"),
    "batch": (parse_size, 1e3, 1e6, "must be 1kB to 1MB", "100kB"),
}
"""Setting to (parser, minimum, maximum, rule, example)."""
CLIENT_SETTINGS = (
    "security.protocol", "sasl.mechanism", "sasl.username", "sasl.password", "ssl.ca.location",
    "ssl.certificate.location", "ssl.key.location", "ssl.key.password", "ssl.endpoint.identification.algorithm",
)  # fmt: skip
"""The settings allowed in a client file: those with the same meaning for both clients."""
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MODULES = {
    "PLAIN": "plain.PlainLoginModule",
    "SCRAM-SHA-256": "scram.ScramLoginModule",
    "SCRAM-SHA-512": "scram.ScramLoginModule",
}
_TOGETHER = (
    {"sasl.mechanism", "sasl.username", "sasl.password"},
    {"ssl.certificate.location", "ssl.key.location"},
)
ABSOLUTE_PATH_OPTIONS = {"reconnect.backoff.max.ms": 250}
"""The longest reconnection delay of librdkafka's clients. Their default of 10 s would look like latency of the SUT."""
MESSAGE_BYTES_MAX = 90 * 2**20
"""The largest message: more than the largest payload as base64, and less than the 100 MB of a request."""
_BROKER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+):(\d{1,5})")


@dataclass(frozen=True)
class KafkaSettings:
    """The options as values; they have passed `problems`."""

    brokers: str = ""
    client: str = ""
    topics: str = "remove"
    encoding: str = "compact"
    acks: str = "all"
    compression: str = "lz4"
    linger: str = "1ms"
    batch: str = "1MB"

    @cached_property
    def login(self) -> dict[str, str]:
        """librdkafka's settings for logging in."""
        return read_client(Path(self.client)) if self.client else {}

    @property
    def of_client(self) -> dict[str, str]:
        """librdkafka's settings for reaching the brokers and logging in."""
        return {"bootstrap.servers": self.brokers, **self.login}

    @property
    def producing(self) -> dict[str, Any]:
        """librdkafka's producer settings. They ensure that the n-th event is at offset n.

        With acks=all the producer is idempotent. Otherwise it does not retry, and sends one request at a time.
        """
        return {
            **self.of_client,
            "enable.idempotence": self.acks == "all",
            **({} if self.acks == "all" else {"retries": 0, "max.in.flight": 1}),
            "acks": self.acks,
            "compression.type": self.compression,
            "linger.ms": 1000 * parse_duration(self.linger),
            "batch.size": parse_size(self.batch),
        }

    @property
    def effective_settings(self) -> str:
        """The producer's settings for the result."""
        return " ".join(
            f"{name}={getattr(self, name)}" for name in ("encoding", "acks", "compression", "linger", "batch")
        )

    def java(self) -> dict[str, str]:
        """Log-in settings of Java's client."""
        settings = {name: value(self.login[ours]) for ours in self.login for name, value in _JAVA.get(ours, {}).items()}
        if "sasl.username" in self.login:
            user, password = (_quoted(self.login[f"sasl.{name}"]) for name in ("username", "password"))
            module = f"org.apache.kafka.common.security.{_MODULES[self.login['sasl.mechanism']]}"
            settings["sasl.jaas.config"] = f"{module} required username={user} password={password};"
        return settings

    def java_properties(self) -> str:
        """The same as a file of Java's properties."""
        escaped = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r"})
        return "".join(f"{name}={value.translate(escaped)}\n" for name, value in self.java().items())


def problems(options: Mapping[str, str]) -> Iterator[Problem]:
    """The problems of these options."""
    yield from problems_of(options, SETTINGS, "the transport kafka", "transport option")
    for one in options["brokers"].split(",") if "brokers" in options else ():
        matched = _BROKER.fullmatch(one)
        if matched is None or not 0 < int(matched[2]) < 65536:
            yield Problem("transport option brokers", "must be HOST:PORT,...", one or "nothing", "--brokers HOST:9092")
    for name in (CLIENT_FILE, "topics"):
        if name in options and not options.get("brokers"):
            rule = "only applies to brokers of your own, and none are named"
            yield _problem(name, rule, options[name], "add --brokers HOST:PORT")
    if CLIENT_FILE in options:
        try:
            read_client(Path(options[CLIENT_FILE]))
        except InputError as error:
            yield from error.problems
    for name, (parse, least, most, rule, example) in _SIZES.items():
        if name not in options:
            continue
        try:
            rules = [] if least <= parse(options[name]) <= most else [rule]
        except InputError as error:
            rules = [problem.rule for problem in error.problems]
        yield from (_problem(name, each, options[name], f"{name}={example}") for each in rules)


def read_client(path: Path) -> dict[str, str]:
    """The settings in a client file: NAME=VALUE lines; comments start with `#`.

    Raises:
        InputError: with every problem. The messages contain no secrets.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error.reason
        raise InputError(
            _problem(CLIENT_FILE, f"must be a file that can be read ({reason})", str(path), f"{CLIENT_FILE}=FILE")
        ) from None
    settings: dict[str, str] = {}
    wrong: list[Problem] = []
    for number, line in enumerate(text.splitlines(), 1):
        name, equals, value = (part.strip() for part in line.partition("="))
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not equals or name not in CLIENT_SETTINGS or name in settings:
            rule = "must have lines NAME=VALUE, each name once, of " + ", ".join(CLIENT_SETTINGS)
            known = equals and name.startswith(("sasl.", "ssl.", "security.", "bootstrap."))  # else it may be a secret
            got = f"{f'{name} in ' if known else ''}line {number} of {path}"
            wrong.append(_problem(CLIENT_FILE, rule, got, _instead(name) if known else "correct that line"))
        settings[name] = value
    wrong = wrong or [
        _problem(CLIENT_FILE, rule, str(path) if got is None else got, f"{wanted} in {path}")
        for rule, got, wanted in _login_problems(settings)
    ]
    if wrong:
        raise InputError(wrong)
    return settings


def _instead(name: str) -> str:
    """The way out of a line that no client file may have."""
    if name.startswith(("sasl.kerberos.", "sasl.oauthbearer.")):
        return f"GSSAPI and OAUTHBEARER are not supported: a sasl.mechanism of {', '.join(_MODULES)}"
    if name == "sasl.jaas.config":
        return "sasl.username=... and sasl.password=... instead, as librdkafka names them"
    return "remove that line"


def _login_problems(login: Mapping[str, str]) -> Iterator[tuple[str, str | None, str]]:
    """(rule, value or None for the path, what the file shall have) of settings that do not fit together."""
    for group in _TOGETHER:
        if 0 < len(group & set(login)) < len(group):
            yield f"must have {' and '.join(sorted(group))}, or none of them", None, "all of them"
    protocol, mechanism = login.get("security.protocol", "").upper(), login.get("sasl.mechanism", "PLAIN")
    if protocol not in PROTOCOLS:
        yield f"must have a security.protocol of {', '.join(PROTOCOLS)}", protocol or "none", "one of them"
        return
    for kind, part in (("sasl.", "SASL"), ("ssl.", "SSL")):
        given = [name for name in login if name.startswith(kind)]
        if given and part not in protocol.split("_"):
            yield f"must have a security.protocol with {part} where it has {given[0]}", protocol, "another one"
    if "SASL_" in protocol and "sasl.mechanism" not in login:
        yield "must have sasl.mechanism, sasl.username and sasl.password", None, "all of them"
    if mechanism not in _MODULES:
        yield f"must have a sasl.mechanism of {', '.join(_MODULES)}", mechanism, "another mechanism"
    for name, path in login.items():
        if name.endswith(".location") and not (Path(path).is_absolute() and Path(path).is_file()):
            yield f"must name a PEM file in {name}, by its whole path", path, "another path"


def _problem(name: str, rule: str, got: object, way_out: str) -> Problem:
    flag = "--transport-option " if way_out.startswith(name) else ""
    return Problem(f"transport option {name}", rule, got, flag + way_out)


def _pem(path: str) -> str:
    return Path(path).read_text()


_JAVA: dict[str, dict[str, Callable[[str], str]]] = {
    "security.protocol": {"security.protocol": str.upper},
    "sasl.mechanism": {"sasl.mechanism": str},
    "ssl.ca.location": {"ssl.truststore.type": lambda _: "PEM", "ssl.truststore.location": str},
    "ssl.certificate.location": {"ssl.keystore.type": lambda _: "PEM", "ssl.keystore.certificate.chain": _pem},
    "ssl.key.location": {"ssl.keystore.key": _pem},
    "ssl.key.password": {"ssl.key.password": str},
    "ssl.endpoint.identification.algorithm": {
        "ssl.endpoint.identification.algorithm": lambda algorithm: "" if algorithm == "none" else algorithm
    },
}
"""librdkafka's name to Java's, each with its value made of librdkafka's. Java's client does not take paths of PEM keys.
"""


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
