"""Work that must not be cut in two by a signal: with LLVM, and with open entries of the cache."""

import _thread
import functools
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")


def undisturbed(work: Callable[[], Result]) -> Result:
    """Do work where no signal interrupts it, and return its result.

    llvmlite is written in Python. An interrupt between its lines leaves its lock taken, so that
    other threads wait forever, or frees an object twice. An interrupt between `os.open` and the
    next line leaves a file open. Python runs signal handlers in the main thread alone; so the main
    thread waits for another one, and raises what came in the meantime.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    ended, outcome, came = threading.Lock(), list[Any](), list[BaseException]()
    ended.acquire()

    def run() -> None:
        try:
            outcome[:] = True, work()
        except BaseException as error:
            outcome[:] = False, error
        finally:
            ended.release()

    try:
        _thread.start_new_thread(run, ())
    except RuntimeError:  # no thread can be started, or the interpreter is ending
        return work()
    while not outcome:  # set before the lock is released, so no interrupt here waits again
        try:
            ended.acquire()
        except BaseException as error:  # of a signal's handler
            came.append(error)
    if came:
        raise came[0]
    well, result = outcome
    if not well:
        raise result
    found: Result = result
    return found


def uninterrupted(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Return a function whose calls are `undisturbed`."""

    @functools.wraps(function)
    def call(*given: Given.args, **named: Given.kwargs) -> Result:
        return undisturbed(lambda: function(*given, **named))

    return call
