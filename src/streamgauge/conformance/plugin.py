"""The pytest plug-in: `--streamgauge-engine NAME` runs the suite on an engine.

An installation registers it as an entry point of pytest. Without one: `pytest -p streamgauge.conformance.plugin`.
It loads nothing else of streamgauge before it is asked to. A module of its own because pytest finds it by name.
"""

import pytest

SUITE = "streamgauge.conformance.suite"
ENGINES = "STREAMGAUGE_ENGINES"
"""The attribute of a test module that imports the suite's tests: the engines to run them on."""
TRIAL = "streamgauge_trial"
"""The mark of tests that start the engine."""

pytest.register_assert_rewrite(SUITE, "streamgauge.conformance.trials")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("streamgauge").addoption(
        "--streamgauge-engine",
        action="append",
        default=[],
        metavar="NAME",
        help="run streamgauge's conformance suite on this installed engine (may be repeated)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Collects the suite instead of this folder's tests, and beside those that are named."""
    config.addinivalue_line("markers", f"{TRIAL}: starts an engine of streamgauge (seconds to a minute)")
    engines = config.getoption("streamgauge_engine")
    if not engines:
        return
    from streamgauge.conformance.trials import subject
    from streamgauge.core.errors import InputError

    try:
        for engine in engines:
            subject(engine)
    except InputError as error:
        raise pytest.UsageError(str(error)) from None
    given = config.args if config.args_source is pytest.Config.ArgsSource.ARGS else []
    config.args = [*given, *([] if SUITE in given else [SUITE])]
    config.option.pyargs = True


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test of the suite says for an engine what it is run with."""
    parameters = getattr(metafunc.function, "streamgauge_parameters", None)
    if parameters is None:
        return
    from streamgauge.conformance.trials import subject

    engines = getattr(metafunc.module, ENGINES, None) or metafunc.config.getoption("streamgauge_engine")
    arguments, values_of = parameters
    names = [name for name in metafunc.fixturenames if name in arguments]
    metafunc.parametrize(names, [each for engine in engines for each in values_of(subject(engine))])
