"""A refusal in the words of an experiment file: dotted settings and lines of TOML in place of options.

Refusals are raised with the option that mends them, because most settings are typed. The command that reads a file
turns them into lines, in one place for all that is refused. It is of its own because only commands on files load it.
"""

import re
from dataclasses import replace
from functools import partial

from streamgauge.config.experiment import SETTINGS, SHORTHANDS, TABLES_OF_USER, setting_of
from streamgauge.config.setting_info import file_line
from streamgauge.core.errors import Problem

_BY_FLAG = {
    **{info.flag: name for name, info in SETTINGS.items()},
    **{f"--{name}": meant for name, meant in SHORTHANDS.items() if "." not in name},
}
"""Option of the command line to dotted setting."""
_OPTION = re.compile(r"(--[a-z][a-z-]*)(?: (?!(?:out|with|without|if|or|and|to|may|must)\b)([^\s;()]*[^\s;(),:]))?")
"""An option in a sentence, and its value unless a word of the sentence follows."""
_ENTRIES_OF = {"set ": "parameters", "option ": "options", "transport option ": "transport_options"}
"""Beginnings of names of settings that are entries of a table."""


def in_file_terms(problem: Problem) -> Problem:
    """A problem in the words of an experiment file: dotted settings, and its lines in place of options."""
    begin = next((one for one in _ENTRIES_OF if problem.setting.startswith(one)), "")
    setting = f"{_ENTRIES_OF[begin]}.{problem.setting.removeprefix(begin)}" if begin else problem.setting
    if problem.way_out.startswith("streamgauge "):
        return replace(problem, setting=setting)
    return replace(problem, setting=setting, way_out=text_in_file_terms(problem.way_out, setting))


def text_in_file_terms(text: str, about: str = "") -> str:
    """A text with a line of a file, or the name of a setting, in place of each option.

    `about`: the setting that is meant by its option, which may be the option of another one too.
    """
    return _OPTION.sub(partial(_file_line, about), text)


def _file_line(about: str, option: re.Match[str]) -> str:
    """The line of a file that does what an option does; without a value the setting's name."""
    flag, value = option[1], option[2]
    name = about if about in SETTINGS and SETTINGS[about].flag == flag else _BY_FLAG.get(flag)
    if name is None:
        return option[0]
    info = setting_of(name)
    if info is not None and info.is_switch:
        return " ".join(filter(None, (file_line(name, not info.default), value)))
    if value is None:
        return name
    if name in TABLES_OF_USER:
        key, is_entry, text = value.partition("=")
        return file_line(f"{name}.{key}", text) if is_entry else f"{name} {key}"
    value = value.strip('"')
    if info is not None and info.name == name and info.repeatable:
        return file_line(name, [value])
    return file_line(name, int(value) if value.isdecimal() else value)
