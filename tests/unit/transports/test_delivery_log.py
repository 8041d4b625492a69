"""Who has read what: several readers of one stream, each counted once, all with the first delivery's stamp."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from streamgauge.transports.delivery_log import ReadLog


def test_what_waits_is_what_the_slowest_lacks() -> None:
    """Two readers: the stream has been read as far as both have."""
    reads = ReadLog("purchases")
    assert reads.reached_us == 0
    reads.note(0, 30, 0, ("q0", 0), 100)
    assert reads.reached_us == 30
    reads.note(0, 10, 0, ("q1", 0), 110)
    assert reads.reached_us == 10
    reads.note(10, 30, 1, ("q1", 0), 120)
    reads.note(0, 10, 0, ("q1", 0), 130)
    assert reads.reached_us == 30  # what is read again was not waiting


def test_forgotten_history_is_gone() -> None:
    """Committed ranges are not asked for again, so nothing of them is kept; what is not committed is still known.

    A search reads for hours, and every read looks through all that is kept.
    """
    reads, readers = ReadLog("purchases"), (("q0", 0), ("q1", 0))
    for number in range(1000):
        for reader in readers:
            reads.note(10 * number, 10 * number + 10, number, reader, 100 + number)
        reads.forget(10 * number)  # the last range stays
        assert (len(reads._first), [len(had) for had in reads._had.values()]) == (1, [1] * len(readers))
    (part,) = reads.note(9990, 10_000, 1000, ("q2", 0), 5000)
    assert (part.shared, part.ingest_us) == (True, 1099)


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(1, 10), st.sampled_from([("a", 0), ("a", 1), ("b", 0)])), max_size=25
    )
)
def test_every_moment_is_first_once_and_new_to_a_reader_once(steps: list[tuple[int, int, tuple[str, int]]]) -> None:
    """Against a plain model of single microseconds: whatever the order of reads."""
    reads, stamps, had = ReadLog("purchases"), dict[int, int](), set[tuple[int, tuple[str, int]]]()
    for number, (low, length, reader) in enumerate(steps):
        parts = reads.note(low, low + length, number, reader, 1000 + number)
        assert [part.from_us for part in parts] == [low, *(part.to_us for part in parts[:-1])]
        assert parts[-1].to_us == low + length
        assert all(a.to_us == b.from_us for a, b in pairwise(parts))
        for part in parts:
            assert (part.query, part.reader, part.when_us) == (*reader, 1000 + number)
            for moment in range(part.from_us, part.to_us):
                assert part.again == ((moment, reader) in had)
                assert part.first == (moment not in stamps)
                assert part.shared == (moment in stamps and not part.again)
                assert part.ingest_us == stamps.setdefault(moment, 1000 + number)
                had.add((moment, reader))
