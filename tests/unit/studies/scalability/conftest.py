"""Studies of simulated systems fit their laws quickly, except in the tests of the fits themselves."""

import pytest

FITS = ("test_scaling_laws.py", "test_fit_intervals.py")


@pytest.fixture(autouse=True)
def quick(request: pytest.FixtureRequest) -> None:
    if request.path.name not in FITS:
        request.getfixturevalue("quick_fits")
