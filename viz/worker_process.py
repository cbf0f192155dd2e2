"""Long work on what visitors hand over, done in a process of its own.

Python lets one thread of a process go on at a time, so that whoever reads a long text there holds up all visitors. What
another process takes of time and memory is bounded, too: it can be ended.
"""

from __future__ import annotations

import atexit
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, ParamSpec, TypeVar

from attenscope.language import current_language, say, to_say, use_language
from attenscope.viz.fair_queue import TURN_TIMEOUT, BusyError, FairQueue

TIME_LIMIT = TURN_TIMEOUT - 10
"""Seconds after which the work on one thing is ended: whoever comes second still gets a turn."""
ORPHAN_SECONDS = 5
"""Seconds beyond that after which the process ends by itself: the server that would end it may be gone."""
MEMORY_LIMIT = 2**31
"""Bytes of memory that the process may ask for."""
GROWN_BYTES = 2**28
"""A process that has taken more memory than this is not used again, so that the memory goes back."""
LOWER_PRIORITY = 5
"""How far the process stands back behind the server, in steps of Unix's nice."""
ENDED_TEXT = to_say("This was ended before it was done: it took more than {seconds:.0f} seconds, or too much memory.")

P = ParamSpec("P")
T = TypeVar("T")


class WorkerProcess:
    """Calls functions of modules in another process, one at a time; the process is started when it is needed."""

    def __init__(self, time_limit: float = TIME_LIMIT) -> None:
        self._time_limit = time_limit
        self._process: subprocess.Popen[bytes] | None = None

    def call(self, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Return what the function returns, or raise what it raises, in the present language.

        Raises BusyError where it takes too much time or memory.
        """
        if self._process is not None and self._process.poll() is not None:
            self.end()  # It died while it had nothing to do.
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = None
        watch = threading.Timer(self._time_limit, process.kill)
        watch.start()
        try:
            request = (self._time_limit, current_language(), function, arguments, named)
            pickle.dump(request, process.stdin, pickle.HIGHEST_PROTOCOL)
            process.stdin.flush()
            is_last, found, error, cause = pickle.load(process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            self._end(process)
            raise BusyError(say(ENDED_TEXT, seconds=self._time_limit)) from None
        except BaseException:  # A half message is in the pipe.
            self._end(process)
            raise
        finally:
            watch.cancel()
        if is_last:
            self._end(process)
        else:
            self._process = process
        if error is not None:
            raise error from cause
        return found

    def end(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._end(self._process)
            self._process = None

    @staticmethod
    def _start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],  # No file of the folder it runs in takes a module's name.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(one or os.getcwd() for one in sys.path)},
            start_new_session=True,  # The server alone hears Control+C.
        )

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        process.kill()
        with process:  # closes the pipes and waits
            assert process.stdin is not None
            with suppress(OSError):
                process.stdin.close()


def serve_calls(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests until there are no more, or until this process has grown."""
    is_last = False
    while not is_last:
        try:
            time_limit, language, function, arguments, named = pickle.load(requests)
        except EOFError:
            return
        found = None
        error: Exception | None = None
        cause: BaseException | None = None
        with use_language(language), _kill_process_after(time_limit + ORPHAN_SECONDS):
            try:
                found = function(*arguments, **named)
            except MemoryError:
                error = BusyError(say(ENDED_TEXT, seconds=time_limit))
            except Exception as raised:
                error, cause = raised, raised.__cause__  # which pickle leaves out
        is_last = _read_peak_memory() > GROWN_BYTES
        try:
            reply = pickle.dumps((is_last, found, error, cause), pickle.HIGHEST_PROTOCOL)
        except Exception as raised:  # A reply that cannot be copied is an error of the function.
            reply = pickle.dumps((is_last, None, RuntimeError(str(error or raised)), None), pickle.HIGHEST_PROTOCOL)
        replies.write(reply)
        replies.flush()


@contextmanager
def _kill_process_after(seconds: float) -> Iterator[None]:
    """End this process where the block takes longer, on systems that can."""
    if hasattr(signal, "alarm"):
        signal.alarm(math.ceil(seconds))
    try:
        yield
    finally:
        if hasattr(signal, "alarm"):
            signal.alarm(0)


def _read_peak_memory() -> int:
    """Return the most bytes that this process has had, as Linux tells; 0 elsewhere."""
    # Not resource.getrusage: at first it tells what the process has had that started this one.
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def _limit_process_resources() -> None:
    """Let the server go first, and take no more than a share of the memory."""
    if hasattr(os, "nice"):
        os.nice(LOWER_PRIORITY)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")  # Where memory ends, this ends first.
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))


WORKER_QUEUE = FairQueue(1)
"""One text or file is worked on at a time: neither memory nor processors fill up with the number of visitors."""
_WORKER = WorkerProcess()
atexit.register(_WORKER.end)


def call_in_worker(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Call a function of a module, in turn, in the worker process.

    The arguments and what it returns are copied. Raises what it raises, and BusyError where the turn does not come, the
    visitor has gone, or the work takes too much.
    """
    from attenscope.viz.streamlit_internals import create_connection_probe  # The process itself loads no Streamlit.

    with WORKER_QUEUE.turn(WORKER_QUEUE.ticket(), is_wanted=create_connection_probe()):
        return _WORKER.call(function, *arguments, **named)


def call_here_if_short(is_short: bool, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Call a function at once where that is quick, and else as :func:`call_in_worker`."""
    call = function if is_short else partial(call_in_worker, function)
    return call(*arguments, **named)


if __name__ == "__main__":
    written = sys.stdout.buffer
    sys.stdout = sys.stderr  # What a library prints is no reply.
    _limit_process_resources()
    serve_calls(sys.stdin.buffer, written)
