"""What differed from the defaults, and the command that asks the same again."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command

from streamgauge.cli import app
from streamgauge.config import reproduce
from streamgauge.config.options_and_settings import Experiment, build


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
def test_the_line_asks_exactly_what_was_asked(values: dict[str, Any]) -> None:
    """Whatever was asked by options, the line that is shown asks it again: nothing left out, nothing rounded."""
    experiment = build(values)
    line = reproduce.command(experiment.model_dump(mode="json"))
    assert line is not None
    assert parsed(line) == experiment


def test_defaults_are_not_listed() -> None:
    """An experiment without wishes is the bare command."""
    assert reproduce.settings(dump()) == ()
    assert reproduce.command(dump()) == "streamgauge run word_count"


def test_every_change_is_listed_with_its_default() -> None:
    """Nested and free settings are named by their dotted names."""
    found = reproduce.settings(dump(load={"rate": "1.5M"}, options={"lowering.join": "packed"}))
    assert [(one.name, one.value, one.default) for one in found] == [
        ("options.lowering.join", "packed", "-"),
        ("load.rate", "1500000", "100000"),
    ]


def test_command_is_quoted() -> None:
    """Values with blanks survive a shell."""
    command = reproduce.command(dump(parameters={"pattern": "a b"}, load={"duration": "90s", "seed": 7}))
    assert command is not None
    assert shlex.split(command)[3:] == ["--set", "pattern=a b", "--duration", "90s", "--seed", "7"]


@pytest.mark.parametrize(
    ("command", "duration", "said"),
    [("run", "60s", False), ("run", "30s", True), ("sustain", "30s", False), ("sustain", "60s", True)],
)
def test_a_duration_is_left_out_only_where_the_command_has_it_as_its_own(
    command: str, duration: str, said: bool
) -> None:
    """A run measures for 60 s where nothing is said, a search for 30 s a trial."""
    line = reproduce.command(dump(command=command, load={"duration": duration})) or ""
    assert (f"--duration {duration}" in line) is said


def test_a_trial_of_a_search_is_repeated_as_a_run() -> None:
    """It has the search's settings and a rate of its own; `sustain` would look for another."""
    asked = {**dump(command="sustain", search={"quick": True}), "limits": ["p99<=2s"]}
    asked["load"]["rate"] = 1.5e6
    line = "streamgauge run word_count --rate 1500000 --duration 30s --limit 'p99<=2s'"
    assert reproduce.command(reproduce.trial_experiment(asked)) == line


def test_search_options() -> None:
    """A search's width is written as people write it, switches without a value."""
    command = reproduce.command(dump(command="sustain", search={"tolerance": 0.025, "quick": True}))
    assert command == "streamgauge sustain word_count --tolerance 2.5% --quick"


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


def test_nothing_asked_nothing_said() -> None:
    """A run killed before its experiment was written down has no command."""
    assert reproduce.command({}) is None
    assert reproduce.settings({}) == ()
