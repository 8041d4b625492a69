"""Child processes that cannot outlive their parent, and a protocol of JSON lines between both.

A child's standard input is its lifeline: at its end of file the parent is gone, and the child ends itself. A parent
that stops a child says goodbye first. Without a goodbye the child is an orphan.
The same pipe carries requests, one JSON object per line. The child's original standard output carries answers with
their request's number, and announcements of stages. Everything else that a child prints goes to its log.

`start_process` starts any other command, such as a JVM, which the kernel ends with its parent. `send_signal` kills,
pauses and resumes processes. `delay_interrupts` holds signals to this process back until a short block has ended.
"""

import contextlib
import ctypes
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO, Any, NoReturn, cast

import psutil

from streamgauge.core.errors import DriverError, InputError, Problem, StreamgaugeError
from streamgauge.core.exit_codes import ExitCode
from streamgauge.system.disk import remove_if_abandoned

Handlers = dict[str, Callable[..., Any]]

FAREWELL = "null\n"
ORPHANED_S = 5.0
"""The lifeline of a killed parent may end a little before its locks do."""
CLOSING_S = 4.0
"""The time that a child has for its cleanup after its lifeline has ended."""
_PDEATHSIG = 1

_pipe: IO[str] | None = None
"""The child's side: the pipe for its answers, while it serves."""
_writing = threading.Lock()


class ChildFailed(DriverError):
    """A child answered with an error, or ended without an answer.

    `kind` is the class name of the child's error, `problems` are those of an InputError.
    """

    def __init__(self, message: str, kind: str = "", problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.kind, self.problems = kind, tuple(problems)


class ChildSilent(ChildFailed):
    """A child did not answer in time."""


class Child:
    """The parent's hold on one child process."""

    def __init__(
        self,
        name: str,
        module: str,
        arguments: Sequence[str],
        log: Path,
        cpus: Sequence[int] | None = None,
        environment: Mapping[str, str | None] | None = None,
    ) -> None:
        """`environment` has the variables that differ from this process; None removes one."""
        self.name = name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        variables = {**os.environ, **(environment or {})}
        with log.open("ab") as sink:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                start_new_session=True,  # else Ctrl-C in the terminal would end the children before the parent
                env={name: value for name, value in variables.items() if value is not None},
            )
        self._lifeline = cast(IO[bytes], self._process.stdin)
        if cpus is not None:
            os.sched_setaffinity(self._process.pid, cpus)
        self.stage = ""
        """The stage that the child last announced."""
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._read_answers, name=f"answers of {name}", daemon=True).start()
        self._asking = threading.Lock()
        self._last_request = 0

    @property
    def pid(self) -> int:
        return self._process.pid

    def pids(self) -> list[int]:
        """The child and every process below it; empty if it has ended."""
        try:
            below = psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        return [self.pid, *(process.pid for process in below)] if self.alive else []

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def ask(self, request: str, timeout_s: float = 30.0, **arguments: Any) -> Any:
        """Sends one request and waits for its answer.

        Raises:
            ChildFailed: the child answered with an error, ended, or did not answer in `timeout_s`.
        """
        with self._asking:
            self._last_request += 1
            message = {"number": self._last_request, "request": request, "arguments": arguments}
            with contextlib.suppress(BrokenPipeError, ValueError):  # it has ended, and so have its answers
                self._lifeline.write(json.dumps(message).encode() + b"\n")
                self._lifeline.flush()
            answer = self._answer_to(self._last_request, request, timeout_s)
        if answer is None:
            self._answers.put(None)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
            raise ChildFailed(f"{self.name} ended (exit code {self.exit_code}); its log: {self.log}")
        if "error" in answer:
            problems = [
                Problem(setting, rule, got, way_out, ExitCode(code))
                for setting, rule, got, way_out, code in answer.get("problems", ())
            ]
            raise ChildFailed(str(answer["error"]), str(answer.get("kind", "")), problems)
        return answer["answer"]

    def release(self) -> None:
        """Says goodbye and closes the lifeline, so the child ends itself without being an orphan."""
        with contextlib.suppress(OSError, ValueError):
            self._lifeline.write(FAREWELL.encode())
            self._lifeline.close()

    def stop(self, grace_s: float = 5.0) -> None:
        """Closes the lifeline, waits, then kills the rest of the child's process group."""
        self.release()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_s)
        self.kill()

    def kill(self) -> None:
        """Ends the child's whole process group at once."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        with contextlib.suppress(OSError):  # unsent requests have no reader any more
            self._lifeline.close()

    def _answer_to(self, number: int, request: str, timeout_s: float) -> dict[str, Any] | None:
        # Answers to earlier requests that timed out may still arrive, and must not be taken for this answer.
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                answer = self._answers.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise ChildSilent(f"{self.name} did not answer '{request}' within {timeout_s:g} s") from None
            if answer is None or answer["number"] == number:
                return answer

    def _read_answers(self) -> None:
        assert self._process.stdout is not None
        try:
            # An incomplete line is no JSON: the child was killed while it wrote.
            with contextlib.suppress(ValueError), self._process.stdout as answers:
                for message in map(json.loads, answers):
                    if "stage" in message:
                        self.stage = message["stage"]
                    else:
                        self._answers.put(message)
        finally:
            self._answers.put(None)


def stop_all(children: Sequence[Child], grace_s: float) -> None:
    """Stops children at the same time. `grace_s` is for all of them together."""
    for child in children:
        child.release()
    deadline = time.monotonic() + grace_s
    for child in children:
        child.stop(max(0.0, deadline - time.monotonic()))


def serve(handlers: Handlers, on_orphaned: Callable[[], None] | None = None, scratch: Path | None = None) -> NoReturn:
    """The child's side: answers requests until the lifeline ends, then ends this process.

    `scratch` is the parent's folder. An orphan removes it.
    A thread watches the lifeline, so a hanging handler cannot keep an orphan alive.
    """
    global _pipe
    # Output of a JVM or a library must not break the protocol, so standard output becomes the log.
    _pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    requests: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_watch_lifeline, args=(requests, on_orphaned, scratch), daemon=True).start()
    while True:  # only the lifeline ends it, because an interpreter can hang at its shutdown if servers still run
        message = requests.get()
        _write_up({"number": message["number"], **_answer(handlers, message)})


def announce(stage: str) -> None:
    """The child's side: reports its current stage while a request waits for its answer. Any thread may call it."""
    _write_up({"stage": stage})


