"""Run folders as the tests of the report make them."""

from tests.unit.report.conftest import experiment, now, run_folder

__all__ = ["experiment", "now", "run_folder"]
