"""What Storm's options set."""

import pytest

from streamgauge.config.experiment import build
from streamgauge.conformance.cases import CASES
from streamgauge.core.clock import US
from streamgauge.core.errors import InputError
from streamgauge.core.plugin_options import IDIOMATIC
from streamgauge.engines.spi import StartRequest
from streamgauge.engines.storm.options import CAPABILITIES, SKEW_S, configuration, pending
from streamgauge.engines.storm.plugin import StormPlugin
from streamgauge.preflight.settings_checks import check


def test_times_are_passed_in_milliseconds() -> None:
    assert configuration({"watermark_interval": "2s"})["streamgauge.watermark.ms"] == "2000"
    assert configuration({"ackers": "0"})["topology.acker.executors"] == "0"


def test_storms_own_windows_let_all_their_tuples_be_on_their_way() -> None:
    storms = configuration({"windows": "storm"})
    # Storm compares a window's microseconds, as milliseconds, with it.
    assert int(storms["topology.message.timeout.secs"]) * 1000 < 2**31
    assert int(storms["streamgauge.skew.us"]) == SKEW_S * US
    assert pending({"windows": "storm", "memory": "1GiB"}) == int(storms["streamgauge.pending"]) // 2 > pending({})
    assert configuration({"windows": "storm", "pending": "5k"})["streamgauge.pending"] == "5000"


STORMS = {"workload": "windowed_aggregation", "engine": "storm", "transport": "kafka", "options": {"windows": "storm"}}


@pytest.mark.parametrize(
    ("rate", "options", "way_out"),
    [
        ("80k", {}, None),
        ("81k", {}, "memory=2057MiB"),  # 13 s of tuples: range, slide, and a second on their way
        ("81k", {"memory": "2057MiB"}, None),
        ("100k", {"pending": "1.2M"}, "pending=1300000"),
        ("100k", {"pending": "1300000"}, None),
        ("100k", {"ackers": "0"}, None),
    ],
)
def test_more_tuples_in_storms_own_windows_than_may_be_on_their_way_are_refused(
    rate: str, options: dict[str, str], way_out: str | None
) -> None:
    """Its spouts would stand still for good."""
    values = STORMS | {"load": {"rate": rate}, "options": {"windows": "storm"} | options}
    if way_out is None:
        check(build(values))
        return
    with pytest.raises(InputError) as error:
        check(build(values))
    (problem,) = error.value.problems
    assert problem.setting == "option pending"
    assert problem.way_out.startswith(f"--option {way_out},")


def test_streams_share_what_may_be_on_its_way() -> None:
    """And one of them may have nearly all events."""
    values = STORMS | {"workload": "ads_analytics"}
    check(build(values | {"load": {"rate": "34k"}}))
    with pytest.raises(InputError) as error:
        check(build(values | {"load": {"rate": "60k"}}))
    assert [problem.setting for problem in error.value.problems] == ["option pending"]


def test_storms_own_windows_end_at_multiples_of_their_slide() -> None:
    """Those of a flow start there, so another range would have other rows."""
    check(build(STORMS | {"load": {"rate": "10k"}, "parameters": {"range": "6s", "slide": "2s"}}))
    with pytest.raises(InputError) as error:
        check(build(STORMS | {"load": {"rate": "10k"}, "parameters": {"range": "5s", "slide": "2s"}}))
    assert [problem.setting for problem in error.value.problems] == ["option windows"]


def test_windows_of_tuples_that_may_be_apart_close_later() -> None:
    """So the load goes on until they have."""
    values = STORMS | {"load": {"rate": "10k"}}
    delays_us = {
        (workload, partitions): check(
            build(values | {"workload": workload, "partitions": partitions})
        ).watermark_delay_us
        for workload in ("windowed_aggregation", "windowed_join")
        for partitions in (1, 2)
    }
    assert list(delays_us.values()) == [0, SKEW_S * US, SKEW_S * US, SKEW_S * US]
    assert check(build(values | {"options": {}, "partitions": 2})).watermark_delay_us == 0
    # A drain does not wait for what only later windows would acknowledge: range, slide and delay.
    assert [check(build(values | {"partitions": n})).kept_us for n in (1, 2)] == [12 * US, 14 * US]
    assert check(build(values | {"options": {}})).kept_us == 0


@pytest.mark.parametrize(
    ("case", "delay_s", "kept_s"),
    [
        ("hopping window", 0, 3),
        ("aggregate of aggregate", SKEW_S + 2, 6),  # tuples of the inner one come from one task
        ("window after session", SKEW_S, 2),
        ("windowed join", SKEW_S, 2),
        ("distinct", 0, 0),
    ],
)
def test_tuples_of_several_tasks_are_apart_and_each_window_holds_its_own(
    case: str, delay_s: float, kept_s: float
) -> None:
    """With one partition too; and whatever a sink beside it has."""
    request = StartRequest(CASES[case].flow, {"windows": "storm"}, None, "common", transport="kafka")
    plugin = StormPlugin()
    assert plugin.watermark_delay_us(request) == delay_s * US
    assert plugin.kept_us(request) == (kept_s + delay_s) * US


def test_sides_of_a_join_may_be_apart() -> None:
    """Tuples of one wait behind those of the other."""
    values = STORMS | {"workload": "windowed_join", "load": {"rate": "1M"}}
    rules = []
    for partitions in (1, 2):
        with pytest.raises(InputError) as error:
            check(build(values | {"partitions": partitions}))
        rules.append(error.value.problems[0].rule)
    assert len(set(rules)) == 1


def test_a_search_is_held_against_its_first_rate_and_partitions_against_their_skew() -> None:
    check(build(STORMS | {"command": "sustain", "search": {"start_rate": "80k"}}))
    with pytest.raises(InputError):
        check(build(STORMS | {"command": "sustain", "search": {"start_rate": "81k"}}))
    with pytest.raises(InputError):
        check(build(STORMS | {"load": {"rate": "80k"}, "partitions": 2}))


@pytest.mark.parametrize(
    ("options", "unseen_s"), [({}, 1.0), ({"commit_interval": "9s"}, 9.0), ({"windows": "storm"}, 13.0)]
)
def test_storms_own_windows_show_that_a_tuple_was_read_when_the_next_one_closes(
    options: dict[str, str], unseen_s: float
) -> None:
    """An overload trial that waited for three seconds of them drained nothing."""
    values = STORMS | {"options": options, "load": {"rate": "10k"}}
    assert check(build(values)).unseen_s == unseen_s
    longer = check(build(values | {"parameters": {"range": "30s", "slide": "10s"}}))
    assert longer.queue_s > longer.unseen_s  # or the queue would be full before the first tuple is acknowledged


def test_idiomatic_has_the_values_of_storm() -> None:
    own = configuration(CAPABILITIES.profiles[IDIOMATIC].options)
    assert own["topology.bolt.wait.progressive.level2.count"] == "1000"


@pytest.mark.parametrize(("workload", "promised"), [("filter", "at_least_once"), ("trending_topics", "at_most_once")])
def test_state_is_lost_with_the_jvm(workload: str, promised: str) -> None:
    """So results of windows come at most once, whatever rows do."""
    guarantee = check(build(STORMS | {"workload": workload, "options": {}, "load": {"rate": "1k"}})).guarantee
    assert guarantee is not None
    assert guarantee.delivery == promised
