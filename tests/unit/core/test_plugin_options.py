"""Options by name and by choice, whoever has them."""

from streamgauge.core.plugin_options import Setting, problems_of

SETTINGS = (Setting("trigger", "auto", ""), Setting("source", "bundles", "", ("bundles", "rows")))


def test_what_the_engine_has_passes() -> None:
    """Any value where there are no choices, else one of them."""
    assert list(problems_of({"trigger": "whatever", "source": "rows"}, SETTINGS, "some")) == []


def test_a_slip_gets_the_nearest_name_and_a_stranger_gets_all() -> None:
    """The way out is the word that was meant, or every word there is."""
    near, far = problems_of({"tirgger": "1s", "colour": "blue"}, SETTINGS, "some")
    assert (near.setting, near.rule, near.way_out) == (
        "option tirgger", "is not an option of some", "--option trigger=..."
    )  # fmt: skip
    assert (far.got, far.way_out) == ("blue", "one of trigger, source")


def test_a_value_that_is_no_choice_is_refused() -> None:
    """With the choices, and one of them as the way out."""
    (problem,) = problems_of({"source": "columns"}, SETTINGS, "some")
    assert (problem.rule, problem.way_out) == ("must be one of bundles, rows", "--option source=bundles")


def test_they_are_called_by_their_word() -> None:
    """Whose flag has - for blanks."""
    (problem,) = problems_of({"source": "columns"}, SETTINGS, "some", "transport option")
    assert (problem.setting, problem.way_out) == ("transport option source", "--transport-option source=bundles")
