"""Imports a user's Python file by its path, and turns errors of user code into messages with the user's lines."""

import contextlib
import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from streamgauge.core.errors import InputError, JobError, Problem, StreamgaugeError

_imported: set[str] = set()
"""Names of modules imported here, which a later file may replace."""

_LATER = frozenset({"pandas", "py4j", "pyspark"})
"""Modules that a job's process will import, perhaps later."""

_FRAME = re.compile(r'(\s*)File "([^"]+)", line \d+, in .+')
_NO_SPARK_YET = (
    "the file is read before Spark runs, so give return types as objects (IntegerType()), not as text, or make what "
    "needs Spark inside the function"
)
NO_QUERY = "must return a DataFrame and start no query: streamgauge makes the measured query and its sink from that"
WITHOUT_SINK = "leave writeStream...start() and awaitTermination() out, and return the DataFrame before them"
ONE_RESULT = (
    "make one DataFrame of them by unionByName, with a column for the sink of each row; or write a file for each result"
)
ARGUMENTS = "arguments are not passed on: give each a default, or read the environment (os.environ)"
_ERROR = re.compile(r"[A-Za-z_][\w.]*(:\s.*)?$")


def import_file(path: Path) -> ModuleType:
    """Runs the file as a module. The file can import modules beside it, also from its own package.

    Its output goes to standard error. Raises JobError if it does not exist, has the name of a module in use, or fails.
    If it raises an InputError itself (a wrong description), the setting names the user's line.
    """
    if not path.is_file():
        raise JobError(Problem("workload", "must be an existing file", str(path), "check the path"))
    path = path.resolve()
    root, name = place_of(path)
    _check_name(path, name)
    sys.path[:] = [str(root), *(entry for entry in sys.path if entry != str(root))]
    before = _running_spark()
    rule, argv = f"{path.name} must be imported without an error", sys.argv
    with user_errors(path, rule), contextlib.redirect_stdout(sys.stderr):
        sys.argv = [str(path)]  # a file that parses arguments must not get ours
        try:
            module = _run(path, name)
        except InputError as error:
            own = _own(traceback.extract_tb(error.__traceback__), path)
            place = f"{Path(own[-1].filename).name}, line {own[-1].lineno}: " if own else ""
            raise JobError([replace(one, setting=place + one.setting) for one in error.problems]) from None
        finally:
            sys.argv = argv
    _refuse_spark(path, before)
    return module


def _running_spark() -> Any:
    """The Spark context of this process, or None."""
    pyspark = sys.modules.get("pyspark")
    return pyspark.SparkContext._active_spark_context if pyspark is not None else None


def _refuse_spark(path: Path, before: Any) -> None:
    """Refuses a file that starts Spark itself: the trial would use that session with other settings."""
    started = _running_spark()
    if started is None or started is before:
        return
    started.stop()
    raise JobError(
        Problem(
            str(path),
            "must not start Spark as it is imported: the function is given the session that is measured, as `spark`",
            "a session of its own",
            'remove it, or put it under if __name__ == "__main__":',
        )
    )


def place_of(path: Path) -> tuple[Path, str]:
    """(folder for the import path, dotted name of the module). A folder with __init__.py is a package.

    The folder is absolute, like the file names of frames.
    """
    path = path.resolve()
    parts, folder = [path.stem], path.parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts)


@contextlib.contextmanager
def user_errors(
    path: Path, rule: str, advise: Callable[[BaseException], str | None] = lambda _: None
) -> Iterator[None]:
    """Turns an error of user code into one JobError that shows only the user's lines.

    `advise` returns the way out of a known error, or None.
    """
    try:
        yield
    except (StreamgaugeError, KeyboardInterrupt):
        raise
    except BaseException as error:
        advice = _NO_SPARK_YET if "SESSION_OR_CONTEXT_NOT_EXISTS" in str(error) else advise(error)
        advice = ARGUMENTS if isinstance(error, SystemExit) else advice
        way_out = ":\n".join(filter(None, [advice or "correct it", own_lines(error, path)]))
        raise JobError(Problem(str(path), rule, first_line(error), way_out)) from None


def first_line(error: BaseException) -> str:
    """`ValueError: the reason`, without the plans and stack traces that Spark appends."""
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def duckdb_lines(error: BaseException) -> list[str]:
    """The lines after the first of a DuckDB error: candidates, and the position in a query."""
    if type(error).__module__.strip("_") != "duckdb":
        return []
    return [line.rstrip() for line in str(error).strip().splitlines()[1:] if line.strip()]


def own_lines(error: BaseException, path: Path) -> str:
    """The user's lines that led to an error, and its message after the `first_line`."""
    frames = _own(traceback.extract_tb(error.__traceback__), path)
    of_syntax = traceback.format_exception_only(error)[:-1] if isinstance(error, SyntaxError) else []
    more = [*of_syntax, *(f"{line}\n" for line in duckdb_lines(error))]
    return "".join([*traceback.format_list(frames), *more]).rstrip()


def own_frames(frame: FrameType | None, path: Path) -> list[traceback.FrameSummary]:
    """The user's lines that called a running frame, outermost first."""
    return _own(traceback.extract_stack(frame), path)


def _own(frames: Iterable[traceback.FrameSummary], path: Path) -> list[traceback.FrameSummary]:
    root = place_of(path)[0]
    return [each for each in frames if _is_own(each.filename, root)]


def own_trace_in(text: str, path: Path) -> str | None:
    """The user's lines and the error from a text with a traceback, such as an engine's reason.

    None if the traceback has no line of the user.
    """
    root = place_of(path)[0]
    own: list[str] = []
    depth: int | None = None
    for line in text.splitlines():
        frame = _FRAME.match(line)
        if frame:
            depth = len(frame.group(1)) if _is_own(frame.group(2), root) else None
            own += [line] if depth is not None else []
        elif depth is not None and line.strip() and len(line) - len(line.lstrip()) > depth:
            own.append(line)
        elif own and _ERROR.match(line):
            return "\n".join([*own, line])
        else:
            depth = None
    return None


def _is_own(file: str, root: Path) -> bool:
    place = Path(file)
    return place.is_absolute() and place.resolve().is_relative_to(root) and "site-packages" not in place.parts


def _check_name(path: Path, name: str) -> None:
    used = name in sys.stdlib_module_names | _LATER or (name in sys.modules and name not in _imported)
    if used and getattr(sys.modules.get(name), "__file__", None) != str(path):
        raise JobError(
            Problem(
                str(path),
                f"must not have the name of a module that is in use ({name})",
                path.name,
                f"rename it: {path.stem}_job.py",
            )
        )


def _run(path: Path, name: str) -> ModuleType:
    if "." in name:
        importlib.import_module(name.rpartition(".")[0])
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    _imported.add(name)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module
