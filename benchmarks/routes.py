"""A route: one way from Python to a function's results on a batch, for one library."""

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
"""How many states the loop of single chasles calls runs over."""


class WrongAnswer(Exception):
    """A route disagrees with Pinocchio: nothing it took means anything."""


@dataclass(frozen=True)
class Route:
    """What is timed, and what it computed.

    whole: a run leaves the results of all states in one array, as a batch of chasles does;
    otherwise it is single calls from Python, whose results are not kept (which favours them).
    count: states in one run. run: compute all of them (this is timed). answers: the results, in
    chasles' conventions: what the last run left in its array, or what single calls return now.
    """

    library: str
    label: str
    whole: bool
    count: int
    run: Callable[[], object]
    answers: Callable[[], Array]


def loop(call: Callable[..., Any], rows: Iterable[tuple[Any, ...]]) -> None:
    """Call for every row and keep nothing: the loop itself runs in C."""
    deque(starmap(call, rows), maxlen=0)


NEW, REUSED = "single call", "single call, out="
"""Labels of chasles' single calls: the result in a new array, or in one that is reused."""


def compiled(robot: chasles.Robot, function: str, **options: Any) -> Any:
    """The compiled function that a benchmark's function stands for."""
    name = DERIVED.get(function)
    if name is None:
        name, method = method_of(function)
        return chasles.compile(robot, name, method=method, **options)
    return chasles.compile(robot, name, wrt=INPUTS[function], **options)


def chasles_routes(
    robot: chasles.Robot, function: str, states: States, frame: dict[str, str]
) -> list[Route]:
    """A whole batch with `out=` reused, and single calls.

    Batches run with `threads=1`, and also as the method is called by default, which may share them
    among threads, whose processor time all counts.
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
    """The public method, after a first call, which may put a faster one in its place."""
    getattr(robot, function)(*(x[0] for x in inputs), **frame)
    return partial(getattr(robot, function), **frame) if frame else getattr(robot, function)


def _loop_reused(call: Callable[..., Any], rows: Sequence[tuple[Any, ...]], out: Any) -> None:
    """Call with `out=` as one writes it; a `partial` in a loop of C would cost more."""
    if len(rows[0]) == 1:
        for (q,) in rows:
            call(q, out=out)
    else:
        for q, qd, last in rows:
            call(q, qd, last, out=out)


def _map(change: Callable[[Array], Any], result: Any) -> Any:
    """Of one array, or of each in a tuple."""
    return tuple(map(change, result)) if isinstance(result, tuple) else change(result)


def joined(result: Any, axis: int) -> Array:
    """Several results as one array: along a new axis, or side by side where shapes differ."""
    if not isinstance(result, tuple):
        return np.asarray(result)
    if len({a.shape for a in result}) > 1:
        return np.concatenate(result, axis=-1)
    return np.stack(result, axis=axis)


def _returned(call: Callable[..., Any], rows: Iterable[tuple[Any, ...]]) -> Array:
    return np.array([joined(call(*row), 0).copy() for row in rows])
