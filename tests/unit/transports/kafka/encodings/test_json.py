"""Events as JSON: any reader of JSON finds what was sent."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from streamgauge.transports.kafka.encodings.json import Json


def test_two_threads_may_encode_at_once() -> None:
    """A generator makes the events of its next plan while those of the last one still go out."""
    batch = pa.record_batch({"n": pa.array(range(20_000), pa.int64())})
    encoder = Json((("n", "bigint"),))
    with ThreadPoolExecutor(2) as threads:
        encoded = list(threads.map(encoder.encode, [batch] * 20))
    assert all(each.equals(encoded[0]) for each in encoded)
