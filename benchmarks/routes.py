"""Routes: ways of calling a function of a library from Python for a batch of states."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from typing import Any

import numpy as np

import chasles
from benchmarks.states import DERIVED, INPUTS, Array, States, method_of

SINGLE_CALLS = 512
"""Number of states for which single calls of chasles are timed."""


@dataclass(frozen=True)
class Route:
    """Timed function of a library, and its results.

    Attributes
    ----------
    whole : bool
        True if a run stores the results of all states in one array, as a batch of chasles does.
        Otherwise, a run consists of single calls from Python whose results are discarded, which
        makes them slightly faster.
    count : int
        Number of states in a run.
    run : callable
        Computes all states. This call is timed.
    answers : callable
        Returns the results in chasles' conventions: those of the last run, if it stored them, or
        else those of new single calls.
    """

    library: str
    label: str
    whole: bool
    count: int
    run: Callable[[], object]
    answers: Callable[[], Array]


def loop(call: Callable[..., Any], rows: Iterable[tuple[Any, ...]]) -> None:
    """Call a function for every row and discard the results. The loop itself runs in C."""
    deque(starmap(call, rows), maxlen=0)


NEW, REUSED = "single call", "single call, out="
"""Labels of single calls of chasles that return a new array, and that reuse an array."""


def compiled(robot: chasles.Robot, function: str, **options: Any) -> Any:
    """Return the compiled function for a function name of the benchmarks."""
    name = DERIVED.get(function)
    if name is None:
        name, method = method_of(function)
        return chasles.compile(robot, name, method=method, **options)
    return chasles.compile(robot, name, wrt=INPUTS[function], **options)


def chasles_routes(
    robot: chasles.Robot, function: str, states: States, frame: dict[str, str]
) -> list[Route]:
    """Return the routes of chasles: batches with a reused `out=` array, and single calls.

    One batch runs with `threads=1`, the other with the default, which may use several threads. The
    processor time of all threads is measured.
    """
    inputs = states.inputs(function)
    made = compiled(robot, function, **frame)
    own = function in DERIVED or "@" in function
    method = made.fast if own else _method(robot, function, inputs, frame)
    out = made(*inputs)
    one = _map(lambda a: np.empty_like(a[0]), out)
    _map(lambda a: a.fill(np.nan), out)
    rows = list(zip(*(x[:SINGLE_CALLS] for x in inputs), strict=True))

    def batch(label: str, run: Callable[[], object]) -> Route:
        return Route("chasles", label, True, len(inputs[0]), run, lambda: joined(out, 1))

    def single(label: str, run: Callable[[], object], call: Callable[..., Any]) -> Route:
        return Route("chasles", label, False, len(rows), run, lambda: _returned(call, rows))

    return [
        batch("threads=1", partial(made, *inputs, out=out, threads=1)),
        batch("batch", partial(method, *inputs, out=out)),
        single(NEW, partial(loop, method, rows), method),
        single(REUSED, partial(_loop_reused, method, rows, one), partial(method, out=one)),
    ]


def _method(
    robot: chasles.Robot, function: str, inputs: list[Array], frame: dict[str, str]
) -> Callable[..., Any]:
    """Return the public method. The first call may replace it by a faster one, so call it first."""
    getattr(robot, function)(*(x[0] for x in inputs), **frame)
    return partial(getattr(robot, function), **frame) if frame else getattr(robot, function)


def _loop_reused(call: Callable[..., Any], rows: Sequence[tuple[Any, ...]], out: Any) -> None:
    """Call a function with `out=` for every row, in a Python loop. A `partial` would be slower."""
    if len(rows[0]) == 1:
        for (q,) in rows:
            call(q, out=out)
    else:
        for q, qd, last in rows:
            call(q, qd, last, out=out)


def _map(change: Callable[[Array], Any], result: Any) -> Any:
    """Apply a function to an array, or to each array of a tuple."""
    return tuple(map(change, result)) if isinstance(result, tuple) else change(result)


def joined(result: Any, axis: int) -> Array:
    """Join several results: along a new axis, or side by side if their shapes differ."""
    if not isinstance(result, tuple):
        return np.asarray(result)
    if len({a.shape for a in result}) > 1:
        return np.concatenate(result, axis=-1)
    return np.stack(result, axis=axis)


def _returned(call: Callable[..., Any], rows: Iterable[tuple[Any, ...]]) -> Array:
    return np.array([joined(call(*row), 0).copy() for row in rows])
