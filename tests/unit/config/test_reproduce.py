"""What differed from the defaults, and the command that asks the same again."""

import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command

from streamgauge.cli import app
from streamgauge.config import reproduce
from streamgauge.config.experiment import Experiment, build


def dump(**values: Any) -> dict[str, Any]:
    return build({"workload": "word_count", **values}).model_dump(mode="json")


def parsed(line: str) -> Experiment:
    """The experiment that the command line makes of a line."""
    performed: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "perform", lambda experiment, *_: performed.append(experiment))
        get_command(app.app).main(args=shlex.split(line)[1:], standalone_mode=False)
    return performed[0]


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
NAMES = TEXT.filter(lambda name: name and "=" not in name and name == name.strip())
WORKLOADS = TEXT.filter(lambda name: name and not name.startswith("-"))
RATES = st.floats(1e-6, 1e12, exclude_min=True) | st.sampled_from([100_000.0, 1.5e6, 2.5e-7])
TIMES = st.floats(0, 1e7) | st.sampled_from([30.0, 45.0, 60.0, 0.05, 1e-5])
PAIRS = st.dictionaries(NAMES, TEXT, max_size=3)


def load_of(**rates: Any) -> st.SearchStrategy[dict[str, Any]]:
    optional = {
        "duration": TIMES, "warmup": TIMES, "generators": st.integers(1, 256), "seed": st.integers(0, 2**63 - 1),
        "chunk": TIMES, "bound": TIMES, "memory": TEXT, "frontier": st.sampled_from(["common", "free"]), **rates,
    }  # fmt: skip
    return st.fixed_dictionaries({}, optional=optional)


def experiments_of(command: str, **more: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"command": st.just(command), "workload": WORKLOADS},
        optional={
            "engine": TEXT, "transport": TEXT, "master": TEXT, "isolation": st.sampled_from(["shared", "pinned"]),
            "parameters": PAIRS, "options": PAIRS, "limits": st.lists(TEXT, max_size=3), "bind": TEXT,
            "port": st.integers(1024, 65000), "out": TEXT, "keep_results": st.booleans(), **more,
        },
    )  # fmt: skip


SEARCHES = st.fixed_dictionaries(
    {},
    optional={
        "tolerance": st.floats(1e-9, 1, exclude_max=True) | st.sampled_from([0.05, 0.07, 0.1]),
        "quick": st.booleans(), "start_rate": RATES, "trials_max": st.integers(3, 10**6), "resume": TEXT,
    },
)  # fmt: skip
EXPERIMENTS = experiments_of("run", load=load_of(rate=RATES, profile=TEXT)) | experiments_of(
    "sustain", load=load_of(), search=SEARCHES
)


@given(EXPERIMENTS)
def test_the_line_requests_the_same_experiment(values: dict[str, Any]) -> None:
    """Whatever options were given, the line that is shown has them again: nothing left out, nothing rounded."""
    experiment = build(values)
    assert parsed(str(reproduce.command(experiment.model_dump(mode="json")))) == experiment


def test_a_span_by_events_is_stated_once() -> None:
    """The duration follows from it."""
    experiment = dump(load={"rate": "50k", "events": "4M"})
    line = str(reproduce.command(experiment))
    assert line == "streamgauge run word_count --rate 50000 --events 4000000"
    assert parsed(line) == build(experiment)


def test_an_option_that_turns_something_off_is_stated() -> None:
    """Its setting is false."""
    experiment = dump(load={"early_stop": False})
    line = str(reproduce.command(experiment))
    assert line == "streamgauge run word_count --no-early-stop"
    assert parsed(line) == build(experiment)


def test_every_change_is_listed_with_its_default() -> None:
    """Nested and free settings are named by their dotted names."""
    settings = reproduce.settings(dump(load={"rate": "1.5M"}, options={"lowering.join": "packed"}))
    assert [(one.name, one.value, one.default) for one in settings] == [
        ("options.lowering.join", "packed", "-"),
        ("load.rate", "1500000", "100000"),
    ]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "run word_count"),
        ({"parameters": {"pattern": "a b"}, "load": {"duration": "90s", "seed": 7}},
         "run word_count --set 'pattern=a b' --duration 90s --seed 7"),
        # A search's width is written as people write it, switches without a value.
        ({"command": "sustain", "search": {"tolerance": 0.025, "quick": True}},
         "sustain word_count --tolerance 2.5% --quick"),
        # A run measures for 60 s where no duration is given, a search for 30 s a trial.
        ({"load": {"duration": "60s"}}, "run word_count"),
        ({"load": {"duration": "30s"}}, "run word_count --duration 30s"),
        ({"command": "sustain", "load": {"duration": "30s"}}, "sustain word_count"),
        ({"command": "sustain", "load": {"duration": "60s"}}, "sustain word_count --duration 60s"),
    ],
)  # fmt: skip
def test_the_command_has_what_differs_from_its_defaults(values: dict[str, Any], words: str) -> None:
    """Values with blanks survive a shell."""
    assert reproduce.command(dump(**values)) == f"streamgauge {words}"


def test_a_trial_of_a_search_is_repeated_as_a_run() -> None:
    """It has the search's settings and a rate of its own; `sustain` would look for another."""
    trial = {**dump(command="sustain", search={"quick": True}), "limits": ["p99<=2s"]}
    trial["load"]["rate"] = 1.5e6
    line = "streamgauge run word_count --rate 1500000 --duration 30s --limit 'p99<=2s'"
    assert reproduce.command(reproduce.trial_experiment(trial)) == line


@pytest.mark.parametrize(
    "values",
    [
        {"load": {"start": "2026-01-01T00:00:00"}},
        {"search": {"quick": True}},
        {"command": "sustain", "load": {"rate": "200k"}},
        {"parameters": {"sizes": [1, 2]}},
        {"options": {"a=b": "c"}},
        {"workload": "-odd"},
    ],
)
def test_what_has_no_option_needs_the_file(values: dict[str, Any]) -> None:
    """Rather than a command that leaves something out, there is none."""
    assert reproduce.command(dump(**values)) is None


def test_without_an_experiment_there_is_no_command() -> None:
    """A run killed before its experiment was written down has no command."""
    assert (reproduce.command({}), reproduce.settings({}), reproduce.settings(dump())) == (None, (), ())