def _write_up(message: dict[str, Any]) -> None:
    with _writing, contextlib.suppress(OSError):  # the parent has ended, so the lifeline will end this process
        if _pipe is not None:
            _pipe.write(json.dumps(message) + "\n")
            _pipe.flush()


def _watch_lifeline(
    requests: queue.Queue[dict[str, Any]], on_orphaned: Callable[[], None] | None, scratch: Path | None
) -> None:
    try:
        orphaned = True
        for line in sys.stdin:
            if line == FAREWELL:
                orphaned = False
                break
            requests.put(json.loads(line))
        if on_orphaned is not None:
            closing = threading.Thread(target=on_orphaned, daemon=True)
            closing.start()
            closing.join(CLOSING_S)
        if scratch is not None and orphaned:
            wait_until(lambda: remove_if_abandoned(scratch), ORPHANED_S)
        sys.stderr.flush()
    finally:  # after any error, because no parent can end this process any more
        os._exit(0)


def _answer(handlers: Handlers, message: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"answer": handlers[message["request"]](**message["arguments"])}
    except StreamgaugeError as error:
        of_input = error.problems if isinstance(error, InputError) else ()
        problems = [(each.setting, each.rule, str(each.got), each.way_out, each.code) for each in of_input]
        return {"error": str(error), "kind": type(error).__name__, "problems": problems}
    except Exception as error:
        import traceback

        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}", "kind": type(error).__name__}


def start_process(
    command: Sequence[str],
    log: Path,
    environment: Mapping[str, str],
    folder: Path | None = None,
    outlives: bool = False,
) -> subprocess.Popen[bytes]:
    """Starts a command in `folder`, with all its output in `log`.

    The kernel kills it when the thread that started it ends. If it `outlives` this process, it has a session of its
    own, which neither the end of this process nor that of its terminal ends.
    """
    with log.open("ab") as output:
        return subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=outlives, preexec_fn=None if outlives else _die_with_parent,
        )  # fmt: skip


def _die_with_parent() -> None:
    """Called in the new process, before the command."""
    ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)


def send_signal(number: signal.Signals, pids: Iterable[int]) -> None:
    """Sends a signal to the processes that still run. SIGKILL kills, SIGSTOP pauses, and SIGCONT resumes them."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def is_running(pid: int) -> bool:
    """Whether a process runs. A zombie has ended, whether it was reaped or not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(condition: Callable[[], bool], timeout_s: float, step_s: float = 0.01) -> bool:
    """Polls `condition` until it holds or `timeout_s` has passed. Returns whether it held."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(step_s)
    return True


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def delay_interrupts() -> Iterator[None]:
    """Delivers a Ctrl-C when the block has ended, and a second one at once, for a user who does not want to wait.

    Only the main thread receives signals, so the block changes nothing on other threads. Signals without a handler
    in Python keep their effect.
    """
    is_main = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in (_SIGNALS if is_main else ())}
    usual = {number: handler for number, handler in handlers.items() if callable(handler)}
    came: list[tuple[int, FrameType | None]] = []

    def hold(number: int, frame: FrameType | None) -> None:
        came.append((number, frame))
        if len(came) > 1:
            usual[signal.Signals(number)](number, frame)

    for number in usual:
        signal.signal(number, hold)
    try:
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
        if len(came) == 1:
            usual[signal.Signals(came[0][0])](*came[0])
