"""Run folders as the tests of the report make them."""

from tests.unit.report.conftest import experiment, make_result, make_series, now, run_folder

__all__ = ["experiment", "make_result", "make_series", "now", "run_folder"]
