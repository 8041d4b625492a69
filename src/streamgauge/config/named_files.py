"""The files that settings name: user jobs, programs, data and client files."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from streamgauge.core.plugin_options import CLIENT_FILE

DATA = "data"
"""A parameter that every built-in workload also has: the file that replaces its generated rows."""
DATA_TIME = ".time"
"""Suffix of the parameter that names the file's time column."""
_TABLES_OF_SETTINGS = ("matrix", "include", "exclude")
"""Tables whose keys are dotted settings themselves."""


def is_data(name: str) -> bool:
    """Whether a parameter names a file of data: `data`, or `data.STREAM`."""
    return name == DATA or (name.startswith(f"{DATA}.") and not is_data_time(name))


def is_data_time(name: str) -> bool:
    """Whether a parameter names the column that is the time of data: `data.time`, or `data.STREAM.time`."""
    return name.startswith(f"{DATA}.") and name.endswith(DATA_TIME)


def is_program(name: str) -> bool:
    """Whether a workload's name is the file of a program of the user's own."""
    return name.endswith(".toml")


def is_own_file(name: str) -> bool:
    """Whether a workload's name is a file of the user's: a user job or a program."""
    return name.endswith(".py") or is_program(name)


def find_beside(file: str, folder: Path) -> str:
    """The path as it is if such a file exists, else in `folder` if it exists there."""
    if Path(file).exists() or not (folder / file).is_file():
        return file
    return str(folder / file)


def change_files(values: Mapping[str, Any], change: Callable[[str], str], prefix: str = "") -> dict[str, Any]:
    """The settings with each file among their values changed; nested tables and lists included."""

    def changed(name: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return change_files(value, change, "" if name in _TABLES_OF_SETTINGS else f"{name}.")
        if isinstance(value, list | tuple):
            return [changed(name, one) for one in value]
        return change(value) if isinstance(value, str) and _names_file(name, value) else value

    return {name: changed(f"{prefix}{name}", value) for name, value in values.items()}


def _names_file(setting: str, value: str) -> bool:
    if setting == "workload":
        return is_own_file(value)
    table, _, name = setting.partition(".")
    return bool(value) and ((table == "parameters" and is_data(name)) or setting == f"transport_options.{CLIENT_FILE}")
