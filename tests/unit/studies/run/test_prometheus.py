"""The metrics endpoint: what a scrape reads, on which address, how long it stays, and the figures behind it."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from urllib.request import urlopen

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from streamgauge.config.experiment import Experiment, build
from streamgauge.core.clock import US
from streamgauge.core.errors import InputError
from streamgauge.results.latency import Latencies, Latency
from streamgauge.results.verdict import Verdict
from streamgauge.studies.run import prometheus
from streamgauge.studies.run.prometheus import Exporter, exported, latency_figures, load_figures
from streamgauge.trial.events import Observer, PhaseBegan, Progress, StepProgress, VerdictReached

Samples = dict[tuple[str, ...], float]


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind((prometheus.LOOPBACK, 0))
        return int(probe.getsockname()[1])


def experiment_with_port(port: int | None) -> Experiment:
    return build({"workload": "identity", "engine": "known", "prometheus": port})


def verdict_reached(value: Any, p99: float = 2e6) -> VerdictReached:
    result = SimpleNamespace(verdict=Verdict(value=value), latency=Latencies(event_time_us=Latency(p99=p99)))
    return VerdictReached(SimpleNamespace(result=result), None)


def scraped(port: int) -> Samples:
    """Each sample by its name and the values of its labels, which are in the order of their names."""
    with urlopen(f"http://{prometheus.LOOPBACK}:{port}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def current(samples: Samples, name: str) -> list[str]:
    return [labels[0] for (of, *labels), value in samples.items() if of == name and value]


@pytest.fixture
def events() -> list[Any]:
    return []


@pytest.fixture
def observe(port: int, events: list[Any]) -> Iterator[Observer]:
    with exported(experiment_with_port(port), events.append) as observer:
        yield observer


def test_a_scrape_reads_the_figures_of_the_trial(observe: Observer, port: int, make: Any, events: list[Any]) -> None:
    """Events reach the other observer too."""
    record = make.story(seconds=20).record()
    record.trial_log.usages = [make.usage(9, "sut 1", "sut", 150.0, 1000)]
    observe(StepProgress("start", 1.0, "starting"))
    assert current(scraped(port), "streamgauge_phase") == ["start"]
    observe(PhaseBegan("warm-up"))
    observe(Progress(record, make.start + 22 * US))
    samples = scraped(port)
    figures = {
        "offered_events_total": 20_000, "ingested_events_total": 20_000, "backlog_events": 0,
        "lag_events 1 purchases": 0, "cpu_cores sut": 1.5, "memory_bytes sut": 1000,
        "run known shared memory identity": 1,
    }  # fmt: skip
    assert {name: samples[tuple(f"streamgauge_{name}".split())] for name in figures} == figures
    assert current(samples, "streamgauge_phase") == ["warm-up"]
    assert current(samples, "streamgauge_verdict") == ["none"]
    assert [type(event) for event in events] == [StepProgress, PhaseBegan, Progress]


def test_the_verdict_stays_until_the_next_trial(observe: Observer, port: int) -> None:
    """A search goes on with another trial, whose verdict is open again; the latencies stay."""
    for phase in ("warm-up", "measured"):
        observe(PhaseBegan(phase))
    observe(StepProgress("verification", 1.0, "comparing"))
    assert current(scraped(port), "streamgauge_phase") == ["verification"]
    observe(verdict_reached("not_sustained"))
    ended = scraped(port)
    assert current(ended, "streamgauge_verdict") == ["not_sustained"]
    observe(PhaseBegan("warm-up"))
    following = scraped(port)
    assert (current(following, "streamgauge_verdict"), following["streamgauge_trials_total",]) == (["none"], 2)
    assert {one["streamgauge_latency_seconds", "event_time", "0.99"] for one in (ended, following)} == {2.0}


def test_figures_are_made_at_most_once_a_second(observe: Observer, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Polls come twice a second, and their thread is the one that conducts the trial."""
    made: list[int] = []
    monkeypatch.setattr(prometheus, "load_figures", lambda _, now_us: made.append(now_us))
    for half in range(5):
        observe(Progress(None, make.start + half * US // 2))
    assert made == [make.start, make.start + US, make.start + 2 * US]


@pytest.mark.usefixtures("observe")
def test_it_listens_on_loopback_only(port: int) -> None:
    listening = [one.laddr for one in psutil.Process().net_connections("tcp") if one.status == psutil.CONN_LISTEN]
    assert [at.ip for at in listening if at.port == port] == ["127.0.0.1"]


def test_nothing_is_left_at_its_end(port: int, events: list[Any]) -> None:
    before = threading.active_count()
    for _ in range(2):
        with exported(experiment_with_port(port), events.append):
            pass
    assert threading.active_count() == before


def test_a_port_that_was_taken_after_the_check_is_refused(port: int, events: list[Any]) -> None:
    with socket.socket() as other:
        other.bind((prometheus.LOOPBACK, port))
        other.listen()
        with pytest.raises(InputError) as refusal, exported(experiment_with_port(port), events.append):
            pass
    (problem,) = refusal.value.problems
    assert (problem.setting, problem.got, "in use" in problem.rule) == ("prometheus", port, True)


def exporter(*scrapes_s: float, now_s: Callable[[], float] = time.monotonic) -> Exporter:
    """An exporter that was scraped at these times."""
    times = iter(scrapes_s)
    made = Exporter(experiment_with_port(None), lambda: next(times, None) or now_s())
    for _ in scrapes_s:
        list(made.collect())
    return made


@pytest.mark.parametrize(("scrapes", "verdict", "waits"), [
    (2, "sustained", True), (2, "invalid", True), (2, "interrupted", False), (2, None, False),
    (1, "sustained", False), (0, "sustained", False),
])  # fmt: skip
def test_it_waits_for_the_scrape_of_a_verdict(scrapes: int, verdict: str | None, waits: bool) -> None:
    """Only if a scraper comes again and again, and not for a user who waits for the end of a stopped run."""
    made = exporter(*range(1, scrapes + 1))
    if verdict is not None:
        made.observe(verdict_reached(verdict))
    assert made.awaits_scrape is waits
    list(made.collect())
    assert not made.awaits_scrape


def test_it_gives_up_when_the_scrape_is_overdue() -> None:
    """An interval and a half after the last one, which was 0.2 s after the one before."""
    begun_s = time.monotonic()
    made = exporter(begun_s - 0.2, begun_s)
    made.observe(verdict_reached("sustained"))
    made.await_scrape()
    assert 0.29 <= time.monotonic() - begun_s < 3
    assert made.awaits_scrape


def test_the_end_of_a_run_waits_for_the_scrape(port: int, events: list[Any]) -> None:
    """The scraper reads the verdict although the run has nothing more to do; the other observer sees the wait."""
    found: list[Samples] = []
    with exported(experiment_with_port(port), events.append) as observer:
        scraped(port)
        time.sleep(1.0)
        scraped(port)
        observer(verdict_reached("sustained"))
        timer = threading.Timer(0.3, lambda: found.append(scraped(port)))
        timer.start()
    timer.join()
    assert current(found[0], "streamgauge_verdict") == ["sustained"]
    assert prometheus.WAITING in {event.note for event in events if isinstance(event, StepProgress)}


def test_a_failure_does_not_wait(port: int, events: list[Any]) -> None:
    def failing_run() -> None:
        with exported(experiment_with_port(port), events.append) as observer:
            scraped(port)
            scraped(port)
            observer(verdict_reached("sustained"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        failing_run()
    assert [event for event in events if isinstance(event, StepProgress)] == []


RATE = 1000


def test_events_are_counted_as_in_the_series(make: Any) -> None:
    """20 s at 1000/s, read second by second; the last batch is not committed."""
    record = make.story(seconds=20).record()
    record.trial_log.commits.pop()
    figures = load_figures(record, make.start + 20 * US + 200_000)
    counts = {name: figures[f"{name}_events"][()] for name in ("due", "offered", "ingested", "committed", "backlog")}
    assert list(counts.values()) == [20 * RATE, 20 * RATE, 20 * RATE, 19 * RATE, 0]
    assert figures["lag_events"] == {("purchases", "0"): RATE / 2, ("purchases", "1"): RATE / 2}


def test_the_last_batch_of_each_sink_has_its_latencies(make: Any) -> None:
    record = make.story(seconds=10).record()
    record.trial_log.sinks = ("", "alerts")
    known = {"latency_us_p50": 250_000.0, "latency_us_p90": 500_000.0, "latency_us_p99": 2e6}
    record.trial_log.commits += [make.commit(10, make.start + 11 * US, **known), make.commit(11, make.start + 12 * US)]
    assert load_figures(record, make.start + 12 * US)["batch_latency_seconds"] == {
        ("", "0.5"): 0.25, ("", "0.9"): 0.5, ("", "0.99"): 2.0,
    }  # fmt: skip


def test_processor_and_memory_are_summed_by_role_over_the_last_sample(make: Any) -> None:
    record = make.story(seconds=10).record()
    assert load_figures(record, make.start + 10 * US)["cpu_cores"] == {}
    record.trial_log.usages = [
        make.usage(8, "sut 1", "sut", 99.0, 10_000), make.usage(9, "sut 1", "sut", 150.0, 1000),
        make.usage(9, "sut 2", "sut", 30.0, 500), make.usage(9, "runner", "driver", 5.0, 70),
    ]  # fmt: skip
    figures = load_figures(record, make.start + 10 * US)
    assert figures["cpu_cores"] == {("sut",): 1.8, ("driver",): 0.05}
    assert figures["memory_bytes"] == {("sut",): 1500, ("driver",): 70}


def test_latencies_are_those_that_are_known() -> None:
    event_time = Latency(p50=500_000.0, p99_9=3e6, count=9)
    assert latency_figures(Latencies(event_time_us=event_time, processing_time_us=Latency())) == {
        ("event_time", "0.5"): 0.5, ("event_time", "0.999"): 3.0,
    }  # fmt: skip
    assert latency_figures(Latencies()) == {}
