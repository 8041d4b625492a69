"""The options of the transport over Kafka: which are refused, and the settings of both clients."""

from pathlib import Path

import pytest

from streamgauge.core.errors import InputError
from streamgauge.transports.kafka.settings import SETTINGS, KafkaSettings, problems, read_client

BROKERS = {"brokers": "one:9092,[::1]:9093"}
SECRET = 'a "secret" \\ of mine'
LOGIN = f"""
# how we log in
security.protocol = sasl_plaintext
sasl.mechanism=SCRAM-SHA-256
sasl.username=me
sasl.password={SECRET}
"""
SASL = "security.protocol=SASL_SSL\n"


def client(tmp_path: Path, text: str) -> dict[str, str]:
    path = tmp_path / "client.properties"
    path.write_text(text)
    return {**BROKERS, "client": str(path)}


def test_defaults_are_right() -> None:
    """Every setting has one, and nothing is wrong with any of them."""
    defaults = {setting.name: setting.default for setting in SETTINGS}
    assert vars(KafkaSettings()) == defaults
    assert list(problems({**{name: default for name, default in defaults.items() if default}, **BROKERS})) == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"encodings": "json"}, "transport option encodings: is not a transport option of the transport kafka"),
        ({"encoding": "xml"}, "transport option encoding: must be one of compact, json, avro"),
        ({"brokers": "one"}, "transport option brokers: must be HOST:PORT,..."),
        ({"brokers": "one:99999"}, "transport option brokers: must be HOST:PORT,..."),
        ({"brokers": "one:1,"}, "transport option brokers: must be HOST:PORT,...; got 'nothing'"),
        ({"brokers": ""}, "transport option brokers: must be HOST:PORT,..."),
        ({"topics": "keep"}, "transport option topics: only applies to brokers of your own, and none are named"),
        ({"client": "x"}, "transport option client: only applies to brokers of your own, and none are named"),
        ({**BROKERS, "client": "/nowhere"}, "transport option client: must be a file that can be read (No such file"),
        ({"linger": "soon"}, "transport option linger: must be a time"),
        ({"linger": "2s"}, "transport option linger: must be at most 1s"),
        ({"batch": "1"}, "transport option batch: must be 1kB to 1MB"),
        ({"batch": "2MB"}, "transport option batch: must be 1kB to 1MB"),
        ({**BROKERS, "client": ""}, "transport option client: must be a file that can be read"),
        ({"batch": "much"}, "transport option batch: must be a size"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, str], expected: str) -> None:
    """By the setting, its rule, and a way out that would pass."""
    assert any(str(problem).startswith(expected) for problem in problems(options)), [*map(str, problems(options))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sasl.passwort=abc", "line 1 of"),
        ("ssl.ca.location=a\nssl.ca.location=b", "line 2 of"),
        ("sasl.password", "line 1 of"),
        ("security.protocol=SASL\n", "must have a security.protocol of PLAINTEXT, SSL"),
        ("sasl.mechanism=PLAIN\nsasl.username=a\nsasl.password=b", "must have a security.protocol of PLAINTEXT, SSL"),
        (
            "security.protocol=SSL\nsasl.mechanism=PLAIN\nsasl.username=a\nsasl.password=b",
            "security.protocol with SASL",
        ),
        ("security.protocol=SASL_SSL", "must have sasl.mechanism, sasl.username and sasl.password"),
        (
            "security.protocol=PLAINTEXT\nssl.key.password=abc",
            "security.protocol with SSL where it has ssl.key.password",
        ),
        (
            "security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI\nsasl.username=a\nsasl.password=b",
            "must have a sasl.mechanism of PLAIN",
        ),
        (f"{SASL}sasl.username=me", "must have sasl.mechanism and sasl.password and sasl.username, or none"),
        ("security.protocol=SSL\nssl.ca.location=/nowhere", "must name a PEM file in ssl.ca.location"),
        ("security.protocol=SSL\nssl.ca.location=pyproject.toml", "by its whole path"),
    ],
)
def test_a_log_in_that_cannot_be_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    """By its line, and without any value that may be secret."""
    messages = "\n".join(map(str, problems(client(tmp_path, text))))
    assert expected in messages
    assert "abc" not in messages


def test_both_clients_log_in(tmp_path: Path) -> None:
    """Each by its own names; what is secret is quoted for Java."""
    settings = KafkaSettings(**client(tmp_path, LOGIN))
    assert settings.login["sasl.password"] == SECRET
    assert settings.producing["sasl.username"] == "me"
    assert settings.java() == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="me" password="a \\"secret\\" \\\\ of mine";',
    }
    last = settings.java_properties().splitlines()[-1]  # backslashes are doubled once more in a file of properties
    assert last.endswith(r'password="a \\"secret\\" \\\\ of mine";')


def test_keys_are_given_to_java_by_their_text(tmp_path: Path) -> None:
    """And a host that is not to be looked at has no algorithm there."""
    lines = ["security.protocol=SSL", "ssl.endpoint.identification.algorithm=none"]
    for name in ("ca", "certificate", "key"):
        (tmp_path / name).write_text(f"PEM of {name}")
        lines.append(f"ssl.{name}.location={tmp_path / name}")
    java = KafkaSettings(**client(tmp_path, "\n".join(lines))).java()
    assert (
        java
        | {
            "ssl.truststore.location": str(tmp_path / "ca"),
            "ssl.keystore.key": "PEM of key",
            "ssl.keystore.certificate.chain": "PEM of certificate",
            "ssl.endpoint.identification.algorithm": "",
        }
        == java
    )
    assert KafkaSettings("here:1").login == KafkaSettings("here:1").java() == {}


def test_what_may_come_twice_is_not_sent_twice() -> None:
    """The n-th event is at offset n: an idempotent producer sees to that, and another must not try again."""
    assert KafkaSettings().producing["enable.idempotence"] is True
    first = KafkaSettings(acks="1").producing
    assert (first["enable.idempotence"], first["retries"], first["max.in.flight"], first["acks"]) == (False, 0, 1, "1")


def test_a_result_says_how_events_were_sent() -> None:
    """All options, and nothing of the log-in."""
    settings = KafkaSettings(brokers="one:1", client="/a/file", encoding="json")
    assert settings.effective_settings == "encoding=json acks=all compression=lz4 linger=1ms batch=1MB"


def test_a_client_file_is_read(tmp_path: Path) -> None:
    """Blanks and remarks are nothing."""
    (tmp_path / "client").write_text("# remark\n\n security.protocol = SSL \n")
    assert read_client(tmp_path / "client") == {"security.protocol": "SSL"}
    with pytest.raises(InputError):
        read_client(tmp_path)
