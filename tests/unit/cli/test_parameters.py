"""Options and commands as they are typed."""

import os

import pytest
from typer.testing import CliRunner

from streamgauge.cli import app, usage
from streamgauge.config.experiment import build
from streamgauge.config.reproduce import command
from tests.unit.cli.helpers_commands import Invoke, refused


def test_the_processors_of_both_sides_are_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    words = ["run", "filter", "--engine", "known", "--driver-cpus", "0", "--sut-cpus", "3,1-2", "--print-toml"]
    done = CliRunner().invoke(app.app, words)
    assert done.exit_code == 0, done.output
    assert '[cpus]\ndriver = "0"\nsut = "1-3"\n' in done.stdout
    assert 'isolation = "pinned"' in done.stdout


def test_the_command_to_run_again_has_the_processors() -> None:
    experiment = build({"workload": "count", "cpus": {"driver": "0", "sut": "1-3"}})
    words = str(command(experiment.model_dump(mode="json")))
    assert "--driver-cpus 0 --sut-cpus 1-3" in words


@pytest.mark.parametrize(("word", "meant"), [("compre", "compare"), ("job.py", "run job.py"), ("foo", "--help")])
def test_an_unknown_command_is_answered_with_the_commands(invoke: Invoke, word: str, meant: str) -> None:
    done = invoke(word)
    assert refused(done) == [("COMMAND", word, f"streamgauge {meant}")]
    assert all(name in done.stderr for name in ("run", "sustain", "report"))


RUN = "streamgauge run --help"


@pytest.mark.parametrize(
    ("words", "way_out"),
    [
        (("--rte", "5"), "--rate"),
        (("--rte=5",), "--rate"),
        (("--profile", "ramp:2k"), "--load-shape constant"),
        (("--memory", "2GB"), "--queue-memory SIZE"),
        (("--bound", "5s"), "--queue-limit 30s"),
        (("--vus", "5"), "--rate 100k"),
        (("--conf", "spark.x=1"), "--option NAME=VALUE"),
        (("-b", "host:1"), "--bootstrap-servers HOST:PORT,HOST:PORT"),
        (("-t", "topic"), usage.WITHOUT_ONE["-t"]),
        (("--nix",), RUN),
        (("--tolerance", "5%"), RUN),  # of another command
    ],
)
def test_an_unknown_option_is_answered_with_one_that_does_the_same_or_is_near(
    invoke: Invoke, words: tuple[str, ...], way_out: str
) -> None:
    option = words[0].partition("=")[0]
    assert refused(invoke("run", "identity", *words)) == [(option, option, way_out)]


def test_all_unknown_options_are_refused_at_once(invoke: Invoke) -> None:
    done = invoke("run", "--nix", "identity", "--rte", "5", "-v", "-t")
    assert [setting for setting, _, _ in refused(done)] == ["--nix", "--rte", "-t"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("run",), ("WORKLOAD", "-", "streamgauge run WORKLOAD")),
        (("compare", "a"), ("B", "-", "streamgauge compare A B")),
        (
            ("compare", "a", "b", "c", "d"),
            ("streamgauge compare", "c d", "quotes around a value with blanks, or streamgauge compare --help"),
        ),
        (("run", "identity", "--rate"), ("--rate", "-", "--rate 100k")),
        (("selftest", "--quick=yes"), ("--quick", "-", "--quick")),
        (("generate", "identity"), ("--out", "-", "--out DIR")),
        (("selftest", "--only", ""), ("--only", "-", "--only a,c")),
        (("selftest", "--only", "f,"), ("--only", "-", "--only a,c")),
        (("cluster", "start", "--workers", "many"), ("--workers", "many", "--workers N")),
        (("cluster", "strat"), ("COMMAND", "strat", "streamgauge cluster start")),
        (("--nix",), ("--nix", "--nix", "streamgauge --help")),
    ],
)
def test_words_that_do_not_fit_are_refused_as_settings_are(
    invoke: Invoke, words: tuple[str, ...], problem: tuple[str, str, str]
) -> None:
    assert refused(invoke(*words)) == [problem]


def test_every_option_of_elsewhere_leads_to_one_here(invoke: Invoke) -> None:
    foreign = {
        word: meant[0] for word, meant in usage.FROM_ELSEWHERE.items() if word not in ("--rate", "--parallelism")
    }
    shown = {word: refused(invoke("run", "identity", word))[0][2].partition(" ")[0] for word in foreign}
    assert shown == foreign


@pytest.mark.parametrize(
    ("words", "way_out"),
    [
        (("sustain", "identity", "--rate", "5"), "--start-rate RATE"),
        (("anatomy", "identity", "--rate", "5"), "--rates 20k,50k"),
        (("scale", "identity", "--parallelism", "2"), "--resources 1,2,4"),
        (("characterize", "identity", "--parallelism", "2"), "streamgauge characterize --help"),
    ],
)
def test_an_option_of_another_command_leads_to_what_this_one_has(
    invoke: Invoke, words: tuple[str, ...], way_out: str
) -> None:
    assert refused(invoke(*words)) == [(words[2], words[2], way_out)]


def test_a_refused_set_of_processors_adds_no_problem_of_both(invoke: Invoke) -> None:
    done = invoke("run", "identity", "--driver-cpus", "8000", "--sut-cpus", "a")
    assert [setting for setting, _, _ in refused(done)] == ["--sut-cpus", "--driver-cpus"]
