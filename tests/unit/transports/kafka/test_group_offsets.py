"""What a job has read, if it writes topics of its own and reads them again."""

from streamgauge.transports.kafka.group_offsets import OwnTopics

IN, ONE, TWO = ("in", 0), ("group-one", 0), ("group-two", 0)


def test_what_waits_in_a_topic_of_the_job_has_not_passed() -> None:
    own = OwnTopics()
    assert own.passed({IN: 100}, {ONE: 0}, {ONE: 100}) == {}
    assert own.passed({IN: 300}, {ONE: 60}, {ONE: 300}) == {}
    assert own.passed({IN: 300}, {ONE: 120}, {ONE: 300}) == {IN: 100}
    assert own.passed({IN: 300}, {ONE: 300}, {ONE: 300}) == {IN: 300}


def test_each_topic_is_passed_in_turn() -> None:
    """What the first one held may have been written to the second since."""
    own = OwnTopics()
    assert own.passed({IN: 10}, {ONE: 0, TWO: 0}, {ONE: 10, TWO: 0}) == {}
    assert own.passed({IN: 10}, {ONE: 10, TWO: 0}, {ONE: 10, TWO: 10}) == {}
    assert own.passed({IN: 10}, {ONE: 10, TWO: 9}, {ONE: 10, TWO: 10}) == {}
    assert own.passed({IN: 10}, {ONE: 10, TWO: 10}, {ONE: 10, TWO: 10}) == {IN: 10}
    assert len(own._looks) <= 2
